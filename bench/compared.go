package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Compared is one published figure and the measured one.
type Compared struct {
	Table  string `json:"table"`
	Source string `json:"source"`
	Cell
	Differs []string `json:"differs,omitempty"`

	title, machine, set string
}

// Cell is a published figure and the measured one without the head of their table.
type Cell struct {
	Row    string   `json:"row"`
	Column string   `json:"column"`
	Unit   string   `json:"unit"`
	Paper  *float64 `json:"paper"` // nil: the paper has no number
	Value  *float64 `json:"value"` // nil: see Missing
	// Ratio is the published figure over ours: above 1, ours is faster or smaller. It is nil for
	// parameters.
	Ratio   *float64 `json:"paper_over_value"`
	With    string   `json:"with,omitempty"`    // the parameters of our measurement
	Missing string   `json:"missing,omitempty"` // why there is no figure of ours
}

// RunPapers measures the rows and returns all of their cells. A row that needs more memory than is
// available, or that fails, has a reason in place of its figures, so that one row does not end
// hours of others; only an ended context ends the run. It calls say before each row.
func RunPapers(ctx context.Context, rows []PaperRow, available func() uint64, say func(line string)) ([]Compared, error) {
	var left time.Duration
	for _, r := range rows {
		left += r.Time
	}
	var list []Compared
	for i, r := range rows {
		why := r.Missing
		var values []float64
		//lodge:check bench/paper-memory [run=^TestPaperMemory$] a row of a paper's table exhausts the memory of the machine
		if why == "" {
			if r.ready != nil {
				r.ready()
			}
			why = Lacks(r.Memory, available())
		}
		if why == "" {
			say(fmt.Sprintf("%s: %s (row %d of %d, about %v left)", r.Table, r.Label, i+1, len(rows), left.Round(time.Second)))
			var err error
			if values, err = r.run(ctx); err != nil {
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
				why = "failed: " + err.Error()
			}
		}
		left -= r.Time
		list = append(list, r.compare(values, why)...)
	}
	return list, nil
}

// compare returns the cells of a row, with the measured values or the reason why they are missing.
func (r PaperRow) compare(values []float64, missing string) (list []Compared) {
	for i, c := range r.table.Columns {
		x := Compared{
			Table: r.Table, Source: r.table.Source, Cell: Cell{Row: r.Label, Column: c.Name, Unit: c.Unit, With: r.with, Missing: missing},
			Differs: r.table.Differs, title: r.table.Title, machine: r.table.Machine, set: r.set,
		}
		if f := r.row.Figures[i]; f != 0 {
			x.Paper = &f
		}
		if missing == "" {
			x.Value = &values[i]
			if x.Paper != nil && (c.Unit == "s" || c.Unit == "B") {
				ratio := *x.Paper / values[i]
				x.Ratio = &ratio
			}
		}
		if x.Paper != nil || x.Value != nil || i == 0 {
			list = append(list, x)
		}
	}
	return list
}

// width of what people read.
const width = 80

