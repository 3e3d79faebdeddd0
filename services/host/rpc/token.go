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

// MaxToken bounds a bearer token in bytes.
const MaxToken = 16 << 10

// Token is what a verified bearer token says of who presents it.
type Token struct {
	Subject string
	Claims  map[string]any // all of them, as JSON gives them
}

// Tokens verifies bearer tokens of one issuer.
type Tokens interface {
	// Issuer is the issuer's URL.
	Issuer() string
	// Verify gives what a valid token says. An error shows nothing of the token. It returns soon: the connection on
	// which the token came waits.
	Verify(ctx context.Context, raw string) (Token, *Error)
}

// bearer takes the token out of a call's headers; empty when there is none.
func bearer(header metadata.MD) (string, *Error) {
	values := header["authorization"]
	switch len(values) {
	case 0:
		return "", nil
	case 1:
	default:
		return "", Errorf(Unauthenticated, "send one", "%d authorization headers", len(values))
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", Errorf(Unauthenticated, "write: authorization: Bearer TOKEN", "an authorization header that is no bearer token")
	}
	if len(token) > MaxToken {
		return "", Errorf(Unauthenticated, "have the issuer put less into it", "a token of %d bytes; at most %d", len(token), MaxToken)
	}
	return token, nil
}

// TokenSource gives the bearer token for a call. It is asked for every call.
type TokenSource func(ctx context.Context) (string, error)

// TokenFile reads the token from a file, anew for every call, so that whoever renews it only has to replace the file.
func TokenFile(path string) TokenSource {
	return func(context.Context) (string, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("rpc: token: %w", err)
		}
		token := strings.TrimSpace(string(b))
		switch {
		case token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
			return "", fmt.Errorf("rpc: token: %s is not one token", path)
		case len(token) > MaxToken:
			return "", fmt.Errorf("rpc: token: %s has more than %d bytes", path, MaxToken)
		}
		return token, nil
	}
}

// DialOption changes how Dial connects.
type DialOption func(*[]grpc.DialOption)

// WithToken presents a bearer token with every call, beside the certificate if the credentials have one.
func WithToken(s TokenSource) DialOption {
	return func(o *[]grpc.DialOption) { *o = append(*o, grpc.WithPerRPCCredentials(perCall{s})) }
}

// perCall puts the token into a call's headers.
type perCall struct{ source TokenSource }

var _ credentials.PerRPCCredentials = perCall{}

func (p perCall) GetRequestMetadata(ctx context.Context, _ ...string) (map[string]string, error) {
	token, err := p.source(ctx)
	if err != nil {
		return nil, Errorf(Unauthenticated, "name a file that holds one token", "%v", err)
	}
	return map[string]string{"authorization": "Bearer " + token}, nil
}

// RequireTransportSecurity keeps the token from a connection that others can read.
func (perCall) RequireTransportSecurity() bool { return true }
