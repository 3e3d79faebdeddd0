package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// preamble is the head of the page; ~ stands for a backquote.
var preamble = strings.ReplaceAll("# Benchmarks\n\n"+`~lodge-bench~ writes this page, one section for each part that it measures. The head of a section names the machine, its load and the command; to measure a part anew, run that command with ~--write docs/measurements/benchmarks.md~, and the other sections stay. ~make figures~ measures every part.

- *Kernels* and *operations* run on one thread. Their times are CPU time, so that other programs count for little.
- *Lattigo* is the time of Lattigo's own routine for the same work over Lodge's. *plain* is the time of the kernels in plain Go over that of the selected ones. Above 1, the selected kernels are faster. A dash means that there is no such routine.
- *want* is the project's goal, and *of it* is 1 or less where the goal is met.
- *Whole protocols* run between parties that are processes on loopback with TLS, each bound to one CPU if there are enough CPUs. Key generation, the MAC key and a first batch come before the measurement begins. CPU-seconds are all that a party's process used. Shares are of the time of a party's rounds. One batch runs at a time; *pipelined* means two.
- *Threshold operations* run only the protocols: all parties of a quorum run in turn on one thread. *Threshold keys* run between processes: CPU time is that of a party's process, including requests, the ledger and answers. Figures are medians.
- *Multi-key gates* run on one thread in turn with tfhe-go's routine for the same parameters. Times are CPU time.
- *Two-party linear algebra* runs both parties in turn on one thread, in one process without a network. Times are CPU time.

Absolute times drift on shared machines. Ratios of things that ran in turn in one process do not. [Performance](performance.md) explains where the time goes; [published figures](benchmarks-papers.md) has the papers' tables, and ~lodge params show~ the parameters of a set.

## `+preambleSection+`

~~~sh
make figures
lodge-bench all --write docs/measurements/benchmarks.md
lodge-bench kernels --filter 'ntt|matmul' --text
~~~

Lines of ~--text~ are for benchstat, which compares two runs; ~benchstat -col /by~ compares the kernels' paths and Lattigo within one.

`, "~", "`")

// WritePage writes a page of results in Markdown: a section for each part, with the machine, the
// command and the parameters. Sections of the old page without results in the list stay as they
// are. An empty old page is allowed.
func WritePage(w io.Writer, old string, m Machine, command string, list []Result) error {
	headings, sections := split(old)
	for _, part := range parts(list) {
		heading := part[0].section
		if !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
		sections[heading] = section(m.Line()+". Command: "+command+".", part)
	}
	return writeSections(w, preamble, headings, sections)
}

// writeSections writes a page.
func writeSections(w io.Writer, preamble string, headings []string, sections map[string]string) error {
	var b strings.Builder
	b.WriteString(preamble)
	for i, h := range headings {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "## %s\n\n%s\n", h, strings.TrimSpace(sections[h]))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// preambleSection is the heading in the preamble, which is written anew.
const preambleSection = "How to reproduce"

// split finds the sections of a page.
func split(page string) (headings []string, sections map[string]string) {
	sections = map[string]string{}
	for i, text := range strings.Split(page, "\n## ") {
		heading, body, _ := strings.Cut(text, "\n")
		if i == 0 || heading == preambleSection {
			continue
		}
		headings, sections[heading] = append(headings, heading), body
	}
	return headings, sections
}

// parts groups results by their section.
func parts(list []Result) (all [][]Result) {
	for i, r := range list {
		if i == 0 || list[i-1].section != r.section {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], r)
	}
	return all
}

// section returns the text of a section: the machine and command, and a table with a column for
// each comparison that any result has.
func section(about string, list []Result) string {
	var b strings.Builder
	b.WriteString(about + "\n")
	columns := []struct {
		name string
		of   func(r Result) string
	}{
		{"Lattigo", func(r Result) string { return ratio(r.LattigoRatio) }},
		{"plain", func(r Result) string { return ratio(r.PlainRatio) }},
		{"want", func(r Result) string { return r.wanted(func(v float64) string { return people(v, r.Unit) }) }},
		{"of it", func(r Result) string { return ratio(r.WantRatio) }},
	}
	b.WriteString("\n| what | name | measured |")
	line := "|---|---|---:|"
	for i := range columns {
		if !slices.ContainsFunc(list, func(r Result) bool { return columns[i].of(r) != "-" }) {
			columns[i].name = ""
			continue
		}
		fmt.Fprintf(&b, " %s |", columns[i].name)
		line += "---:|"
	}
	fmt.Fprintf(&b, "\n%s\n", line)
	for _, r := range list {
		fmt.Fprintf(&b, "| %s | `%s` | %s |", r.What, r.Name, people(r.Value, r.Unit))
		for _, c := range columns {
			if c.name != "" {
				fmt.Fprintf(&b, " %s |", c.of(r))
			}
		}
		b.WriteString("\n")
	}
	return b.String()
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
