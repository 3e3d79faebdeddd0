package config

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/quota"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// OIDC names the issuer whose bearer tokens clients may present instead of a certificate.
type OIDC struct {
	Issuer   string `yaml:"issuer"`       // https URL, exactly as tokens name it
	Audience string `yaml:"audience"`     // that tokens must be for; one of its own for every process
	CA       string `yaml:"ca,omitempty"` // authorities of the issuer's certificate; default those of the system
}

// Tokens verifies tokens of the issuer; nil without one.
func (o *OIDC) Tokens(log *slog.Logger) (rpc.Tokens, error) {
	if o == nil {
		return nil, nil
	}
	return oidc.New(oidc.Options{Issuer: o.Issuer, Audience: o.Audience, CA: o.CA, Log: log})
}

// Client is someone who may call this process. It has an identity, a subject or both.
type Client struct {
	Name string `yaml:"name"`
	// Identity is the URI or DNS name in its certificate.
	Identity string `yaml:"identity,omitempty"`
	// OIDCSubject is the subject of its tokens, compared exactly, and OIDCClaims are what the tokens must say besides:
	// a claim is that string or that boolean, or a list with it.
	OIDCSubject string            `yaml:"oidc_subject,omitempty"`
	OIDCClaims  map[string]string `yaml:"oidc_claims,omitempty"`
	Permissions []string          `yaml:"permissions"`
	// Tenants whose batches a party shows and gives to this client; empty means none.
	Tenants []string `yaml:"tenants,omitempty"`
	// Kinds of tuples that a party gives to this client; empty means all.
	Kinds []string `yaml:"kinds,omitempty"`
	Quota *Quota   `yaml:"quota,omitempty"`
	Rate  *Rate    `yaml:"rate,omitempty"`
	// Reservations bound what this client holds of the stock, at the coordinator.
	Reservations *ReserveLimits `yaml:"reservations,omitempty"`
}

// Quota bounds what a party gives to a client in a day, which begins at 00:00 UTC.
type Quota struct {
	// TuplesPerDay by kind; a kind that is not here is not bounded.
	TuplesPerDay map[string]uint64 `yaml:"tuples_per_day,omitempty"`
	BytesPerDay  *Bytes            `yaml:"bytes_per_day,omitempty"`
}

// Rate bounds how often a client may call, by a bucket of Burst calls.
type Rate struct {
	CallsPerSecond float64 `yaml:"calls_per_second"`
	Burst          int     `yaml:"burst"`
}

// TupleKinds are the kinds of tuples, which clients draw.
var TupleKinds = kind.Names()

// Limits are the quota for package quota; without one nothing is bounded.
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

// Quotas are the limits of all clients that have some, by name.
func Quotas(clients []Client) map[string]quota.Limits {
	m := map[string]quota.Limits{}
	for i := range clients {
		if clients[i].Quota != nil {
			m[clients[i].Name] = clients[i].Limits()
		}
	}
	return m
}

// add puts the client into a directory.
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

// oidc checks the issuer and who relies on it.
func (c *check) oidc(dir string, o *OIDC, cs []Client) {
	if o == nil {
		for i, cl := range cs {
			if cl.OIDCSubject != "" {
				c.failf("clients[%d].oidc_subject: no tokens are taken here; add oidc with issuer and audience", i)
			}
		}
		return
	}
	if !oidc.ValidIssuer(o.Issuer) {
		c.failf("oidc.issuer: %q is not an https URL without user, query and fragment", o.Issuer)
	}
	if o.Audience == "" {
		c.failf("oidc.audience: missing; write the audience that tokens for this process have")
	}
	c.path(dir, "oidc.ca", &o.CA, true)
}

func (c *check) clients(cs []Client, allowed ...string) {
	names := map[string]bool{}
	for i, cl := range cs {
		key := fmt.Sprintf("clients[%d]", i)
		c.name(key+".name", cl.Name)
		if names[cl.Name] {
			c.failf("%s.name: %q is there twice", key, cl.Name)
		}
		names[cl.Name] = true
		c.who(key, cl)
		for _, t := range cl.Tenants {
			c.name(key+".tenants", t)
		}
		for _, p := range cl.Permissions {
			if !contains(allowed, p) {
				c.failf("%s.permissions: %q is not one of %s", key, p, strings.Join(allowed, ", "))
			}
		}
		c.bounds(key, cl, contains(allowed, PermFetch))
	}
}

// who checks how a client proves who it is.
func (c *check) who(key string, cl Client) {
	if cl.Identity == "" && cl.OIDCSubject == "" {
		c.failf("%s.identity: missing; write the URI or DNS name of the client's certificate, or the oidc_subject of its tokens", key)
	}
	if len(cl.OIDCClaims) > 0 && cl.OIDCSubject == "" {
		c.failf("%s.oidc_claims: without an oidc_subject no token is this client's", key)
	}
	for name, value := range cl.OIDCClaims {
		if name == "" || value == "" {
			c.failf("%s.oidc_claims: %q: %q is not a claim with a value", key, name, value)
		}
	}
}

// bounds checks how much a client may draw, where clients draw, and how often it may call.
func (c *check) bounds(key string, cl Client, draws bool) {
	if draws && cl.Reservations != nil {
		c.failf("%s.reservations: the coordinator bounds them; write it there", key)
	}
	if !draws && cl.Quota != nil {
		c.failf("%s.quota: a party counts what its clients draw; write it there", key)
	}
	for _, k := range cl.Kinds {
		if !contains(TupleKinds, k) {
			c.failf("%s.kinds: %q is not one of %s", key, k, strings.Join(TupleKinds, ", "))
		}
	}
	if cl.Quota != nil {
		if len(cl.Quota.TuplesPerDay) == 0 && cl.Quota.BytesPerDay == nil {
			c.failf("%s.quota: empty; write tuples_per_day, bytes_per_day or both", key)
		}
		for k := range cl.Quota.TuplesPerDay {
			if !contains(TupleKinds, k) {
				c.failf("%s.quota.tuples_per_day: %q is not one of %s", key, k, strings.Join(TupleKinds, ", "))
			}
		}
	}
	if r := cl.Rate; r != nil && (!(r.CallsPerSecond > 0) || r.CallsPerSecond > maxRate || r.Burst < 1 || r.Burst > maxBurst) {
		c.failf("%s.rate: write calls_per_second above 0 and up to %g, and a burst of 1 to %d calls", key, maxRate, maxBurst)
	}
}

// Bounds of a rate: more is none.
const (
	maxRate  = 1e6
	maxBurst = 1_000_000
)
