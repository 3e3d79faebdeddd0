package hardness

import (
	"errors"
	"strings"
	"testing"
)

// A set below a bound ships only for tests or as legacy, and every legacy set is below a bound.
func TestStanding(t *testing.T) {
	good, weak, failing := Bits{128, 110}, Bits{127.9, 110}, -127.0
	for name, c := range map[string]struct {
		standing Standing
		ok       bool
	}{
		"exact":                 {Standing{Bits: good, Exact: true}, true},
		"always fails":          {Standing{Bits: good}, false},
		"good":                  {Standing{Bits: good, LogFailure: -128}, true},
		"weak":                  {Standing{Bits: weak, LogFailure: -200}, false},
		"no estimate":           {Standing{}, false},
		"fails":                 {Standing{Bits: good, LogFailure: failing}, false},
		"weak, for tests":       {Standing{Bits: weak, Insecure: true}, true},
		"weak, legacy":          {Standing{Bits: weak, Successor: "next"}, true},
		"fails, legacy":         {Standing{Bits: good, LogFailure: failing, Successor: "next"}, true},
		"legacy without reason": {Standing{Bits: good, LogFailure: -128, Successor: "next"}, false},
	} {
		if err := c.standing.Check(); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	var legacy *LegacyError
	err := Standing{Set: "old", Successor: "next", Bits: weak}.CheckNewKeys()
	if !errors.As(err, &legacy) || legacy.Set != "old" || legacy.Successor != "next" || !strings.Contains(err.Error(), "127.9 bits") {
		t.Errorf("legacy: %v", err)
	}
	err = Standing{Set: "old", Successor: "next", Bits: good, LogFailure: failing}.CheckNewKeys()
	if err == nil || !strings.Contains(err.Error(), "2^-127") {
		t.Errorf("failing: %v", err)
	}
	if err := (Standing{Set: "new", Bits: good, Exact: true}).CheckNewKeys(); err != nil {
		t.Errorf("current: %v", err)
	}
}
