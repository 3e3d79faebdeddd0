package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
)

var everything = regexp.MustCompile("")

// Each published table is complete, and each of its rows has either a measurement or the reason why
// there is none.
func TestPublishedTables(t *testing.T) {
	names := map[string]bool{}
	for _, x := range tables() {
		if names[x.Name] || x.Source == "" || x.Title == "" || len(x.Rows) == 0 || len(x.Differs) == 0 {
			t.Errorf("%s: a name that appears twice, or a head that is not complete", x.Name)
		}
		names[x.Name] = true
		labels, published := map[string]bool{}, 0
		for _, r := range x.Rows {
			if labels[r.Label] {
				t.Errorf("%s: two rows %q", x.Name, r.Label)
			}
			labels[r.Label] = true
			if _, ok := packings[r.Of.Packing]; !ok && x.Measure == "vector" {
				t.Errorf("%s, %s: unknown packing %q", x.Name, r.Label, r.Of.Packing)
			}
			if len(r.Figures) != len(x.Columns) {
				t.Errorf("%s, %s: %d figures for %d columns", x.Name, r.Label, len(r.Figures), len(x.Columns))
			}
			for _, f := range r.Figures {
				if f > 0 {
					published++
				}
			}
		}
		if published == 0 {
			t.Errorf("%s has no published figure", x.Name)
		}
	}
	rows := options(t).Papers(everything, nil, false)
	missing := map[string]string{}
	for _, x := range tables() {
		for _, r := range x.Rows {
			missing[x.Name+"/"+r.Label] = r.Missing
		}
	}
	if len(rows) != len(missing) {
		t.Errorf("%d rows of %d", len(rows), len(missing))
	}
	for _, r := range rows {
		if r.Missing != missing[r.Table+"/"+r.Label] || r.Missing == "" && r.Time <= 0 {
			t.Errorf("%s, %s is not measured: %q", r.Table, r.Label, r.Missing)
		}
	}
}

// withoutProcesses drops the rows that need party processes. The test of the command covers those.
func withoutProcesses(rows []PaperRow) (kept []PaperRow) {
	for _, r := range rows {
		if r.Table != "matrigear-4" && !strings.Contains(r.Label, "processes") {
			kept = append(kept, r)
		}
	}
	return kept
}

func plenty() uint64 { return 0 }

