package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/mkdecrypt"
)

// multikeyRows are the rows of the tables of docs/guides/multikey.md: of sets, and of their noise.
func multikeyRows(t *testing.T) (sets, noise []string) {
	t.Helper()
	for _, set := range multikey.Sets() {
		s, err := multikey.New(set, multikey.StandardSeed())
		if err != nil {
			t.Fatal(err)
		}
		n, security := set.Noise(set.Parties), "none"
		if set.LogN >= 11 {
			f := set.Security()
			security = fmt.Sprintf("%.1f, %.1f (%.1f)", f.Ring.Classical, f.LWE.Classical, f.Least().Quantum)
		}
		sets = append(sets, fmt.Sprintf("| `%s` | %d | %s | 2^%.0f | 2^%.0f | %.1f MB | %.0f MB |", set.Name, set.Parties, security,
			n.Failure(n.Gate()), n.WorstFailure(), float64(s.KeySize())/1e6, float64(s.KeyMemory())/1e6))
		deviation := func(v float64) float64 { return math.Log2(v) / 2 }
		noise = append(noise, fmt.Sprintf("| `%s` | 2^%.1f | 2^%.1f | 2^%.1f | 2^%.1f |", set.Name,
			deviation(n.Accumulator()), deviation(n.Merged()), deviation(n.Switching()), deviation(n.Rounding())))
	}
	return sets, noise
}

// decryptionRows are the rows of the table of joint decryption.
func decryptionRows() (rows []string) {
	for _, set := range multikey.Sets() {
		p, err := mkdecrypt.Params(set, set.Parties, set.Parties)
		if err != nil {
			continue
		}
		rows = append(rows, fmt.Sprintf("| `%s` | 2^%.0f | %d bits |", set.Name, mkdecrypt.Failure(set, p), p.Kind.LogEta))
	}
	return rows
}

// netlistRows are the rows of the table of examples of netlists.
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

// The tables of docs/guides/multikey.md are what the engine computes.
func TestMultikeyDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "multikey.md"))
	if err != nil {
		t.Fatal(err)
	}
	sets, noise := multikeyRows(t)
	for _, rows := range [][]string{sets, noise, netlistRows(t), decryptionRows()} {
		if want := strings.Join(rows, "\n"); !strings.Contains(string(b), want+"\n\n") {
			t.Errorf("multikey.md does not have\n%s", want)
		}
	}
	if want := "The default is " + multikey.Default + "."; !strings.Contains(string(b), want) {
		t.Errorf("multikey.md does not have %q", want)
	}
}
