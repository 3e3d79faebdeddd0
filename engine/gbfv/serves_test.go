package gbfv_test

import (
	"testing"

	"github.com/lodge-mpc/lodge/engine/params"
)

// Serves rejects an instance of another set, field or number of parties: its proofs would differ in
// size and soundness.
func TestServes(t *testing.T) {
	s := newScheme(t, "insecure-8", "p128")
	instance := func(set, field string, parties int) *params.Instance {
		p, err := params.Lookup(set)
		if err != nil {
			t.Fatal(err)
		}
		i, err := params.Resolve(p, field, params.Use{Parties: parties, Dim: 1})
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	if err := s.Serves(instance("insecure-8", "p128", 3), 3); err != nil {
		t.Error(err)
	}
	for what, i := range map[string]*params.Instance{
		"set": instance("insecure-6", "p128", 3), "field": instance("insecure-8", "p64", 3), "number of parties": instance("insecure-8", "p128", 2),
	} {
		if s.Serves(i, 3) == nil {
			t.Errorf("Serves accepted another %s", what)
		}
	}
}
