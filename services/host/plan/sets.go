package plan

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Set has the properties of a parameter set that services need, for all schemes.
type Set struct {
	Name     string
	Hash     [32]byte
	Insecure bool // for tests only
	// Proved is set if key generation proves the keys and is therefore more than passively secure.
	Proved bool
	// Threshold is set for sets of threshold keys.
	Threshold bool
	// Multikey is set if every party makes its own keys of the set. Parties jointly make only masks for it.
	Multikey bool
	// Fields lists the supported fields; empty for threshold keys.
	Fields []params.FieldSpec
	// Legacy is a *hardness.LegacyError if the set makes no new keys, and nil otherwise. Existing keys work.
	Legacy error
}

// CheckNewKeys returns an *rpc.Error that names the successor if new keys of the set are refused: the set is legacy.
// A group for multi-key ciphertexts is not refused. It has no keys of its own, and existing keys need it.
func (s Set) CheckNewKeys() error {
	var legacy *hardness.LegacyError
	//lodge:check plan/legacy [tests=./services/threshold] run=TestLegacyKeys a legacy set makes threshold keys
	if !s.Multikey && errors.As(s.Legacy, &legacy) {
		return RefuseNewKeys(legacy)
	}
	return nil
}

// RefuseNewKeys is the refusal of new keys of a legacy set.
func RefuseNewKeys(legacy *hardness.LegacyError) *rpc.Error {
	return rpc.Errorf(rpc.PolicyRefused, "make keys with "+legacy.Successor+", and pin it at every party first", "no new keys: %v", legacy)
}

// Warnings returns a warning for each legacy set among the names. Unknown names are ignored.
func Warnings(names ...string) (list []string) {
	for _, name := range names {
		if set, err := Lookup(name); err == nil && set.Legacy != nil {
			list = append(list, set.Legacy.Error())
		}
	}
	return list
}

// Lookup returns the set with the given name. The error lists the known sets.
func Lookup(name string) (Set, error) {
	s, err := params.Lookup(name)
	if err == nil {
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
	m, noMultikey := multikey.Lookup(name)
	if noMultikey != nil {
		return Set{}, errors.Join(err, noLWE, noBGV, noMultikey)
	}
	return Set{Name: m.Name, Hash: m.Hash(), Insecure: m.Insecure, Threshold: true, Multikey: true, Legacy: m.CheckNewKeys()}, nil
}
