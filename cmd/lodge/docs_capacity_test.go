package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

var updateDocs = flag.Bool("update", false, "write the figures of docs/operations/capacity.md that follow from docs/measurements/benchmarks.json")

// measuredFigures returns the figures of docs/measurements/benchmarks.json, bytes in bytes.
func measuredFigures(t *testing.T) map[string]float64 {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "docs", "measurements", "benchmarks.json"))
	if err != nil {
		t.Fatal(err)
	}
	var sections []struct {
		Rows []struct {
			Name  string
			Value float64
		}
	}
	if err := json.Unmarshal(b, &sections); err != nil {
		t.Fatal(err)
	}
	figures := map[string]float64{}
	for _, s := range sections {
		for _, r := range s.Rows {
			if _, ok := figures[r.Name]; ok {
				t.Errorf("docs/measurements/benchmarks.json has %s twice", r.Name)
			}
			figures[r.Name] = r.Value
		}
	}
	return figures
}

// measuredFigure returns a function that reads one of these figures.
func measuredFigure(t *testing.T) func(name string) float64 {
	figures := measuredFigures(t)
	return func(name string) float64 {
		t.Helper()
		v, ok := figures[name]
		if !ok {
			t.Fatalf("docs/measurements/benchmarks.json has no %s", name)
		}
		return v
	}
}

// The figures of docs/operations/capacity.md follow from those of
// docs/measurements/benchmarks.json. With -update the test writes them.
func TestCapacityFollowsFromTheBenchmarks(t *testing.T) {
	figure := measuredFigure(t)
	cpu, sent := 1e6/figure("scalar_triples_per_cpu_second_s14_32"), 1e6*figure("scalar_bytes_per_triple_s14_32")
	matrixCPU, matrixSent := 1e6*figure("matrix_d128_cpu_seconds_per_triple_s14_32"), 1e6*figure("matrix_d128_bytes_per_triple_s14_32")
	const element, hour, batch, rounds = 16, 3600, 12284, 41
	disk, matrixDisk := 1e6*6*element/1e9, 1e6*6*128*128*element/1e9
	hours := func(bytes, bits float64) float64 { return bytes * 8 / bits / hour }
	gb := func(name string) float64 { return figure(name) / 1e9 }
	var tables, links strings.Builder
	row := func(what, scalar, matrix string) { fmt.Fprintf(&tables, "| %s | %s | %s |\n", what, scalar, matrix) }
	row("", "scalar triples", "128 x 128 matrix triples")
	tables.WriteString("|---|---:|---:|\n")
	row("CPU-seconds", fmt.Sprintf("%.1f", cpu), thousands(matrixCPU))
	row("sent to the peer, and as much received", fmt.Sprintf("%.2f GB", sent/1e9), thousands(matrixSent/1e9)+" GB")
	row("disk until they are drawn", fmt.Sprintf("%.3f GB", disk), thousands(matrixDisk)+" GB")
	row("on two cores: hours of CPU", fmt.Sprintf("%.4f", cpu/2/hour), fmt.Sprintf("%.0f", matrixCPU/2/hour))
	row("on a link of 1 Gbit/s: hours of sending", fmt.Sprintf("%.4f", hours(sent, 1e9)), fmt.Sprintf("%.1f", hours(matrixSent, 1e9)))
	row("on a link of 100 Mbit/s: hours of sending", fmt.Sprintf("%.3f", hours(sent, 1e8)), fmt.Sprintf("%.0f", hours(matrixSent, 1e8)))
	row("memory of a party's process", fmt.Sprintf("%.2f GB", gb("peak_rss_scalar_s14_32")), fmt.Sprintf("%.2f GB", gb("peak_rss_matrix_d128_s14_32")))
	row("the same, two batches in flight", fmt.Sprintf("%.2f GB", gb("peak_rss_scalar_pipelined_s14_32")), fmt.Sprintf("%.2f GB", gb("peak_rss_matrix_d128_pipelined_s14_32")))
	fmt.Fprintf(&tables, "\nKeys for matrices of 128, once for each epoch and with three parties: %.1f s, %.2f GB sent by each party, %.2f GB of memory.\n",
		figure("keygen_d128_seconds_3_parties_s14_32"), gb("keygen_d128_bytes_3_parties_s14_32"), gb("keygen_d128_peak_rss_3_parties_s14_32"))
	fmt.Fprintf(&links, "| round trip | round trips of a batch of %s scalar triples | its bytes at 100 Mbit/s | its computation on one core |\n|---:|---:|---:|---:|\n",
		thousands(batch))
	for _, ms := range []float64{1, 50} {
		fmt.Fprintf(&links, "| %.0f ms | %.2f s | %.2f s | %.2f s |\n", ms, ms/1000*rounds, sent/1e6*batch*8/1e8, cpu/1e6*batch)
	}
	fmt.Fprintf(&links, "\nA batch of 32 triples of 128 x 128 matrices sends %.0f MB.\n", matrixSent/1e6*32/1e6)

	file := filepath.Join("..", "..", "docs", "operations", "capacity.md")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	page := string(b)
	for name, want := range map[string]string{"figures": tables.String(), "links": links.String()} {
		m := regexp.MustCompile(`(?s)(<!-- ` + name + `: .*? -->\n)(.*?)(<!-- end of ` + name + ` -->)`).FindStringSubmatchIndex(page)
		if m == nil {
			t.Fatalf("the page has no place for %s", name)
		}
		if got := strings.TrimSpace(page[m[4]:m[5]]); got != strings.TrimSpace(want) && !*updateDocs {
			t.Errorf("the page has\n%s\nthe benchmarks give\n%s\n(make figures or -update writes it)", got, want)
		}
		page = page[:m[3]] + "\n" + want + "\n" + page[m[6]:]
	}
	if *updateDocs {
		if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// thousands is a whole number with commas.
func thousands(x float64) string {
	s := strconv.FormatFloat(x, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
