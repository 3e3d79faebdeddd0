package rpc

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
)

// Role is the relation of an authenticated caller to this process.
type Role string

// The roles. Each caller has exactly one.
const (
	Peer        Role = "peer"
	Coordinator Role = "coordinator"
	Client      Role = "client"
	Self        Role = "self"  // the holder of this process's own certificate: its operator
	Owner       Role = "owner" // the party that an evaluator works for
)

// Principal is an authenticated caller.
type Principal struct {
	Role Role
	Name string
	// Party is the roster index of a Peer or of Self; -1 for other roles.
	Party int
	// Auth is the way in which this caller authenticated.
	Auth Auth
	// Identity is the pinned identity of a Client: the URI or DNS name of its certificate or, for a
	// client that uses only tokens, "oidc:" and their subject. It stays the same when the client is
	// renamed, so durable counters use it.
	Identity string
	// Permissions of a Client, and the tenants whose batches it may list and fetch.
	Permissions, Tenants []string
	// Kinds of tuples that a Client may fetch; empty means all.
	Kinds []string
	// Rate limits the calls of a Client.
	Rate Rate
}

// Auth is a way of authenticating.
type Auth string

// Values of Auth.
const (
	ByCertificate Auth = "certificate"
	ByToken       Auth = "token"
	ByBoth        Auth = "certificate+token"
)

// May reports whether a client has the permission.
func (p Principal) May(permission string) bool { return slices.Contains(p.Permissions, permission) }

// Serves reports whether a client acts for a tenant.
func (p Principal) Serves(tenant string) bool { return slices.Contains(p.Tenants, tenant) }

// MayDraw reports whether a client may fetch tuples of a kind.
func (p Principal) MayDraw(kind string) bool {
	//lodge:check rpc/kinds [swap=len(p.Kinds) == 0 || slices.Contains(p.Kinds, kind)=>true]
	//  [run=TestKindsOf] a client draws kinds that it may not
	return len(p.Kinds) == 0 || slices.Contains(p.Kinds, kind)
}

// Directory maps certificates and tokens to principals. A certificate's identity is one of its URI
// SANs (such as spiffe://lodge/party/alice) or DNS SANs; a token's identity is its subject.
// Identities are compared exactly. Common names are ignored.
type Directory struct {
	entries  map[string]Principal
	subjects map[string]subject
}

// subject is the client that a token's subject stands for.
type subject struct {
	principal Principal
	claims    map[string]string // claims that the token must have
}

// NewDirectory returns an empty directory.
func NewDirectory() *Directory {
	return &Directory{entries: map[string]Principal{}, subjects: map[string]subject{}}
}

// AddSubject pins the subject of tokens to a client. The client's tokens must have all of the
// claims.
func (d *Directory) AddSubject(sub string, claims map[string]string, p Principal) error {
	if sub == "" || p.Role != Client {
		return fmt.Errorf("rpc: the subject %q of %s %s does not name a client", sub, p.Role, p.Name)
	}
	if other, ok := d.subjects[sub]; ok {
		return fmt.Errorf("rpc: subject %q names both %s and %s", sub, other.principal.Name, p.Name)
	}
	d.subjects[sub] = subject{p, claims}
	return nil
}

// Add pins an identity to a principal.
func (d *Directory) Add(identity string, p Principal) error {
	if identity == "" || strings.ContainsAny(identity, "*, \t\n") {
		return fmt.Errorf("rpc: identity %q of %s is not a URI or a DNS name", identity, p.Name)
	}
	if other, ok := d.entries[identity]; ok {
		return fmt.Errorf("rpc: identity %q names both %s and %s", identity, other.Name, p.Name)
	}
	d.entries[identity] = p
	return nil
}

// Names returns the identities in a certificate: its URIs, and those DNS names that cannot be read
// as a URI. An authority may check URIs and yet issue any DNS name, and a certificate can have
// spiffe://lodge/party/alice as a DNS name.
func Names(c *x509.Certificate) []string {
	var ids []string
	for _, n := range c.DNSNames {
		//lodge:check rpc/dns-name run=TestDNSNamesAreNoURIs a DNS name that is written like a URI makes its holder a party
		if strings.ContainsAny(n, ":/") {
			continue
		}
		ids = append(ids, n)
	}
	for _, u := range c.URIs {
		ids = append(ids, u.String())
	}
	return ids
}

