package gbfv_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/params"
)

// result holds the study's findings for one subject, by term.
type result struct {
	subject
	rows map[string]row
}

// row holds the bound of a term, the distance of the largest measurement below it, both in bits,
// and the measurements.
type row struct {
	bound, margin float64
	by            map[pattern]float64
}

// The tables are located between these lines.
const (
	tablesBegin = "<!-- Tables: written by make noise. -->\n"
	tablesEnd   = "<!-- End of tables. -->\n"
)

// writeTables replaces the tables of a file.
func writeTables(t testing.TB, path string, results []result) {
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), tablesBegin)
	_, tail, ok2 := strings.Cut(rest, tablesEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no marked lines for the tables", path)
	}
	var b strings.Builder
	fmt.Fprint(&b, head, tablesBegin)
	marginTable(t, &b, results)
	patternTable(t, &b, results)
	honestTable(&b, results)
	defaultTable(t, &b, results)
	fmt.Fprint(&b, tablesEnd, tail)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

func header(b *strings.Builder, columns ...string) {
	fmt.Fprintf(b, "| %s |\n|%s\n", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// marginTable prints the asserted margins and the observed extremes.
func marginTable(t testing.TB, b *strings.Builder, results []result) {
	fmt.Fprint(b, "\n### Margins over all instances with honest keys\n\n")
	header(b, "term", "asserted at least", "smallest", "largest", "asserted at most")
	for _, term := range terms(t) {
		least, most := math.Inf(1), math.Inf(-1)
		for _, r := range results {
			if x, ok := r.rows[term]; ok && !r.proved {
				least, most = min(least, x.margin), max(most, x.margin)
			}
		}
		if m, ok := margins[term]; ok {
			fmt.Fprintf(b, "| %s | %.1f | %.2f | %.2f | %.1f |\n", term, m.from, least, most, m.to)
		}
	}
}

// patternTable prints all measurements for the default set, p128, and the largest number of
// parties.
func patternTable(t testing.TB, b *strings.Builder, results []result) {
	i := slices.IndexFunc(results, func(r result) bool {
		return r.set == params.Default && r.field == "p128" && r.parties == 16 && !r.proved
	})
	if i < 0 {
		return
	}
	fmt.Fprintf(b, "\n### Measurements by pattern: %s, %s, %d parties, scalars\n\nlog2 of the bound and of the measurements.\n\n",
		results[i].set, results[i].field, results[i].parties)
	patterns := []pattern{honest, signs, aligned, step}
	header(b, "term", "bound", "honest", "signs", "aligned", "step")
	for _, term := range terms(t) {
		x, ok := results[i].rows[term]
		if !ok {
			continue
		}
		fmt.Fprintf(b, "| %s | %.1f", term, x.bound)
		for _, p := range patterns {
			if v, ok := x.by[p]; ok {
				fmt.Fprintf(b, " | %.1f", math.Log2(v))
			} else {
				fmt.Fprint(b, " | ")
			}
		}
		fmt.Fprint(b, " |\n")
	}
}

// honestTable prints how far honest batches stay below the bounds: in p128, or p256 for the set
// without p128, up to blocks of 16.
func honestTable(b *strings.Builder, results []result) {
	fmt.Fprint(b, "\n### Honest batches\n\nDistance below the bound in bits, if all parties are honest.\n\n")
	names := []string{"fresh", "tensor", "product", "mac.a", "mac.c", "phase"}
	header(b, append([]string{"set", "field", "n", "d"}, names...)...)
	for _, r := range results {
		if strings.HasPrefix(r.set, params.InsecurePrefix) || r.dim > 16 || r.proved || r.field != "p128" && r.field != "p256" {
			continue
		}
		fmt.Fprintf(b, "| %s | %s | %d | %d", r.set, r.field, r.parties, r.dim)
		for _, name := range names {
			x, ok := r.rows[name]
			if v, measured := x.by[honest]; ok && measured {
				fmt.Fprintf(b, " | %.1f", x.bound-math.Log2(v))
			} else {
				fmt.Fprint(b, " | ")
			}
		}
		fmt.Fprint(b, " |\n")
	}
}

// defaultTable prints every term of the default set in p128, up to blocks of 16.
func defaultTable(t testing.TB, b *strings.Builder, results []result) {
	own := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.set != params.Default || r.field != "p128" || r.dim > 16 })
	if len(own) == 0 {
		return
	}
	fmt.Fprintf(b, "\n### All terms of %s\n\nlog2 of the bound. In brackets: the distance of the largest measurement below it, in bits.\n\n", params.Default)
	columns := []string{"term"}
	for _, r := range own {
		c := fmt.Sprintf("%s n=%d", r.field, r.parties)
		if r.dim > 1 {
			c += fmt.Sprintf(" d=%d", r.dim)
		}
		if r.proved {
			c += " proved"
		}
		columns = append(columns, c)
	}
	header(b, columns...)
	for _, term := range terms(t) {
		if term == "need" {
			continue
		}
		fmt.Fprintf(b, "| %s", term)
		for _, r := range own {
			if x, ok := r.rows[term]; ok {
				fmt.Fprintf(b, " | %.1f (%.1f)", x.bound, x.margin)
			} else {
				fmt.Fprint(b, " | ")
			}
		}
		fmt.Fprint(b, " |\n")
	}
}
