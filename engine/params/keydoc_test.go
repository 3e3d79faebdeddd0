package params

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The tables of docs/security/key-generation.md contain the values that the registry computes.
func TestTablesOfKeyGeneration(t *testing.T) {
	doc, err := os.ReadFile("../../docs/security/key-generation.md")
	if err != nil {
		t.Fatal(err)
	}
	s := lookup(t, Default)
	var rows []string
	for _, c := range []struct{ parties, dim int }{{2, 128}, {3, 1}, {3, 1024}, {16, 128}, {17, 128}} {
		p, err := s.KeyProof(c.parties, c.dim)
		if err != nil {
			t.Fatal(err)
		}
		k := provedKeys(s, c.parties, p.Challenges)
		rows = append(rows, fmt.Sprintf("| %d | %d | %d | %d | %.1f | %d | %d | %.1f | %.1f |",
			c.parties, c.dim, p.Challenges, p.V, p.MaskWidth, p.Bound, p.Bits, k.s.log2(), k.erl.log2()))
	}
	for _, n := range []int{2, 3, 8, 16, 64} {
		i, err := Resolve(s.Proved(), "p128", Use{Parties: n, Dim: 128})
		if err != nil {
			t.Fatal(err)
		}
		passive, err := Resolve(s, "p128", Use{Parties: n, Dim: 128})
		if err != nil {
			t.Fatal(err)
		}
		rows = append(rows, fmt.Sprintf("| %d | %.1f | %.1f | %d | %d | %.1f | %.1f |",
			n, i.NeedLog2, passive.NeedLog2, i.DDecPrimes, passive.DDecPrimes, log2Int(i.PhaseBound), i.FloodBits))
	}
	for _, row := range rows {
		if !strings.Contains(string(doc), row+"\n") {
			t.Errorf("the document has no row %s", row)
		}
	}
}
