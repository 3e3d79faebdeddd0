package plan

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
)

// Set is what services ask of a parameter set, of whichever scheme it is.
type Set struct {
	Name     string
	Hash     [32]byte
	Insecure bool // for tests only
	// Proved says that keys are proved as they are made, so that their generation is not only passively secure.
	Proved bool
	// Threshold says that the set is one of threshold keys.
	Threshold bool
	// Multikey says that every party makes keys of the set by itself: what parties make together for it are masks alone.
	Multikey bool
	// Fields that the set serves; of threshold keys none.
	Fields []params.FieldSpec
}

// Lookup finds a set by its name. The error names the sets that there are.
func Lookup(name string) (Set, error) {
	s, err := params.Lookup(name)
	if err == nil {
		return Set{Name: s.Name, Hash: s.Hash(), Insecure: s.Insecure, Proved: s.KeygenSecurity() == params.Proved, Fields: s.Fields}, nil
	}
	t, noLWE := lwe.Lookup(name)
	if noLWE == nil {
		return Set{Name: t.Name, Hash: t.Hash(), Insecure: t.Insecure, Threshold: true}, nil
	}
	b, noBGV := bgv.Lookup(name)
	if noBGV == nil {
		return Set{Name: b.Name, Hash: b.Hash(), Insecure: b.Insecure, Threshold: true}, nil
	}
	m, noMultikey := multikey.Lookup(name)
	if noMultikey != nil {
		return Set{}, errors.Join(err, noLWE, noBGV, noMultikey)
	}
	return Set{Name: m.Name, Hash: m.Hash(), Insecure: m.Insecure, Threshold: true, Multikey: true}, nil
}
