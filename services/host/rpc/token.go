package rpc

import (
	"context"
	"fmt"
	"os"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// MaxToken is the largest bearer token in bytes.
const MaxToken = 16 << 10

// Token is the content of a verified bearer token.
type Token struct {
	Subject string
	Claims  map[string]any // all claims, as decoded from JSON
}

// Tokens verifies bearer tokens of one issuer.
type Tokens interface {
	// Issuer returns the issuer's URL.
	Issuer() string
	// Verify verifies a token and returns its content. Its error reveals nothing about the token.
	// It must return soon: the token's connection waits.
	Verify(ctx context.Context, raw string) (Token, *Error)
}

// bearer returns the token in a call's headers; empty if there is none.
func bearer(header metadata.MD) (string, *Error) {
	values := header["authorization"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", Errorf(Unauthenticated, "send one authorization header", "%d authorization headers", len(values))
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", Errorf(Unauthenticated, "write: authorization: Bearer TOKEN", "the authorization header has no bearer token")
	}
	if len(token) > MaxToken {
		return "", Errorf(Unauthenticated, "configure the issuer to put fewer claims into it", "a token of %d bytes; at most %d", len(token), MaxToken)
	}
	return token, nil
}

// TokenSource returns the bearer token for a call. It is called for every call.
type TokenSource func(ctx context.Context) (string, error)

// TokenFile reads the token from a file for every call, so renewing the token means replacing the
// file.
func TokenFile(path string) TokenSource {
	return func(context.Context) (string, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("rpc: token: %w", err)
		}
		token := strings.TrimSpace(string(b))
		switch {
		case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
			return "", fmt.Errorf("rpc: token: %s must hold exactly one token", path)
		case len(token) > MaxToken:
			return "", fmt.Errorf("rpc: token: %s has more than %d bytes", path, MaxToken)
		}
		return token, nil
	}
}

// DialOption changes how Dial connects.
type DialOption func(*[]grpc.DialOption)

// WithToken presents a bearer token with every call, in addition to a certificate if the
// credentials have one.
func WithToken(s TokenSource) DialOption {
	return func(o *[]grpc.DialOption) { *o = append(*o, grpc.WithPerRPCCredentials(perCall{s})) }
}

// perCall adds the token to a call's headers.
type perCall struct{ source TokenSource }

var _ credentials.PerRPCCredentials = perCall{}

func (p perCall) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := p.source(ctx)
	if err != nil {
		return nil, Errorf(Unauthenticated, "name a file that holds one token", "%v", err)
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity makes gRPC send the token over TLS only.
func (perCall) RequireTransportSecurity() bool { return true }
