package bench

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// The heads of the pages.
var (
	//go:embed benchmarks.head
	benchmarksHead string
	//go:embed papers.head
	papersHead string
)

// Section is a part of a page: the rows that one command measured on one machine.
type Section[R any] struct {
	Heading string   `json:"heading"`
	Machine string   `json:"machine"`
	Command string   `json:"command"`
	Paper   string   `json:"paper,omitempty"`   // the machine of a published table
	Differs []string `json:"differs,omitempty"` // from a published table
	Rows    []R      `json:"rows"`
}

// Record is a result with its description.
type Record struct {
	Result
	What string `json:"what"`
}

// merge puts the measured sections in place of those with the same heading in the JSON text old,
// appends new ones, and returns all sections and their JSON text. An empty old text is allowed.
func merge[R any](old []byte, measured []Section[R]) (all []Section[R], data []byte, err error) {
	if len(old) > 0 {
		if err := json.Unmarshal(old, &all); err != nil {
			return nil, nil, fmt.Errorf("bench: the figures of earlier runs: %w", err)
		}
	}
	for _, s := range measured {
		i := slices.IndexFunc(all, func(x Section[R]) bool { return x.Heading == s.Heading })
		if i < 0 {
			i, all = len(all), append(all, s)
		}
		all[i] = s
	}
	data, err = json.MarshalIndent(all, "", "  ")
	return all, append(data, '\n'), err
}

// WritePage writes the figures of all sections as JSON, and a page in Markdown with those that have
// a goal or a rival. Sections of the old data without results in the list stay as they are.
func WritePage(page, data io.Writer, old []byte, m Machine, command string, list []Result) error {
	var measured []Section[Record]
	for i, r := range list {
		if i == 0 || list[i-1].section != r.section {
			measured = append(measured, Section[Record]{Heading: r.section, Machine: m.Line(), Command: command})
		}
		s := &measured[len(measured)-1]
		s.Rows = append(s.Rows, Record{Result: r, What: r.What})
	}
	all, text, err := merge(old, measured)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString(benchmarksHead)
	for _, s := range all {
		s.Rows = slices.DeleteFunc(s.Rows, func(r Record) bool {
			return r.LattigoRatio == nil && r.PlainRatio == nil && r.Want == nil
		})
		if len(s.Rows) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n%s. Command: %s.\n", s.Heading, s.Machine, s.Command)
			b.WriteString(section(s.Rows))
		}
	}
	return writeBoth(page, b.String(), data, text)
}

// writeBoth writes a page and its data.
func writeBoth(page io.Writer, text string, data io.Writer, figures []byte) error {
	if _, err := io.WriteString(page, text); err != nil {
		return err
	}
	_, err := data.Write(figures)
	return err
}

// section returns a table with a column for each comparison that any result has.
func section(list []Record) string {
	var b strings.Builder
	columns := []struct {
		name string
		of   func(r Record) string
	}{
		{"Lattigo", func(r Record) string { return ratio(r.LattigoRatio) }},
		{"plain", func(r Record) string { return ratio(r.PlainRatio) }},
		{"want", func(r Record) string { return r.wanted(func(v float64) string { return people(v, r.Unit) }) }},
		{"of it", func(r Record) string { return ratio(r.WantRatio) }},
	}
	b.WriteString("\n| what | name | measured |")
	line := "|---|---|---:|"
	for i := range columns {
		if !slices.ContainsFunc(list, func(r Record) bool { return columns[i].of(r) != "-" }) {
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