// lookup returns the principal that a certificate's names pin.
func (d *Directory) lookup(c *x509.Certificate) (Principal, *Error) {
	var found []Principal
	for _, id := range Names(c) {
		if p, ok := d.entries[id]; ok {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		//lodge:check rpc/certificate/unknown [return=Principal{Role: Peer}, nil]
		//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
		//  a certificate that names nobody here is accepted as a peer
		return Principal{}, Errorf(Forbidden, "add the identity to this process's roster or clients",
			"no identity of the certificate is known here: %q", Names(c))
	case 1:
		return found[0], nil
	}
	//lodge:check rpc/certificate/several [return=found[0], nil]
	//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
	//  a certificate that names several members is accepted
	return Principal{}, Errorf(Forbidden, "use a certificate with one identity",
		"the certificate names %d members", len(found))
}

type principalKey struct{}

// Caller returns the authenticated caller of the handler that ctx belongs to.
func Caller(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// WithCaller returns a context with a caller, for tests that call handlers without a connection.
func WithCaller(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// authenticate returns the caller of a call, and what it authenticated with.
func (s *Server) authenticate(ctx context.Context, from authInfo, header metadata.MD) (Principal, Proof, *Error) {
	token, refused := bearer(header)
	if refused != nil {
		return Principal{}, Proof{}, refused
	}
	chains, refused := verified(from.TLSInfo)
	if refused != nil {
		return Principal{}, Proof{}, refused
	}
	proof := Proof{chains, token}
	p, refused := s.Identify(ctx, proof)
	return p, proof, refused
}

// Identify returns the caller that a proof belongs to now: the holder of the verified certificate,
// or the client of the bearer token. A proof with both must name the same client twice. Peers and
// the coordinator use certificates only.
func (s *Server) Identify(ctx context.Context, proof Proof) (Principal, *Error) {
	chains, token := proof.chains, proof.token
	d, tokens := s.opts.Directory, s.opts.Tokens
	switch {
	case token == "" && len(chains) == 0 && tokens == nil:
		return Principal{}, Errorf(Unauthenticated, "connect with a client certificate", "no verified certificate")
	case token == "" && len(chains) == 0:
		return Principal{}, Errorf(Unauthenticated, "connect with a client certificate, or send a bearer token of "+tokens.Issuer(),
			"neither a certificate nor a token")
	case token == "":
		return d.certificate(chains, s.opts.Credentials)
	//lodge:check rpc/token/none [run=TestCertificateOrToken|TestNoTokens] [redundant=without an
	//  issuer there is nothing to verify a token with] a token is accepted where no issuer is
	//  configured
	case tokens == nil:
		return Principal{}, Errorf(Unauthenticated, "connect with a client certificate, and send no token", "this process accepts no tokens")
	case len(chains) == 0:
		return d.token(ctx, tokens, token)
	}
	p, refused := d.certificate(chains, s.opts.Credentials)
	if refused != nil {
		return p, refused
	}
	//lodge:check rpc/token/member [run=TestCertificateOrToken|TestNoTokens] a member authenticates
	//  with a token
	if p.Role != Client {
		return p, Errorf(Forbidden, "send no token", "%s %s sent a token in addition to its certificate", p.Role, p.Name)
	}
	q, refused := d.token(ctx, tokens, token)
	switch {
	case refused != nil:
		return p, refused
	//lodge:check rpc/token/other [run=TestCertificateOrToken|TestNoTokens] a certificate of one
	//  client carries the token of another
	case q.Name != p.Name:
		return p, Errorf(Forbidden, "present one of the two", "the certificate belongs to client %s, and the token does not", p.Name)
	}
	p.Auth = ByBoth
	return p, nil
}

// verified returns the verified certificate chains of a connection; none if the caller presented no
// certificate.
func verified(info credentials.TLSInfo) ([][]*x509.Certificate, *Error) {
	for _, chain := range info.State.VerifiedChains {
		if len(chain) == 0 {
			return nil, Errorf(Unauthenticated, "connect with a client certificate", "no verified certificate")
		}
	}
	return info.State.VerifiedChains, nil
}

// identify returns the holder of the certificate of a connection.
func (s *Server) identify(info credentials.TLSInfo) (caller, bool) {
	chains, refused := verified(info)
	if refused != nil || len(chains) == 0 {
		return caller{}, false
	}
	p, refused := s.opts.Directory.certificate(chains, s.opts.Credentials)
	return caller{p.Role, p.Name}, refused == nil
}

// certificate returns the holder of a verified certificate. A member's certificate must come from
// the members' authority, a client's from the clients' authority. A connection may outlive its
// certificate, so every call checks the dates again.
func (d *Directory) certificate(chains [][]*x509.Certificate, c *Credentials) (Principal, *Error) {
	p, err := d.lookup(chains[0][0])
	if err != nil {
		return Principal{}, err
	}
	m := c.current.Load()
	roots := m.members
	//lodge:check rpc/certificate/client-authority
	//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
	//  the members' authority can issue certificates of clients
	if p.Role == Client {
		roots = m.clients
	}
	now, over := time.Now(), time.Time{}
	for _, chain := range chains {
		//lodge:check rpc/certificate/authority
		//  [run=TestWhoMayCall|TestEveryMethod|TestClientAuthority|TestKindsOf|TestNoTLS|TestClientPins]
		//  the clients' authority can issue certificates of members
		if !roots.contains(chain[len(chain)-1]) {
			continue
		}
		//lodge:check rpc/certificate/expired [swap=!now.After(over)=>true]
		//  [run=TestCertificateExpires] a connection outlives its certificate
		if over = until(chain); !now.After(over) {
			p.Auth = ByCertificate
			return p, nil
		}
	}
	if !over.IsZero() {
		return Principal{}, Errorf(Unauthenticated, "renew the certificate, and connect again", "the certificate of %s, or of its authority, has expired at %s",
			p.Name, over.UTC().Format(time.RFC3339))
	}
	return Principal{}, Errorf(Forbidden, "", "the certificate of %s is not from the authority for a %s", p.Name, p.Role)
}

// until returns when the first certificate of a chain expires.
func until(chain []*x509.Certificate) time.Time {
	first := chain[0].NotAfter
	for _, c := range chain[1:] {
		//lodge:check rpc/certificate/issuer-expired [run=TestUntil] a connection outlives the
		//  certificate of its authority
		if c.NotAfter.Before(first) {
			first = c.NotAfter
		}
	}
	return first
}

// token returns the client that a token belongs to.
func (d *Directory) token(ctx context.Context, tokens Tokens, raw string) (Principal, *Error) {
	t, refused := tokens.Verify(ctx, raw)
	//lodge:check rpc/token/verified [run=TestCertificateOrToken|TestNoTokens] a token that its
	//  issuer did not sign is accepted
	if refused != nil {
		return Principal{}, refused
	}
	entry, ok := d.subjects[t.Subject]
	if !ok || entry.principal.Role != Client {
		return Principal{}, Errorf(Forbidden, "add its subject to this process's clients", "the token's subject is not known here")
	}
	for name, want := range entry.claims {
		//lodge:check rpc/token/claims [run=TestCertificateOrToken|TestNoTokens] a token without the
		//  required claims is accepted
		if !claims(t.Claims[name], want) {
			return Principal{}, Errorf(Forbidden, "have the issuer grant it", "the token of client %s lacks the required claim %s", entry.principal.Name, name)
		}
	}
	p := entry.principal
	p.Auth = ByToken
	return p, nil
}

// claims reports whether a claim has a value: it equals this string or boolean, or is a list that
// contains it.
func claims(got any, want string) bool {
	switch got := got.(type) {
	case string:
		return got == want
	case bool:
		return strconv.FormatBool(got) == want
	case []any:
		return slices.ContainsFunc(got, func(one any) bool {
			s, ok := one.(string)
			return ok && s == want
		})
	}
	return false
}
