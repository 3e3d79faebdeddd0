package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// reference is a figure that others have published, for the work of a result.
type reference struct {
	work, figure string
	result       string  // the name of ours
	scale        float64 // published figure in the result's unit
	source       string
}

const matriGear = "MatriGear"

var references = []reference{
	{"homomorphic product of 64 pairs of 128 x 128 matrices, log p = 128, N = 2^14", "47.8 s", "matmul_d128_s14_64", 47.8, matriGear + ", 2.9 GHz Xeon, one thread"},
	{"one homomorphic multiplication, the same parameters", "56.6 ms", "mul_s14_64", 56.6, matriGear},
	{"an authenticated 128 x 128 triple, amortised", "0.99 s", "matrix_d128_cpu_seconds_per_triple", 0.99, matriGear},
	{"evaluation keys for d = 128, N = 2^14", "1.45 GB", "evk_wire_bytes_d128", 1.45e9, matriGear},
	{"bytes that each party sends for a 128 x 128 triple", "13.6 MB", "matrix_d128_bytes_per_triple", 13.6e6, matriGear},
}

const preamble = "# Benchmarks\n\n" + `This page is written by the command that measures. Absolute times drift on shared machines; ratios of things that ran in
turn, in one process, stay.

- *Kernels* and *operations* run on one thread. Their times are CPU time, so that other programs count for little.
- *Lattigo* is the time of Lattigo's own routine for the same work over ours, *plain* the time of our kernels in plain Go
  over that of the selected ones: above 1, ours is faster. A dash means that there is no such routine.
- *Whole protocols* run between parties that are processes, each bound to a CPU of its own while there are enough, on
  loopback with TLS. Keys, the MAC key included, and a batch that makes the heap grow come before measuring begins. CPU-seconds
  are what a party's process used, all of it. Shares are of the time of a party's rounds. Figures are of one batch at a
  time, unless they are called pipelined: then two are in flight.
- *Threshold operations* run all parties of a quorum one after the other on one thread, and are the protocols alone. *Threshold
  keys* run between processes as whole protocols do: CPU time is that of a party's process, with taking requests in, checking
  and decoding them, the ledger and the answers. Figures are medians; *want* is what is wanted at most.
- *Multi-key gates* run on one thread, beside tfhe-go's own routine with the same parameters, in turn; times are CPU time.
- *Two-party linear algebra* runs both parties in turn on one thread, in one process without a network; times are CPU time.

What the figures mean, where the time goes and what would pay next is in [performance](performance.md).

## How to reproduce

` + "```sh\nmake bench\nlodge bench kernels --filter 'ntt|matmul' --text\nlodge bench all --json\nlodge bench all --write docs/benchmarks.md\n```" + `

Lines of ` + "`--text`" + ` are for benchstat, which compares two runs; ` + "`benchstat -col /by`" + ` compares the kernels' paths and Lattigo
within one.

`

// WritePage writes a page of results in Markdown, with what was measured on and with.
func WritePage(w io.Writer, about [][2]string, list []Result) error {
	var b strings.Builder
	b.WriteString(preamble)
	b.WriteString("## Machine and parameters\n\n| | |\n|---|---|\n")
	for _, l := range about {
		fmt.Fprintf(&b, "| %s | %s |\n", l[0], l[1])
	}
	section, wants := "", false
	for _, r := range list {
		if r.section != section {
			section = r.section
			wants = slices.ContainsFunc(list, func(r Result) bool { return r.section == section && r.Want != nil })
			columns := "Lattigo | plain"
			if wants {
				columns = "want | of it"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| what | name | measured | %s |\n|---|---|---:|---:|---:|\n", section, columns)
		}
		one, two := ratio(r.LattigoRatio), ratio(r.PlainRatio)
		if wants {
			one, two = r.wanted(func(v float64) string { return people(v, r.Unit) }), ratio(r.WantRatio)
		}
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", r.What, r.Name, people(r.Value, r.Unit), one, two)
	}
	writeReferences(&b, list)
	_, err := io.WriteString(w, b.String())
	return err
}

// writeReferences quotes what is published about the work that the list has results for.
func writeReferences(b *strings.Builder, list []Result) {
	by := map[string]Result{}
	for _, r := range list {
		by[r.Name] = r
	}
	head := "\n## Published figures\n\n" +
		"Quoted as published, on the machines that their authors used; compare with care. The last column is the published\nfigure over ours.\n\n" +
		"| work | published | source | ours | ratio |\n|---|---:|---|---:|---:|\n"
	for _, q := range references {
		if r, ok := by[q.result]; ok {
			fmt.Fprintf(b, "%s| %s | %s | %s | %s | %.1fx |\n", head, q.work, q.figure, q.source, people(r.Value, r.Unit), q.scale/r.Value)
			head = ""
		}
	}
}

// people prints a value with its unit, bytes in decimal multiples.
func people(v float64, unit string) string {
	if unit != "B" {
		return figure(v) + " " + unit
	}
	for _, u := range []string{"B", "kB", "MB"} {
		if v < 1000 {
			return fmt.Sprintf("%.4g %s", v, u)
		}
		v /= 1000
	}
	return fmt.Sprintf("%.4g GB", v)
}
