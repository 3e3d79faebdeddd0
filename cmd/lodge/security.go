package main

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/hardness"
	"github.com/lodge-mpc/lodge/services/host/plan"
)

// securityRecords are estimates of log2 of the cost of an attack. Ring and Switch are the classical figures of a set's two
// kinds of samples; Classical and Quantum are the least of all.
type securityRecords struct {
	Ring      float64 `json:"ring"`
	Switch    float64 `json:"switch"`
	Classical float64 `json:"classical"`
	Quantum   float64 `json:"quantum"`
}

// securityOf are the records of a set that publishes samples of two kinds, or of one twice.
func securityOf(ring, other hardness.Bits) securityRecords {
	least := ring.Min(other)
	return securityRecords{Ring: ring.Classical, Switch: other.Classical, Classical: least.Classical, Quantum: least.Quantum}
}

// String shows bits of classical security, and of quantum security in brackets.
func (r securityRecords) String() string { return fmt.Sprintf("%.1f (%.1f)", r.Classical, r.Quantum) }

// column is what a list of sets shows.
func (r securityRecords) column(insecure bool) string {
	if insecure {
		return "insecure"
	}
	return r.String()
}

// sentence is what demos print of keys; insecure sets have nothing to boast of.
func (r securityRecords) sentence(insecure bool) string {
	if insecure {
		return "none, a set for tests"
	}
	return fmt.Sprintf("%.1f bits (quantum: %.1f), by estimate", r.Classical, r.Quantum)
}

// setName marks the default and legacy sets.
func setName(name string, isDefault bool, successor string) string {
	switch {
	case successor != "":
		return fmt.Sprintf("%s (legacy: new keys use %s)", name, successor)
	case isDefault:
		return name + " (default)"
	}
	return name
}

// securityNote explains the columns of lists of sets.
const securityNote = "SECURITY is in bits against classical attacks, and against quantum ones in brackets, by the model of engine/hardness. "

// legacyLine says why a set makes no new keys, or is empty.
func legacyLine(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("legacy    %v\n", err)
}

// refuseLegacy refuses to set up anything new with a legacy set: a cluster, a seed, or a demo's keys. Unknown names are for
// others to refuse.
func refuseLegacy(names ...string) error {
	for _, name := range names {
		var legacy *hardness.LegacyError
		set, err := plan.Lookup(name)
		//lodge:check cli/legacy run=TestLegacySetsAreRefused a new cluster is set up with a set that makes no keys
		if err == nil && errors.As(set.Legacy, &legacy) {
			return plan.RefuseNewKeys(legacy)
		}
	}
	return nil
}
