package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/params"
)

func options(t testing.TB, sets ...string) *Options {
	o := &Options{Duration: time.Microsecond}
	for _, name := range sets {
		set, err := params.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		o.Sets = append(o.Sets, set)
	}
	return o
}

func names(rows []Row) (list []string) {
	for _, r := range rows {
		list = append(list, r.Names...)
	}
	return list
}

// Every row gives the results that it announces, with times above 0, and leaves the path and the
// threads as they were.
func TestRows(t *testing.T) {
	o := options(t, "insecure-8-64", "insecure-6")
	rows := append(o.Kernels(), o.Operations()...)
	path := kernel.Selected()
	list, err := Run(t.Context(), rows, regexp.MustCompile(""), 0, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if kernel.Selected() != path {
		t.Errorf("path %v was selected before, %v is now", path, kernel.Selected())
	}
	var got []string
	for _, r := range list {
		got = append(got, r.Name)
		if r.Value <= 0 || math.IsInf(r.Value, 0) || r.Unit == "" || r.What == "" {
			t.Errorf("%+v", r)
		}
		rival := strings.Contains(r.What, "Lattigo")
		if rival && r.LattigoRatio == nil {
			t.Errorf("%s has no ratio to Lattigo's", r.Name)
		}
	}
	if want := names(rows); !slices.Equal(got, want) {
		t.Errorf("results %v, want %v", got, want)
	}
	if slices.Sort(got); len(slices.Compact(got)) != len(list) {
		t.Error("a name appears twice")
	}
}

// Gates give right results, and every row has the figures that it announces.
func TestMultikeyRows(t *testing.T) {
	o := options(t)
	o.Gates, o.Resident = AllGates()[5:], func() uint64 { return 1 }
	rows := o.Multikey()
	list, err := Run(t.Context(), rows, regexp.MustCompile(""), 0, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		got = append(got, r.Name)
		if r.Value <= 0 || math.IsInf(r.Value, 0) || r.Unit == "" || r.What == "" {
			t.Errorf("%+v", r)
		}
	}
	if want := names(rows); !slices.Equal(got, want) || len(got) != 7 {
		t.Errorf("results %v, want %v", got, want)
	}
}

// Products are right, and their figures those that are announced.
func TestLinearRows(t *testing.T) {
	o := options(t)
	o.Resident = func() uint64 { return 1 }
	o.Linear = LinearShapes{
		Vectors: []LinearVector{{Set: "insecure-V6-32", Rows: 20, Cols: 10}},
		Proved:  []LinearVector{{Set: "insecure-V6-32-proved", Rows: 20, Cols: 10}},
		Batches: []LinearBatch{{Set: "insecure-V6-32", Rows: 30, Cols: 2, Count: 3}},
		Products: []LinearProduct{{Name: "small", Set: "insecure-P6-40", Shape: linear.ProductShape{
			Rows: 3, Inner: 4, Cols: 5, MaxLeft: 7, MaxRight: 9,
		}}},
	}
	rows := o.LinearAlgebra()
	list, err := Run(t.Context(), rows, regexp.MustCompile(""), 0, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, r := range list {
		got = append(got, r.Name)
		if r.Value <= 0 || math.IsInf(r.Value, 0) || r.Unit == "" || r.What == "" {
			t.Errorf("%+v", r)
		}
	}
	if want := names(rows); !slices.Equal(got, want) || len(got) != 37 {
		t.Errorf("results %v, want %v", got, want)
	}
}

func TestNames(t *testing.T) {
	o := options(t, Headline, params.Default)
	got := names(append(o.Kernels(), o.Operations()...))
	for _, want := range []string{
		"ntt_n14_50bit", "intt_n14_50bit", "ntt_n14_60bit", "ntt_n14_61bit", "matmul_mac", "matmul_d128_s14_64", "matmul_d128_s14_64_plain",
		"mul_s14_64", "evk_wire_bytes_d128", "matmul_d128_s14_32", "evk_wire_bytes_d128_s14_32", "pack_p64", "unpack_p4096", "field_mul_p128",
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %s", want)
		}
	}
}

// On the plain path there is nothing to compare with the plain path.
func TestPlainHasNoPlainRatio(t *testing.T) {
	before := kernel.Selected()
	defer func() { _ = kernel.Select(before) }()
	if err := kernel.Select(kernel.Plain); err != nil {
		t.Fatal(err)
	}
	o := options(t, "insecure-6")
	list, err := Run(t.Context(), o.Kernels(), regexp.MustCompile("^ntt_n14_50bit$"), 0, func(string) {})
	if err != nil || len(list) != 1 || list[0].PlainRatio != nil || list[0].LattigoRatio == nil {
		t.Errorf("%+v, %v", list, err)
	}
}

func TestCompare(t *testing.T) {
	var order []string
	list := []contender{
		{by: "a", call: func() error { order = append(order, "a"); return nil }, per: 2},
		{by: "b", call: func() error { order = append(order, "b"); return nil }},
	}
	before := kernel.Selected()
	defer func() { _ = kernel.Select(before) }()
	runs, err := compare(t.Context(), 5*time.Millisecond, list)
	if err != nil {
		t.Fatal(err)
	}
	changes := len(slices.Compact(order))
	n := len(runs[0].times)
	alone := n == 1 && changes == 2 // a machine that stood still: the first calls count
	if n == 0 || n != len(runs[1].times) || changes != 2*n+2 && !alone {
		t.Errorf("%d and %d turns, %d changes", n, len(runs[1].times), changes)
	}
	broken := fmt.Errorf("broken")
	if _, err := compare(t.Context(), time.Second, []contender{{call: func() error { return broken }}}); err == nil {
		t.Error("a call that fails is measured")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compare(ctx, time.Second, list[:1]); err == nil {
		t.Error("an ended context is not seen")
	}
}

func TestMedian(t *testing.T) {
	if m := Median([]float64{5, 1, 9}); m != 5 {
		t.Error(m)
	}
	if m := Median([]float64{4, 1, 9, 2}); m != 3 {
		t.Error(m)
	}
	if m := medianRatio([]float64{2, 9, 40}, []float64{1, 3, 10}); m != 3 {
		t.Error(m)
	}
}

// Run omits rows and results that do not match the filter, and rejects rows whose results differ
// from their names.
func TestRun(t *testing.T) {
	row := func(announced []string, results ...string) Row {
		return Row{Names: announced, Run: func(context.Context) (list []Result, err error) {
			for _, name := range results {
				list = append(list, Result{Name: name})
			}
			return list, nil
		}}
	}
	fails := Row{Names: []string{"fails"}, Run: func(context.Context) ([]Result, error) { return nil, fmt.Errorf("broken") }}
	list, err := Run(t.Context(), []Row{row([]string{"a", "b"}, "a", "b"), fails}, regexp.MustCompile("^b"), 0, func(string) {})
	if err != nil || len(list) != 1 || list[0].Name != "b" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := Run(t.Context(), []Row{fails}, regexp.MustCompile("^fials"), 0, func(string) {}); err == nil {
		t.Errorf("a filter that nothing matches gives %v", list)
	}
	for _, bad := range []Row{fails, row([]string{"a", "b"}, "a"), row([]string{"a"}, "b"), row([]string{"a"}, "a", "b")} {
		if _, err := Run(t.Context(), []Row{bad}, regexp.MustCompile(""), 0, func(string) {}); err == nil {
			t.Errorf("%v passes", bad.Names)
		}
	}
}

func TestFormats(t *testing.T) {
	half := 0.5
	list := []Result{
		{Name: "ntt_n14_50bit", Unit: "us", Value: 20, LattigoRatio: &half, What: "a transform",
			runs: []run{{by: "ifma", times: []float64{2e-5, 3e-5}}, {by: "lattigo", times: []float64{1e-5}}}},
		{Name: "peak_rss_scalar", Unit: "B", Value: 1 << 29, What: "memory"},
	}
	var b bytes.Buffer
	if err := WriteJSON(&b, list); err != nil {
		t.Fatal(err)
	}
	var back []map[string]any
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back) != 2 || len(back[0]) != 5 || back[0]["lattigo_ratio"] != 0.5 || back[0]["plain_ratio"] != nil || back[1]["value"] != float64(1<<29) {
		t.Errorf("%v", back)
	}
	b.Reset()
	if err := WriteText(&b, Machine{CPU: "x"}, list); err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`^Benchmark[A-Z0-9_]\S* 1 [0-9.e+]+ \S+$`)
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 4+4 || lines[4] != "BenchmarkNttN14_50bit/by=ifma 1 20000 ns/op" {
		t.Errorf("%q", lines)
	}
	for _, l := range lines[4:] {
		if !line.MatchString(l) {
			t.Errorf("not for benchstat: %q", l)
		}
	}
	b.Reset()
	list[0].section, list[1].section = "Kernels", "Whole protocols"
	list = append(list, Result{Name: "mul_s14_64", Unit: "ms", Value: 5.66, What: "a product", section: "Operations"})
	list[1] = list[1].Wanted(1 << 30)
	if err := WritePage(&b, io.Discard, nil, ThisMachine(), "`lodge-bench all`", list); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# Benchmarks\n", "Command: `lodge-bench all`.", "## Kernels\n", "| a transform | `ntt_n14_50bit` | 20 us | 0.50x |", "| 536.9 MB |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the page has no %q:\n%s", want, b.String())
		}
	}
	b.Reset()
	if err := WriteTable(&b, list); err != nil || !strings.Contains(b.String(), "0.50x") {
		t.Errorf("%s, %v", b.String(), err)
	}
}
