package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"slices"
	"time"

	"google.golang.org/grpc"
)

// A process may have another server, such as its console, that authenticates callers by itself and
// passes their calls on. Such a call carries the proof with which the caller signed in, and this
// file verifies that proof again for each call. The other server therefore never states who the
// caller is, and a caller that is no longer valid is rejected at once.

// Limits on the streams through the gateway: of all clients together, and of one caller.
const (
	gatewayStreams    = 512
	gatewayStreamsOne = 128
)

// Proof holds the credentials with which a caller authenticated: its verified certificate chains,
// its bearer token, or both. The zero value proves nothing.
type Proof struct {
	chains [][]*x509.Certificate
	token  string
}

// CertificateProof returns the proof of the client certificate of a TLS connection. The server must
// have verified it, as the configuration of Credentials.Server does. It proves nothing if the
// caller presented no certificate.
func CertificateProof(s *tls.ConnectionState) Proof {
	if s == nil || slices.ContainsFunc(s.VerifiedChains, func(c []*x509.Certificate) bool { return len(c) == 0 }) {
		return Proof{}
	}
	return Proof{chains: s.VerifiedChains}
}

// TokenProof returns the proof of a bearer token.
func TokenProof(token string) Proof { return Proof{token: token} }

// Until returns when the certificates of the proof expire, or the zero time without certificates.
func (p Proof) Until() (last time.Time) {
	for _, chain := range p.chains {
		if t := until(chain); t.After(last) {
			last = t
		}
	}
	return last
}

// String hides the token.
func (p Proof) String() string { return "rpc.Proof" }

type proofKey struct{}

// WithProof returns a context whose calls through Server.Gateway are calls of the proof's holder.
func WithProof(ctx context.Context, p Proof) context.Context {
	return context.WithValue(ctx, proofKey{}, p)
}

// ProofOf returns the proof of the caller of the handler that ctx belongs to.
func ProofOf(ctx context.Context) (Proof, bool) {
	p, ok := ctx.Value(proofKey{}).(Proof)
	return p, ok
}

// Gateway returns a gRPC server with the methods of Options.Gateway and the same handlers, for
// calls of this process itself by ServeHTTP; nil if there are no such methods. The caller of each
// call is the holder of the proof in the request's context. Rules apply as usual. Rates, and the
// limits on calls and connections, do not: the program that passes calls on must limit them.
// Streams have separate limits. All calls must have ended before Stop.
func (s *Server) Gateway() *grpc.Server { return s.gateway }

// serves reports whether the gateway serves a method.
func (o *Options) serves(method string) bool {
	//lodge:check rpc/gateway/methods [swap=slices.Contains(o.Gateway, method)=>true]
	//  [run=TestGateway] the gateway serves methods that change the state of the process
	return slices.Contains(o.Gateway, method)
}

// admitProof authenticates a call of the gateway by the proof in its context, and authorises it.
func (s *Server) admitProof(ctx context.Context, method string, _ time.Time) (p Principal, inside context.Context, leave func(), refused *Error) {
	proof, _ := ProofOf(ctx)
	if p, refused = s.Identify(ctx, proof); refused != nil {
		return p, nil, nil, refused
	}
	//lodge:check rpc/gateway/checked [run=TestGateway] calls through the gateway are not authorised
	if refused = s.opts.Rules.check(method, p); refused != nil {
		return p, nil, nil, refused
	}
	return p, WithCaller(ctx, p), func() {}, nil
}
