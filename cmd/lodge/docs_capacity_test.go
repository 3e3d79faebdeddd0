package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// The figures of docs/operations/capacity.md follow from those of docs/benchmarks-xeon.md.
func TestCapacityFollowsFromTheBenchmarks(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	measured, page := read("benchmarks-xeon.md"), read("operations/capacity.md")
	figure := func(name string) float64 {
		t.Helper()
		m := regexp.MustCompile("\\| `" + name + "` \\| ([0-9.]+) (\\S+)").FindStringSubmatch(measured)
		if m == nil {
			t.Fatalf("no %s", name)
		}
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		return v * map[string]float64{"kB": 1e3, "MB": 1e6, "GB": 1e9, "triples/CPU-s": 1, "CPU-s": 1, "s": 1}[m[2]]
	}
	cpu, sent := 1e6/figure("scalar_triples_per_cpu_second_s14_32"), 1e6*figure("scalar_bytes_per_triple_s14_32")
	matrixCPU, matrixSent := 1e6*figure("matrix_d128_cpu_seconds_per_triple_s14_32"), 1e6*figure("matrix_d128_bytes_per_triple_s14_32")
	const element, hour, batch = 16, 3600, 12287
	disk, matrixDisk := 1e6*6*element/1e9, 1e6*6*128*128*element/1e9
	row := func(what, scalar, matrix string) string { return "| " + what + " | " + scalar + " | " + matrix + " |" }
	hours := func(bytes, bits float64) float64 { return bytes * 8 / bits / hour }
	for _, want := range []string{
		row("CPU-seconds", fmt.Sprintf("%.1f", cpu), thousands(matrixCPU)),
		row("sent to the peer, and as much received", fmt.Sprintf("%.2f GB", sent/1e9), thousands(matrixSent/1e9)+" GB"),
		row("disk until they are drawn", fmt.Sprintf("%.3f GB", disk), thousands(matrixDisk)+" GB"),
		row("on two cores: hours of CPU", fmt.Sprintf("%.4f", cpu/2/hour), fmt.Sprintf("%.0f", matrixCPU/2/hour)),
		row("on a link of 1 Gbit/s: hours of sending", fmt.Sprintf("%.4f", hours(sent, 1e9)), fmt.Sprintf("%.1f", hours(matrixSent, 1e9))),
		row("on a link of 100 Mbit/s: hours of sending", fmt.Sprintf("%.3f", hours(sent, 1e8)), fmt.Sprintf("%.0f", hours(matrixSent, 1e8))),
		fmt.Sprintf("%.2f GB for scalars, %.2f GB for 128 x 128, %.2f and %.2f GB with two batches in flight", figure("peak_rss_scalar_s14_32")/1e9,
			figure("peak_rss_matrix_d128_s14_32")/1e9, figure("peak_rss_scalar_pipelined_s14_32")/1e9, figure("peak_rss_matrix_d128_pipelined_s14_32")/1e9),
		fmt.Sprintf("%.1f s, %.2f GB sent by each party, %.2f GB of\n  memory", figure("keygen_d128_seconds_3_parties_s14_32"),
			figure("keygen_d128_bytes_3_parties_s14_32")/1e9, figure("keygen_d128_peak_rss_3_parties_s14_32")/1e9),
		fmt.Sprintf("| 1 ms | %.2f s | %.2f s | %.2f s |", 0.001*41, sent/1e6*batch*8/1e8, cpu/1e6*batch),
		fmt.Sprintf("| 50 ms | %.2f s | %.2f s | %.2f s |", 0.05*41, sent/1e6*batch*8/1e8, cpu/1e6*batch),
		fmt.Sprintf("a batch of 32 takes %.0f MB", matrixSent/1e6*32/1e6),
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
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
