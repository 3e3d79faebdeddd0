// Package multikey holds the parts that the services for multi-key ciphertexts share at a party:
// the context that the roster pins, and the records by which parties publish and revoke their keys.
package multikey

import (
	"crypto/sha256"
	"errors"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Context is the parameter set and the common reference string of all keys of a roster. It is
// immutable and may be shared.
type Context struct {
	*multikey.Scheme
	set, crs [32]byte
}

// ContextOf prepares the context that a roster pins. The caller, which holds the pin, must decide
// whether insecure sets are allowed. The error is an *rpc.Error if the roster has no context or
// names an unknown set.
func ContextOf(m *config.Multikey) (*Context, error) {
	if m == nil {
		return nil, NotConfigured()
	}
	set, err := multikey.Lookup(m.Set)
	if err != nil {
		return nil, rpc.Errorf(rpc.Invalid, "`lodge params list` shows the sets for multi-key ciphertexts", "multikey.set of the roster: %v", err)
	}
	seed, standard := m.Bytes()
	if standard {
		seed = multikey.StandardSeed()
	}
	return newContext(set, seed)
}

func newContext(set *multikey.Set, seed [multikey.SeedSize]byte) (*Context, error) {
	s, err := multikey.New(set, seed)
	if err != nil {
		return nil, err
	}
	return &Context{s, s.Hash(), s.CRS()}, nil
}

// NotConfigured returns the error of calls that need a context.
func NotConfigured() *rpc.Error {
	return rpc.Errorf(rpc.Invalid, "add multikey, with set and seed, to the roster of all parties; docs/guides/multikey.md says how",
		"the roster of this party has no context of multi-key ciphertexts")
}

// Digest identifies the context: it is the SHA-256 of a tag, the set's hash, and the digest of the
// common reference string.
func (c *Context) Digest() [32]byte {
	b := append([]byte("lodge multikey context 1"), c.set[:]...)
	return sha256.Sum256(append(b, c.crs[:]...))
}

// Same returns an error unless the set and the reference string of keys or ciphertexts are those of
// the context. The error wraps multikey.ErrSet or multikey.ErrCRS.
func (c *Context) Same(set, crs [32]byte) error {
	switch {
	case set != c.set:
		return errors.Join(multikey.ErrSet, errors.New("want "+c.Name))
	case crs != c.crs:
		return multikey.ErrCRS
	}
	return nil
}
