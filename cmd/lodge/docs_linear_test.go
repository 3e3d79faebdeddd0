package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/linear"
)

// TestLinearDocument checks the sets, packings and bytes of docs/guides/linear.md against the
// engine.
func TestLinearDocument(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "guides", "linear.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, rows := string(b), 0
	demand := func(format string, a ...any) {
		t.Helper()
		rows++
		if row := fmt.Sprintf(format, a...); !strings.Contains(text, row) {
			t.Errorf("linear.md lacks %q", row)
		}
	}
	count := func(n int) string { return thousands(float64(n)) }
	schemes := map[string]*linear.Scheme{}
	for _, name := range linear.Names() {
		s, err := linear.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		schemes[name] = s
		demand("\n| %s | %d | %.0f | %.1f |", name, s.N(), s.LogQ(), math.Log2(float64(s.T)))
	}
	for _, packing := range []linear.Packing{linear.Forward, linear.Double, linear.Tiled} {
		p, err := schemes[linear.Unproved].PlanVector(4000, 2000, packing, 0)
		if err != nil {
			t.Fatal(err)
		}
		demand("\n| %d x %d times a shared vector | %v %d x %d | %s | %s |\n",
			p.Rows, p.Cols, p.Packing, p.PerAnswer, p.Width, count(p.UpBytes()), count(p.DownBytes()))
	}
	proved, err := schemes[linear.DefaultVector].PlanVector(4000, 2000, linear.Double, 0)
	if err != nil {
		t.Fatal(err)
	}
	demand("\n| 4000 x 2000, inputs proved | %v %d x %d | %s | %s |\n", proved.Packing, proved.PerAnswer, proved.Width, count(proved.UpBytes()), count(proved.DownBytes()))
	set := schemes[linear.DefaultVector]
	demand("\n- **Cost.** Each ciphertext of %s bytes comes with %s bytes of proof,", count(set.CiphertextSize()), count(set.ProofFrameSize(2)))
	rows-- // this is a sentence, not a row
	batch, err := schemes[linear.Unproved].PlanBatch(124*124, 4, 12, 1)
	if err != nil {
		t.Fatal(err)
	}
	demand("\n| 12 matrices of 15376 x 4, one output | | %s | %s |\n", count(batch.UpBytes()), count(batch.DownBytes()))
	for _, c := range []struct {
		set, name string
		n         int
		most      uint64
		method    linear.Method
	}{
		{"P13-17", "binary, second method", 32, 1, linear.Second},
		{"P13-40", "16-bit entries", 128, 65535, linear.FewestBytes},
	} {
		p, err := schemes[c.set].PlanProduct(linear.ProductShape{
			Rows: c.n, Inner: c.n, Cols: c.n, MaxLeft: c.most, MaxRight: c.most, Method: c.method,
		})
		if err != nil {
			t.Fatal(err)
		}
		demand("\n| %d x %d x %d, %s | %d x %d x %d | %s | %s |\n", c.n, c.n, c.n, c.name,
			p.TileRows, p.TileInner, p.TileCols, count(p.UpBytes()), count(p.DownBytes()))
	}
	if got := strings.Count(text[strings.Index(text, "## Sets"):], "\n| ") - 2; got != rows {
		t.Errorf("linear.md has %d rows of sets and packings, of which %d are checked", got, rows)
	}
}
