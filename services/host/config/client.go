package config

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// OIDC names the issuer of the bearer tokens that clients may present instead of a certificate.
type OIDC struct {
	Issuer   string `yaml:"issuer"`                     // https URL of the token issuer, exactly as tokens name it
	Audience string `yaml:"audience"`                   // audience that tokens must name; use a different one for every process
	CA       string `yaml:"ca,omitempty" check:"path?"` // authorities of the issuer's certificate; default those of the system
}

// Tokens returns a verifier of the issuer's tokens, or nil if no issuer is configured.
func (o *OIDC) Tokens(log *slog.Logger) (rpc.Tokens, error) {
	if o == nil {
		return nil, nil
	}
	return oidc.New(oidc.Options{Issuer: o.Issuer, Audience: o.Audience, CA: o.CA, Log: log})
}

// Client describes a client that may call this process. It has an identity, an OIDC subject or
// both.
type Client struct {
	Name string `yaml:"name"` // name of the client in permissions, limits and logs
	// Identity is the URI or DNS name in the client's certificate.
	Identity string `yaml:"identity,omitempty"`
	// OIDCSubject is the subject of the client's tokens, compared exactly.
	OIDCSubject string `yaml:"oidc_subject,omitempty"`
	// OIDCClaims are further claims that the tokens must have: this string or boolean, or a list
	// with it.
	OIDCClaims  map[string]string `yaml:"oidc_claims,omitempty"`
	Permissions []string          `yaml:"permissions"` // calls that the client may make, such as status, submit, fetch
	// Tenants are the owners of the tuples that the client may see and fetch; empty means none.
	Tenants []string `yaml:"tenants,omitempty"`
	// Kinds are the kinds of tuples that the client may fetch; empty means all.
	Kinds []string `yaml:"kinds,omitempty"`
	Quota *Quota   `yaml:"quota,omitempty"`
	Rate  *Rate    `yaml:"rate,omitempty"`
	// Reservations overrides reservations for this client, at the coordinator.
	Reservations *ReserveLimits `yaml:"reservations,omitempty"`
}

// Quota limits the tuples that a party delivers to a client in a day, which begins at 00:00 UTC.
type Quota struct {
	// TuplesPerDay limits the tuples that a party delivers to the client in a day (UTC), by kind.
	TuplesPerDay map[string]uint64 `yaml:"tuples_per_day,omitempty"`
	BytesPerDay  *Bytes            `yaml:"bytes_per_day,omitempty"` // the same in bytes, over all kinds
}

// Rate limits how often a client may call: a token bucket with a capacity of Burst calls.
type Rate struct {
	CallsPerSecond float64 `yaml:"calls_per_second"` // sustained rate of calls
	Burst          int     `yaml:"burst"`            // calls that the client may make at once
}

// TupleKinds are the kinds of tuples, which clients draw.
var TupleKinds = kind.Names()

// Limits converts the quota for package quota. Without a quota nothing is limited.
func (c *Client) Limits() quota.Limits {
	if c.Quota == nil {
		return quota.Limits{}
	}
	l := quota.Limits{Tuples: c.Quota.TuplesPerDay}
	if b := c.Quota.BytesPerDay; b != nil {
		n := uint64(*b)
		l.Bytes = &n
	}
	return l
}

// Quotas returns the limits of every client that has a quota, by client name.
func Quotas(clients []Client) map[string]quota.Limits {
	m := map[string]quota.Limits{}
	for i := range clients {
		if clients[i].Quota != nil {
			m[clients[i].Name] = clients[i].Limits()
		}
	}
	return m
}

// add registers the client in a directory.
func (c *Client) add(d *rpc.Directory) error {
	p := rpc.Principal{
		Role: rpc.Client, Name: c.Name, Party: -1, Identity: c.Identity, Permissions: c.Permissions, Tenants: c.Tenants, Kinds: c.Kinds,
	}
	if p.Identity == "" {
		p.Identity = "oidc:" + c.OIDCSubject
	}
	if c.Rate != nil {
		p.Rate = rpc.Rate{PerSecond: c.Rate.CallsPerSecond, Burst: c.Rate.Burst}
	}
	if c.Identity != "" {
		if err := d.Add(c.Identity, p); err != nil {
			return err
		}
	}
	if c.OIDCSubject != "" {
		return d.AddSubject(c.OIDCSubject, c.OIDCClaims, p)
	}
	return nil
}