// WriteComparison writes the tables for people, in 80 columns.
func WriteComparison(w io.Writer, m Machine, list []Compared) error {
	var b strings.Builder
	wrap(&b, "", m.Line())
	for _, cells := range byTable(list) {
		b.WriteString("\n")
		first := cells[0]
		wrap(&b, "", fmt.Sprintf("%s: %s (%s)", first.Source, first.title, first.Table))
		if first.machine != "" {
			wrap(&b, "  ", "paper: "+first.machine)
		}
		for _, d := range first.Differs {
			wrap(&b, "  ", "differs: "+d)
		}
		fmt.Fprintf(&b, "\n%-27s %-15s %10s %10s %11s\n", "", "", "paper", "ours", "paper/ours")
		notes := notesOf(cells)
		row := ""
		for _, c := range cells {
			label, end := c.Row, ""
			if label == row {
				label = ""
			}
			row = c.Row
			if n := slices.Index(notes, note(c)); n >= 0 {
				end = fmt.Sprintf(" [%d]", n+1)
			}
			if len(label) > 27 {
				fmt.Fprintf(&b, "%s\n", label)
				label = ""
			}
			fmt.Fprintf(&b, "%-27s %-15s %10s %10s %7s%5s\n", label, c.Column, c.figure(c.Paper), c.figure(c.Value), short(c.Ratio), end)
		}
		for n, text := range notes {
			wrap(&b, fmt.Sprintf("[%d] ", n+1), text)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// byTable groups the cells of each table.
func byTable(list []Compared) (tables [][]Compared) {
	for i, c := range list {
		if i == 0 || list[i-1].Table != c.Table {
			tables = append(tables, nil)
		}
		tables[len(tables)-1] = append(tables[len(tables)-1], c)
	}
	return tables
}

// note returns the footnote of a cell: the reason why the measured figure is missing, or its
// parameters.
func note(c Compared) string {
	switch {
	case c.Missing != "":
		return "missing: " + c.Missing
	case c.set != "":
		return "ours: " + c.set
	}
	return ""
}

// notesOf are the notes of a table, each once.
func notesOf(cells []Compared) (notes []string) {
	for _, c := range cells {
		if n := note(c); n != "" && !slices.Contains(notes, n) {
			notes = append(notes, n)
		}
	}
	return notes
}

// figure prints a value with its unit.
func (c Cell) figure(v *float64) string {
	if v == nil {
		return "-"
	}
	switch c.Unit {
	case "s":
		return seconds(*v)
	case "B":
		return people(*v, "B")
	case "":
		return figure(*v)
	}
	return figure(*v) + " " + c.Unit
}

// seconds prints a time in the unit that suits it.
func seconds(v float64) string {
	for _, u := range []string{"s", "ms", "us"} {
		if v >= 1 || u == "us" {
			return fmt.Sprintf("%.4g %s", v, u)
		}
		v *= 1000
	}
	return ""
}

func short(r *float64) string {
	switch {
	case r == nil:
		return "-"
	case *r >= 100:
		return fmt.Sprintf("%.0fx", *r)
	}
	return fmt.Sprintf("%.2gx", *r)
}

// wrap writes a text in lines of the width; those after the first are indented as far as the prefix
// is long.
func wrap(b *strings.Builder, prefix, text string) {
	line := prefix
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(line + "\n")
			line = strings.Repeat(" ", len(prefix)+2) + word
			continue
		}
		if i > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(line + "\n")
}

// WritePlan writes the rows with estimates of memory and time, or the reason why a row would not be
// measured.
func WritePlan(w io.Writer, rows []PaperRow, available uint64) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%-47s %10s %9s\n", "", "memory", "time")
	var total time.Duration
	for _, r := range rows {
		name, why := r.Table+"/"+r.Label, r.Missing
		if lacks := Lacks(r.Memory, available); why == "" && lacks != "" {
			why = lacks
		}
		if why != "" {
			wrap(&b, "", fmt.Sprintf("%s: not measured: %s", name, why))
			continue
		}
		total += r.Time
		memory := "-"
		if r.Memory > 0 {
			memory = fmt.Sprintf("%.2g GB", float64(r.Memory)/1e9)
		}
		fmt.Fprintf(&b, "%-47s %10s %9v\n", name, memory, r.Time)
	}
	fmt.Fprintf(&b, "about %v in all; available memory %s\n", total.Round(time.Second), people(float64(available), "B"))
	_, err := io.WriteString(w, b.String())
	return err
}

// WriteComparisonPage writes the cells of all tables as JSON, and a page in Markdown with those
// that have a published time or size and ours. Tables of the old data that the list does not have
// stay as they are.
func WriteComparisonPage(page, data io.Writer, old []byte, m Machine, command string, list []Compared) error {
	var measured []Section[Cell]
	for _, cells := range byTable(list) {
		first := cells[0]
		s := Section[Cell]{
			Heading: first.Source + ": " + first.title, Machine: m.Line(), Command: command,
			Paper: first.machine, Differs: first.Differs,
		}
		for _, c := range cells {
			s.Rows = append(s.Rows, c.Cell)
		}
		measured = append(measured, s)
	}
	all, text, err := merge(old, measured)
	if err != nil {
		return err
	}
	var b strings.Builder
	about := func(s Section[Cell]) string { return s.Machine + ". Command: " + s.Command + ".\n" }
	b.WriteString(papersHead + about(all[0]))
	for _, s := range all {
		s.Rows = slices.DeleteFunc(s.Rows, func(c Cell) bool { return c.Ratio == nil })
		if len(s.Rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n", s.Heading)
		if about(s) != about(all[0]) {
			b.WriteString(about(s) + "\n")
		}
		b.WriteString(comparison(s))
	}
	return writeBoth(page, b.String(), data, text)
}

// comparison is the text of one table: a line for each row, with the cells of a row in the order of
// the columns.
func comparison(s Section[Cell]) string {
	var b strings.Builder
	if s.Paper != "" {
		fmt.Fprintf(&b, "The paper: %s.\n\n", s.Paper)
	}
	b.WriteString("What differs:\n\n")
	for _, d := range s.Differs {
		fmt.Fprintf(&b, "- %s\n", d)
	}
	var columns []string
	for _, c := range s.Rows {
		if !slices.Contains(columns, c.Column) {
			columns = append(columns, c.Column)
		}
	}
	b.WriteString("\n| row |")
	for _, c := range columns {
		fmt.Fprintf(&b, " %s: paper | ours | ratio |", c)
	}
	b.WriteString(" parameters of ours |\n|---|" + strings.Repeat("---:|---:|---:|", len(columns)) + "---|\n")
	for rest := s.Rows; len(rest) > 0; {
		first := rest[0]
		fmt.Fprintf(&b, "| %s |", first.Row)
		for _, column := range columns {
			if len(rest) > 0 && rest[0].Row == first.Row && rest[0].Column == column {
				fmt.Fprintf(&b, " %s | %s | %s |", rest[0].figure(rest[0].Paper), rest[0].figure(rest[0].Value), short(rest[0].Ratio))
				rest = rest[1:]
			} else {
				b.WriteString(" | | |")
			}
		}
		fmt.Fprintf(&b, " %s |\n", first.With)
	}
	return b.String()
}
