// Package catalogue describes the named parameter sets of all schemes in one form, for services
// that need a set's name, hash or standing and do not compute with it. The sets themselves are data
// of the packages [params], [lwe], [bgv] and [multikey]. Sets of package linear are not in the
// catalogue: their two parties need no keys of a group.
package catalogue

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// A Set describes a parameter set of any scheme.
type Set struct {
	Name     string
	Hash     [32]byte
	Insecure bool // for tests only
	// Proved reports whether key generation proves the keys, and is therefore more than passively
	// secure.
	Proved bool
	// Threshold marks the sets of threshold keys.
	Threshold bool
	// Multikey marks the sets for which every party makes its own keys. Parties jointly make only
	// masks for it.
	Multikey bool
	// Fields lists the supported fields. It is empty for threshold keys.
	Fields []params.FieldSpec
	// Legacy is a *LegacyError if the set makes no new keys, and nil otherwise. Existing keys work.
	Legacy error
}

// LegacyError refuses new keys of a legacy set and names its successor.
type LegacyError = hardness.LegacyError

// SeedSize is the size in bytes of the seed of a multi-key common reference string.
const SeedSize = multikey.SeedSize

// Lookup finds a set by name. The error lists the known sets of all schemes.
func Lookup(name string) (Set, error) {
	s, noTriples := params.Lookup(name)
	if noTriples == nil {
		return Set{Name: s.Name, Hash: s.Hash(), Insecure: s.Insecure, Proved: s.KeygenSecurity() == params.Proved, Fields: s.Fields}, nil
	}
	t, noLWE := lwe.Lookup(name)
	if noLWE == nil {
		return Set{Name: t.Name, Hash: t.Hash(), Insecure: t.Insecure, Threshold: true, Legacy: t.CheckNewKeys()}, nil
	}
	b, noBGV := bgv.Lookup(name)
	if noBGV == nil {
		return Set{Name: b.Name, Hash: b.Hash(), Insecure: b.Insecure, Threshold: true}, nil
	}
	m, err := Multikey(name)
	if err != nil {
		return Set{}, errors.Join(noTriples, noLWE, noBGV, err)
	}
	return m, nil
}

// Multikey finds a set for multi-key ciphertexts by name. The error is a *keyset.UnknownError.
func Multikey(name string) (Set, error) {
	m, err := multikey.Lookup(name)
	if err != nil {
		return Set{}, err
	}
	return Set{Name: m.Name, Hash: m.Hash(), Insecure: m.Insecure, Threshold: true, Multikey: true, Legacy: m.CheckNewKeys()}, nil
}
