package cli

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// ThresholdSecurity returns the estimated security of a set for threshold keys. It is zero for test
// sets.
func ThresholdSecurity(s *lwe.Set) SecurityBits {
	if s.Insecure {
		return SecurityBits{}
	}
	bits := s.Security()
	return SecurityOf(bits.Ring, bits.Switch)
}

// SecurityBits holds estimates of log2 of the cost of an attack. Ring and Switch are the classical
// figures for the two kinds of samples of a set; Classical and Quantum are the minimum of both.
type SecurityBits struct {
	Ring      float64 `json:"ring"`
	Switch    float64 `json:"switch"`
	Classical float64 `json:"classical"`
	Quantum   float64 `json:"quantum"`
}

// SecurityOf returns the estimates for a set that publishes two kinds of samples. Pass one kind
// twice if there is only one.
func SecurityOf(ring, other hardness.Bits) SecurityBits {
	least := ring.Min(other)
	return SecurityBits{Ring: ring.Classical, Switch: other.Classical, Classical: least.Classical, Quantum: least.Quantum}
}

// String formats the classical security, with the quantum security in brackets.
func (r SecurityBits) String() string { return fmt.Sprintf("%.1f (%.1f)", r.Classical, r.Quantum) }

// Column formats the estimates for the table of sets.
func (r SecurityBits) Column(insecure bool) string {
	if insecure {
		return "insecure"
	}
	return r.String()
}

// Sentence formats the estimates for the output of demos.
func (r SecurityBits) Sentence(insecure bool) string {
	if insecure {
		return "none, the set is for tests only"
	}
	return fmt.Sprintf("%.1f bits (quantum: %.1f), estimated", r.Classical, r.Quantum)
}

// MarkedName returns the name of a set, marked if it is the default or a legacy set.
func MarkedName(name string, isDefault bool, successor string) string {
	switch {
	case successor != "":
		return fmt.Sprintf("%s (legacy: new keys use %s)", name, successor)
	case isDefault:
		return name + " (default)"
	}
	return name
}

// SecurityNote explains the security columns in tables of sets.
const SecurityNote = "SECURITY is in bits against classical attacks, with quantum attacks in brackets, by the model of engine/hardness. "

// LegacyLine explains why no new keys can be made with a set. It is empty if err is nil.
func LegacyLine(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("legacy    %v\n", err)
}

// RefuseLegacy returns an error if one of the sets is a legacy set, with which no new cluster, seed
// or demo key may be made. It ignores unknown names, which the caller rejects.
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
