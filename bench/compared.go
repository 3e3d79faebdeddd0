package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// Compared is one published figure and the measured one.
type Compared struct {
	Table  string   `json:"table"`
	Source string   `json:"source"`
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
	Differs []string `json:"differs,omitempty"`

	title, machine, set string
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
			Table: r.Table, Source: r.table.Source, Row: r.Label, Column: c.Name, Unit: c.Unit, With: r.with, Missing: missing,
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

// WriteComparisonJSON writes the cells as one list.
func WriteComparisonJSON(w io.Writer, list []Compared) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
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
func (c Compared) figure(v *float64) string {
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

// WriteComparisonPage writes the tables in Markdown, with the machine and the command of each.
// Tables of the old page that the list does not have stay as they are. An empty old page is
// allowed.
func WriteComparisonPage(w io.Writer, old string, m Machine, command string, list []Compared) error {
	headings, sections := split(old)
	for _, cells := range byTable(list) {
		first := cells[0]
		heading := first.Source + ": " + first.title
		if !slices.Contains(headings, heading) {
			headings = append(headings, heading)
		}
		sections[heading] = m.Line() + ". Command: " + command + ".\n\n" + comparison(cells)
	}
	return writeSections(w, comparisonPreamble, headings, sections)
}

// comparison is the text of one table.
func comparison(cells []Compared) string {
	var b strings.Builder
	if machine := cells[0].machine; machine != "" {
		fmt.Fprintf(&b, "The paper: %s.\n\n", machine)
	}
	b.WriteString("What differs:\n\n")
	for _, d := range cells[0].Differs {
		fmt.Fprintf(&b, "- %s\n", d)
	}
	b.WriteString("\n| row | column | paper | ours | paper over ours | parameters of ours, or why there is no figure |\n|---|---|---:|---:|---:|---|\n")
	for _, c := range cells {
		remark := c.With
		if c.Missing != "" {
			remark = c.Missing
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", c.Row, c.Column, c.figure(c.Paper), c.figure(c.Value), short(c.Ratio), remark)
	}
	return b.String()
}

const comparisonPreamble = `# Published figures

The tables of the papers that Lodge implements: each published figure next to Lodge's. ` + "`lodge-bench paper`" + ` prints them. ` + "`--table`" + ` selects tables, ` + "`--dry-run`" + ` estimates memory and time, and ` + "`--write docs/measurements/benchmarks-papers.md`" + ` replaces the measured tables of this page and keeps the others. ` + "`make figures`" + ` writes the whole page.

The published figures were measured on other machines, some of them with weaker parameters and in other languages. The list under each heading names the differences. Times of Lodge are CPU time on one thread unless the table says otherwise. A dash in the column of the paper means that the paper has no number there.

`