// With tiny parameters every row gives a figure for each column, and tables fit into 80 columns.
func TestPaperRows(t *testing.T) {
	o := options(t)
	rows := withoutProcesses(o.Papers(everything, nil, true))
	list, err := RunPapers(t.Context(), rows, plenty, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	measured := map[string]int{}
	for _, c := range list {
		switch {
		case c.Value != nil:
			measured[c.Table]++
			if c.Missing != "" || c.With == "" || *c.Value < 0 || c.Paper != nil && (c.Unit == "s" || c.Unit == "B") != (c.Ratio != nil) {
				t.Errorf("%+v", c)
			}
		case c.Missing == "" || strings.Contains(c.Missing, "failed"):
			t.Errorf("%+v", c)
		}
	}
	for _, name := range PaperTables() {
		if measured[name] == 0 && name != "matrigear-4" {
			t.Errorf("%s has no figure of ours", name)
		}
	}
	var text bytes.Buffer
	if err := WriteComparison(&text, ThisMachine(), list); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > width {
			t.Errorf("a line of %d columns: %q", n, line)
		}
	}
	for _, want := range []string{"56.62 ms", "missing: Params III", "[1]", "paper/ours", "1.45 GB"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	var page, data, asJSON bytes.Buffer
	if err := errors.Join(WriteComparisonPage(&page, &data, nil, ThisMachine(), "`x`", list), WriteJSON(&asJSON, list)); err != nil {
		t.Fatal(err)
	}
	var back []Compared
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil || len(back) != len(list) {
		t.Errorf("%d cells in JSON, %v", len(back), err)
	}
	if !strings.Contains(page.String(), "| log p = 128, Params I | 56.62 ms |") || strings.Contains(page.String(), "| - |") {
		t.Errorf("the page has no row of table 5, or rows without a comparison\n%s", page.String())
	}
	var stored []Section[Cell]
	if err := json.Unmarshal(data.Bytes(), &stored); err != nil {
		t.Fatal(err)
	}
	cells := 0
	for _, s := range stored {
		cells += len(s.Rows)
	}
	if cells != len(list) {
		t.Errorf("the file has %d of %d cells", cells, len(list))
	}
}

// TestBatchOfProvedInputs measures the sum over matrices twice: the evaluator checks the proof, and
// the second measurement needs new keys.
func TestBatchOfProvedInputs(t *testing.T) {
	w, err := newLinearBatch(LinearBatch{Set: "insecure-V6-32-proved", Rows: 4, Cols: 4, Count: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.once(); err != nil {
		t.Fatal(err)
	}
}

// TestNoFailedRows: every figure of ours that the file lacks has a reason other than a failure.
func TestNoFailedRows(t *testing.T) {
	cells := 0
	for _, s := range figures[Cell](t, "benchmarks-papers") {
		for _, c := range s.Rows {
			cells++
			if c.Value == nil && c.Missing == "" || strings.Contains(c.Missing, "failed") {
				t.Errorf("%s has no figure: %+v", s.Heading, c)
			}
		}
	}
	if cells < 300 {
		t.Errorf("the file has %d cells", cells)
	}
}

// The moduli of Crypt-CNN's table 3 give the number of slots in the table. The even modulus in the
// paper's text gives 0.
func TestSlotsModulo(t *testing.T) {
	all := tables()
	slots := all[slices.IndexFunc(all, func(x table) bool { return x.Measure == "slots" })]
	for _, r := range slots.Rows {
		for i, modulus := range r.Of.Plain {
			if got := slotsModulo(modulus, r.Of.Dim); float64(got) != r.Figures[i] {
				t.Errorf("%s: t = %d gives %d slots", r.Label, modulus, got)
			}
		}
	}
	if got := slotsModulo(338, 1<<13); got != 0 {
		t.Errorf("t = 338 gives %d slots", got)
	}
}

// A flag for the field or the dimension changes rows, and drops the published figure of another
// dimension.
func TestPaperFlags(t *testing.T) {
	o := options(t)
	o.Field, o.Dimension = "p256", 256
	labels := map[string]PaperRow{}
	for _, r := range o.Papers(everything, nil, false) {
		if r.Missing == "" && r.row.Of.Field != "" && r.row.Of.Field != "p256" {
			t.Errorf("%s, %s is of another field", r.Table, r.Label)
		}
		labels[r.Table+"/"+r.Label] = r
	}
	if r, ok := labels["matrigear-6/log p = 256, Params I, d = 256"]; !ok || r.row.Figures[0] != 0 || r.with != "S14-64, p256, d = 256" {
		t.Errorf("%+v", r)
	}
	if _, ok := labels["matrigear-7/d = 256, log p = 256"]; !ok {
		t.Error("table 7 has no row for the dimension")
	}
	if _, ok := labels["matrigear-7/d = 128, log p = 128"]; ok {
		t.Error("table 7 has a row for another dimension")
	}
}

// A row for which memory does not suffice says so, and others are measured; a row that fails does
// not end the run.
func TestPaperMemory(t *testing.T) {
	small := func(context.Context) ([]float64, error) { return []float64{1, 2}, nil }
	fails := func(context.Context) ([]float64, error) { return nil, errors.New("broken") }
	x := &table{Name: "x", Columns: []column{{"unit", "s"}, {"amortised", "s"}}}
	r := &tableRow{Figures: []float64{1, 0}}
	rows := []PaperRow{{Memory: 2e9, run: small, table: x, row: r}, {Memory: 1e9, run: small, table: x, row: r}, {run: fails, table: x, row: r}}
	list, err := RunPapers(t.Context(), rows, func() uint64 { return 1500e6 }, func(string) {})
	if err != nil || len(list) != 4 {
		t.Fatalf("%v, %v", list, err)
	}
	if list[0].Missing != "needs about 2 GB of memory, 1.5 GB are available" || list[1].Value == nil || *list[2].Value != 2 || list[3].Missing != "failed: broken" {
		t.Errorf("%+v", list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := RunPapers(ctx, rows[2:], plenty, func(string) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context gives %v", err)
	}
}

// Rows for which memory does not suffice are skipped with a line, and an error if no others are
// left.
func TestRunSkips(t *testing.T) {
	row := func(name string, memory uint64) Row {
		return Row{Names: []string{name}, Memory: memory, Run: func(context.Context) ([]Result, error) { return []Result{{Name: name}}, nil }}
	}
	var said []string
	list, err := Run(t.Context(), []Row{row("large", 3e9), row("small", 1e9)}, everything, 2e9, func(line string) { said = append(said, line) })
	if err != nil || len(list) != 1 || list[0].Name != "small" || said[0] != "large: skipped: it needs about 3 GB of memory, 2 GB are available" {
		t.Errorf("%v, %v, %q", list, err, said)
	}
	if list, err := Run(t.Context(), []Row{row("large", 3e9)}, everything, 2e9, func(string) {}); err == nil {
		t.Errorf("nothing is measured, and that is no error: %v", list)
	}
}

// The size of keys that is computed is that of keys that are made.
func TestKeyBytes(t *testing.T) {
	for _, name := range []string{"insecure-6", "insecure-8-64"} {
		set, err := params.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := gbfv.New(set, set.Fields[0])
		if err != nil {
			t.Fatal(err)
		}
		keys, err := newKeys(t.Context(), s, 2, 8)
		if err != nil {
			t.Fatal(err)
		}
		total := 0
		for i := range keygen.EncodedFrames(s, 8) {
			total += len(keys.public.Frame(s, i))
		}
		if got := keyBytes(set, 8); got != uint64(total) {
			t.Errorf("%s: %d bytes, made are %d", name, got, total)
		}
	}
}

// A page keeps the sections that a run did not measure, and replaces those that it did.
func TestPageKeepsSections(t *testing.T) {
	m := ThisMachine()
	var page, data bytes.Buffer
	want := 1.0
	write := func(list ...Result) {
		old := bytes.Clone(data.Bytes())
		page.Reset()
		data.Reset()
		if err := WritePage(&page, &data, old, m, "`first`", list); err != nil {
			t.Fatal(err)
		}
	}
	result := func(name string, value float64, section string) Result {
		return Result{Name: name, Unit: "s", Value: value, section: section, Want: &want, WantRatio: &want}
	}
	write(result("a", 1, "Kernels"), result("b", 2, "Stock"))
	write(result("a", 3, "Kernels"), result("c", 4, "Gates"), Result{Name: "detail", Unit: "s", Value: 5, section: "Gates"})
	text := page.String()
	for _, want := range []string{"| `a` | 3 s |", "| `b` | 2 s |", "| `c` | 4 s |"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q appears %d times in\n%s", want, strings.Count(text, want), text)
		}
	}
	if strings.Contains(text, "`a` | 1 s |") || strings.Count(text, "## Kernels") != 1 || strings.Contains(text, "`detail`") {
		t.Errorf("the page is\n%s", text)
	}
	if strings.Count(data.String(), `"heading": "Kernels"`) != 1 || !strings.Contains(data.String(), `"name": "detail"`) {
		t.Errorf("the figures are\n%s", data.String())
	}
	if err := WritePage(io.Discard, io.Discard, []byte("{"), m, "", nil); err == nil {
		t.Error("a broken file of figures is overwritten")
	}
}

func TestGoals(t *testing.T) {
	list := []Result{{Name: "mul_s14_64", Value: 5}, {Name: "scalar_triples_per_cpu_second", Value: 30000}, {Name: "other", Value: 1}}
	AddGoals(list)
	if *list[0].WantRatio != 0.5 || *list[1].WantRatio != 2 || list[2].Want != nil {
		t.Errorf("%+v", list)
	}
}

// The field and the dimension are part of the names of results that depend on them. Check returns
// an error for bad options.
func TestOptionsInNames(t *testing.T) {
	o := options(t, Headline)
	o.Field, o.Dimension, o.Parties = "p512", 512, 5
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(names(append(o.Kernels(), o.Operations()...)), " ") + " "
	for _, want := range []string{"matmul_mac_d512 ", "field_mul_p512 ", "mul_s14_64_p512 ", "matmul_d512_s14_64_p512 ", "evk_wire_bytes_d512_p512 "} {
		if !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
	if strings.Contains(got, "field_mul_p128") {
		t.Error("another field is measured too")
	}
	for _, bad := range []Options{{Field: "p64"}, {Dimension: 100}, {Dimension: 1024}, {Dimension: 512, Field: "p4096", Parties: 2000}} {
		bad.Sets = o.Sets
		if err := bad.Check(); err == nil {
			t.Errorf("%+v passes", bad)
		}
	}
	if g := GatesFor(AllGates(), 5); len(g) != 1 || g[0].Parties != 5 || g[0].Set != "M11-8-128" {
		t.Errorf("%+v", g)
	}
	if g := GatesFor(AllGates(), 100); g != nil {
		t.Errorf("%+v", g)
	}
}
