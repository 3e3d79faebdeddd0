package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
)

// multikeyRows returns the rows of the table of multi-key sets in docs/reference/parameters.md:
// every set that is not for tests.
func multikeyRows(t *testing.T) (rows []string) {
	t.Helper()
	for _, set := range multikey.Sets() {
		if set.Insecure {
			continue
		}
		s, err := multikey.New(set, multikey.StandardSeed())
		if err != nil {
			t.Fatal(err)
		}
		p, err := mkdecrypt.Params(set, set.Parties, set.Parties)
		if err != nil {
			t.Fatal(err)
		}
		n := set.Noise(set.Parties)
		rows = append(rows, fmt.Sprintf("| `%s` | %d | 2^%.0f | 2^%.0f | 2^%.0f | %d bits | %.1f MB | %.0f MB |", set.Name, set.Parties,
			n.Failure(n.Gate()), n.WorstFailure(), mkdecrypt.Failure(set, p), p.Kind.LogEta, float64(s.KeySize())/1e6, float64(s.KeyMemory())/1e6))
	}
	return rows
}

// netlistRows returns the rows of the table of example netlists.
func netlistRows(t *testing.T) (rows []string) {
	t.Helper()
	set, err := multikey.Lookup(multikey.Default)
	if err != nil {
		t.Fatal(err)
	}
	s, err := multikey.New(set, multikey.StandardSeed())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		name      string
		arguments []int
	}{
		{"adder", []int{32}}, {"comparator", []int{32}}, {"first-price-auction", []int{4, 16}}, {"second-price-auction", []int{4, 16}},
		{"intersection-size", []int{8, 8, 16}},
	} {
		n, err := circuit.MakeExample(e.name, e.arguments...)
		if err != nil {
			t.Fatal(err)
		}
		p, err := n.Compile()
		if err != nil {
			t.Fatal(err)
		}
		var keys [][]multikey.KeyID
		owners := 2
		if strings.Contains(e.name, "auction") {
			owners = len(n.Inputs)
		}
		for i, bits := range n.Inputs {
			for range bits {
				keys = append(keys, []multikey.KeyID{{byte(i * owners / len(n.Inputs))}})
			}
		}
		cost, err := p.Cost(s, keys)
		if err != nil {
			t.Fatal(err)
		}
		arguments := strings.Trim(fmt.Sprint(e.arguments), "[]")
		rows = append(rows, fmt.Sprintf("| `%s %s` | %d | %d | %d | %d |", e.name, arguments, cost.Gates, cost.Depth, cost.Total(), cost.Rotations()))
	}
	return rows
}

// TestMultikeyDocument checks the multi-key tables of docs/reference/parameters.md and
// docs/guides/multikey.md against the engine.
func TestMultikeyDocument(t *testing.T) {
	for page, wants := range map[string][]string{
		"reference/parameters.md": {strings.Join(multikeyRows(t), "\n") + "\n\n", "The default is " + multikey.Default + "."},
		"guides/multikey.md":      {strings.Join(netlistRows(t), "\n") + "\n\n"},
	} {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", filepath.FromSlash(page)))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range wants {
			if !strings.Contains(string(b), want) {
				t.Errorf("%s lacks\n%s", page, want)
			}
		}
	}
}
