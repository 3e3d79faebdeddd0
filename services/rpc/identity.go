package rpc

import (
	"context"
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/peer"
)

// Role is what an authenticated caller is to this process.
type Role string

// The roles. A caller has exactly one.
const (
	Peer        Role = "peer"
	Coordinator Role = "coordinator"
	Client      Role = "client"
)

// Principal is an authenticated caller.
type Principal struct {
	Role Role
	Name string
	// Party is the index in the roster of a Peer; -1 for others.
	Party int
	// Permissions of a Client, and the tenants whose batches it may see and draw.
	Permissions, Tenants []string
}

// May reports whether a client has the permission.
func (p Principal) May(permission string) bool { return slices.Contains(p.Permissions, permission) }

// Serves reports whether a client acts for a tenant.
func (p Principal) Serves(tenant string) bool { return slices.Contains(p.Tenants, tenant) }

// Directory says whose certificate is whose. A certificate's identity is one of
// its URI SANs (such as spiffe://lodge/party/alice) or DNS SANs, compared
// exactly. Common names mean nothing.
type Directory struct {
	entries map[string]Principal
}

// NewDirectory is empty: it knows nobody.
func NewDirectory() *Directory { return &Directory{entries: map[string]Principal{}} }

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

// sans are the identities that a certificate claims.
func sans(c *x509.Certificate) []string {
	ids := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		ids = append(ids, u.String())
	}
	return ids
}

// lookup resolves a certificate to the one principal that its names pin.
func (d *Directory) lookup(c *x509.Certificate) (Principal, *Error) {
	var found []Principal
	for _, id := range sans(c) {
		if p, ok := d.entries[id]; ok {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 0:
		return Principal{}, Errorf(Forbidden, "add the identity to this process's roster or clients",
			"no one here is named by the certificate with %q", sans(c))
	case 1:
		return found[0], nil
	}
	return Principal{}, Errorf(Forbidden, "use a certificate with one identity",
		"the certificate names %d members at once", len(found))
}

type principalKey struct{}

// Caller is the authenticated caller of the handler that ctx belongs to.
func Caller(ctx context.Context) (Principal, bool) {
	p, ok := ctx.Value(principalKey{}).(Principal)
	return p, ok
}

// WithCaller is for tests that call handlers without a connection.
func WithCaller(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// authenticate names the caller from the connection's verified certificate. A
// member's certificate must come from the members' authority, a client's from
// the clients'.
func authenticate(ctx context.Context, d *Directory, c *Credentials) (Principal, *Error) {
	pr, ok := peer.FromContext(ctx)
	if !ok {
		return Principal{}, Errorf(Unauthenticated, "", "no connection")
	}
	info, ok := pr.AuthInfo.(credentials.TLSInfo)
	if !ok || len(info.State.VerifiedChains) == 0 || len(info.State.VerifiedChains[0]) == 0 {
		return Principal{}, Errorf(Unauthenticated, "connect with a client certificate", "no verified certificate")
	}
	p, err := d.lookup(info.State.VerifiedChains[0][0])
	if err != nil {
		return Principal{}, err
	}
	roots := c.members
	if p.Role == Client {
		roots = c.clients
	}
	for _, chain := range info.State.VerifiedChains {
		if roots.contains(chain[len(chain)-1]) {
			return p, nil
		}
	}
	return Principal{}, Errorf(Forbidden, "", "the certificate of %s is not from the authority for a %s", p.Name, p.Role)
}
