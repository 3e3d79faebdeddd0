package plan

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/catalogue"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Set is a parameter set of any scheme.
type Set struct{ catalogue.Set }

// CheckNewKeys returns an *rpc.Error that names the successor if new keys of the set are refused:
// the set is legacy. A group for multi-key ciphertexts is not refused. Such a group makes no keys,
// and existing multi-key keys need it.
func (s Set) CheckNewKeys() error {
	var legacy *catalogue.LegacyError
	//lodge:check plan/legacy [tests=./services/threshold] run=TestLegacyKeys a legacy set makes threshold keys
	if !s.Multikey && errors.As(s.Legacy, &legacy) {
		return RefuseNewKeys(legacy)
	}
	return nil
}

// RefuseNewKeys returns the error for new keys of a legacy set.
func RefuseNewKeys(legacy *catalogue.LegacyError) *rpc.Error {
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
	s, err := catalogue.Lookup(name)
	return Set{s}, err
}
