package hardness

import "fmt"

// LeastLogFailure bounds log2 of the probability that an operation of a set for new keys fails.
const LeastLogFailure = -128

// Standing holds the properties that decide whether a set may make new keys.
type Standing struct {
	Set        string
	Successor  string  // of a legacy set: the set to make new keys with
	Insecure   bool    // for tests only
	Bits       Bits    // the least of all samples that the set publishes
	Exact      bool    // its operations never fail: noise is bounded
	LogFailure float64 // log2 of the worst failure of an operation, by the noise model, unless Exact
}

// reason returns the requirement that a set does not meet, or "".
func (s Standing) reason() string {
	switch {
	case s.Bits.Classical < Least:
		return fmt.Sprintf("%.1f bits of classical security, where new keys need %d", s.Bits.Classical, Least)
	case s.LogFailure > LeastLogFailure && !s.Exact:
		return fmt.Sprintf("operations fail with probability up to 2^%.0f, where new keys need 2^%d", s.LogFailure, LeastLogFailure)
	}
	return ""
}

// Check returns an error unless the set is for tests, is legacy, or meets both requirements: Least
// bits of security, and failures with probability at most 2^LeastLogFailure. A legacy set must not
// meet both.
func (s Standing) Check() error {
	reason := s.reason()
	//lodge:check hardness/set-bound run=TestStanding a set below 128 bits or above 2^-128 ships
	if reason != "" && !s.Insecure && s.Successor == "" {
		return fmt.Errorf("%s", reason)
	}
	if reason == "" && s.Successor != "" {
		return fmt.Errorf("legacy without a reason: it has %.1f bits and failures of 2^%.0f", s.Bits.Classical, s.LogFailure)
	}
	return nil
}

// CheckNewKeys returns a *LegacyError if the set is legacy.
func (s Standing) CheckNewKeys() error {
	//lodge:check hardness/legacy-refusal run=TestStanding new keys are made with a set that is known to be too weak
	if s.Successor != "" {
		return &LegacyError{Set: s.Set, Successor: s.Successor, Reason: s.reason()}
	}
	return nil
}

// A LegacyError refuses new keys of a set that existing keys may use.
type LegacyError struct{ Set, Successor, Reason string }

func (e *LegacyError) Error() string {
	return fmt.Sprintf("set %s is legacy (%s): its existing keys work, and new keys are made with %s", e.Set, e.Reason, e.Successor)
}
