package cli

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// ThresholdSecurity is the estimate for a set of threshold keys; none for one that is for tests.
func ThresholdSecurity(s *lwe.Set) SecurityBits {
	if s.Insecure {
		return SecurityBits{}
	}
	bits := s.Security()
	return SecurityOf(bits.Ring, bits.Switch)
}

// SecurityBits are estimates of log2 of the cost of an attack. Ring and Switch are the classical figures of a set's two
// kinds of samples; Classical and Quantum are the least of all.
type SecurityBits struct {
	Ring      float64 `json:"ring"`
	Switch    float64 `json:"switch"`
	Classical float64 `json:"classical"`
	Quantum   float64 `json:"quantum"`
}

// SecurityOf are the records of a set that publishes samples of two kinds, or of one twice.
func SecurityOf(ring, other hardness.Bits) SecurityBits {
	least := ring.Min(other)
	return SecurityBits{Ring: ring.Classical, Switch: other.Classical, Classical: least.Classical, Quantum: least.Quantum}
}

// String shows bits of classical security, and of quantum security in brackets.
func (r SecurityBits) String() string { return fmt.Sprintf("%.1f (%.1f)", r.Classical, r.Quantum) }

// Column is what a list of sets shows.
func (r SecurityBits) Column(insecure bool) string {
	if insecure {
		return "insecure"
	}
	return r.String()
}

// Sentence is what demos print of keys; insecure sets have nothing to boast of.
func (r SecurityBits) Sentence(insecure bool) string {
	if insecure {
		return "none, a set for tests"
	}
	return fmt.Sprintf("%.1f bits (quantum: %.1f), by estimate", r.Classical, r.Quantum)
}

// MarkedName marks the default and legacy sets.
func MarkedName(name string, isDefault bool, successor string) string {
	switch {
	case successor != "":
		return fmt.Sprintf("%s (legacy: new keys use %s)", name, successor)
	case isDefault:
		return name + " (default)"
	}
	return name
}

// SecurityNote explains the columns of lists of sets.
const SecurityNote = "SECURITY is in bits against classical attacks, and against quantum ones in brackets, by the model of engine/hardness. "

// LegacyLine says why a set makes no new keys, or is empty.
func LegacyLine(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("legacy    %v\n", err)
}

// RefuseLegacy refuses to set up anything new with a legacy set: a cluster, a seed, or a demo's keys. Unknown names are for
// others to refuse.
func RefuseLegacy(names ...string) error {
	for _, name := range names {
		var legacy *hardness.LegacyError
		set, err := plan.Lookup(name)
		//lodge:check cli/legacy tests=./cmd/lodge run=TestLegacySetsAreRefused a new cluster is set up with a set that makes no keys
		if err == nil && errors.As(set.Legacy, &legacy) {
			return plan.RefuseNewKeys(legacy)
		}
	}
	return nil
}