// oidc validates the issuer and the clients that use it.
func (c *check) oidc(o *OIDC, cs []Client) {
	if o == nil {
		for i, cl := range cs {
			if cl.OIDCSubject != "" {
				c.failf("clients[%d].oidc_subject: this process accepts no tokens; add oidc with issuer and audience", i)
			}
		}
		return
	}
	if !oidc.ValidIssuer(o.Issuer) {
		c.failf("oidc.issuer: %q is not an https URL without user, query and fragment", o.Issuer)
	}
	if o.Audience == "" {
		c.failf("oidc.audience: missing; write the audience that tokens for this process name")
	}
}

func (c *check) clients(cs []Client, allowed ...string) {
	names := map[string]bool{}
	for i, cl := range cs {
		key := fmt.Sprintf("clients[%d]", i)
		c.name(key+".name", cl.Name)
		if names[cl.Name] {
			c.failf("%s.name: %q occurs twice", key, cl.Name)
		}
		names[cl.Name] = true
		c.who(key, cl)
		for _, t := range cl.Tenants {
			c.name(key+".tenants", t)
		}
		for _, p := range cl.Permissions {
			if !slices.Contains(allowed, p) {
				c.failf("%s.permissions: %q is not one of %s", key, p, strings.Join(allowed, ", "))
			}
		}
		c.bounds(key, cl, slices.Contains(allowed, PermFetch))
	}
}

// who validates how a client authenticates.
func (c *check) who(key string, cl Client) {
	if cl.Identity == "" && cl.OIDCSubject == "" {
		c.failf("%s.identity: missing; write the URI or DNS name of the client's certificate, or the oidc_subject of its tokens", key)
	}
	if len(cl.OIDCClaims) > 0 && cl.OIDCSubject == "" {
		c.failf("%s.oidc_claims: needs an oidc_subject", key)
	}
	for name, value := range cl.OIDCClaims {
		if name == "" || value == "" {
			c.failf("%s.oidc_claims: %q: %q is not a valid claim: name and value must not be empty", key, name, value)
		}
	}
}

// bounds validates the client's limits. draws reports whether clients fetch tuples from this
// process.
func (c *check) bounds(key string, cl Client, draws bool) {
	if draws && cl.Reservations != nil {
		c.failf("%s.reservations: set this limit in the coordinator's file", key)
	}
	if !draws && cl.Quota != nil {
		c.failf("%s.quota: set this limit in the parties' files", key)
	}
	for _, k := range cl.Kinds {
		if !slices.Contains(TupleKinds, k) {
			c.failf("%s.kinds: %q is not one of %s", key, k, strings.Join(TupleKinds, ", "))
		}
	}
	if cl.Quota != nil {
		if len(cl.Quota.TuplesPerDay) == 0 && cl.Quota.BytesPerDay == nil {
			c.failf("%s.quota: empty; write tuples_per_day, bytes_per_day or both", key)
		}
		for k := range cl.Quota.TuplesPerDay {
			if !slices.Contains(TupleKinds, k) {
				c.failf("%s.quota.tuples_per_day: %q is not one of %s", key, k, strings.Join(TupleKinds, ", "))
			}
		}
	}
	if r := cl.Rate; r != nil && (!(r.CallsPerSecond > 0) || r.CallsPerSecond > maxRate || r.Burst < 1 || r.Burst > maxBurst) {
		c.failf("%s.rate: write calls_per_second above 0 and up to %g, and a burst of 1 to %d calls", key, maxRate, maxBurst)
	}
}

// Largest values of Rate.
const (
	maxRate  = 1e6
	maxBurst = 1_000_000
)
