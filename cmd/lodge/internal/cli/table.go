package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// JSON reports whether the command has the flag --json, and it is set.
func JSON(cmd *cobra.Command) bool {
	f := cmd.Flags().Lookup("json")
	return f != nil && f.Value.String() == "true"
}

// Write writes the outcome of a command to its output: record with --json, and otherwise the output
// of text.
func Write(cmd *cobra.Command, record any, text func(w io.Writer) error) error {
	if JSON(cmd) {
		return WriteJSON(cmd.OutOrStdout(), record)
	}
	return text(cmd.OutOrStdout())
}

// Print is like Write for a text on one line, or a few.
func Print(cmd *cobra.Command, record any, format string, args ...any) error {
	return Write(cmd, record, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, format, args...)
		return err
	})
}

// PrintTable writes a table with a row for each element of list. Headings are separated by tabs. An
// empty list writes the text empty instead, if there is one. Row says how cells are written.
func PrintTable[T any](w io.Writer, empty, headings string, list []T, row func(T) []any) error {
	if len(list) == 0 && empty != "" {
		_, err := fmt.Fprintln(w, empty)
		return err
	}
	t := NewTable(w)
	fmt.Fprintln(t, headings)
	for _, x := range list {
		t.Row(row(x)...)
	}
	return t.Flush()
}

// Row adds a row. It makes cells safe for a terminal. An empty cell becomes a dash, and a bool yes
// or no.
func (t *Table) Row(cells ...any) {
	for i, c := range cells {
		if yes, ok := c.(bool); ok {
			c = map[bool]string{true: "yes", false: "no"}[yes]
		}
		cells[i] = OrDash(OneLine(fmt.Sprint(c)))
	}
	fmt.Fprintf(t, strings.Repeat("\t%s", len(cells))[1:]+"\n", cells...)
}

// Table aligns lines of tab-separated cells in columns. An empty line ends a table, and the next
// line starts another one. On a terminal, long cells are wrapped so that the table fits the width;
// if even that is too wide, each row becomes a list of headings and cells. Elsewhere a row is
// always one line.
type Table struct {
	w     io.Writer
	width int // of the terminal; 0: unlimited
	text  bytes.Buffer
}

// NewTable returns a Table that Flush writes to w.
func NewTable(w io.Writer) *Table { return &Table{w: w, width: terminal.Width(w)} }

// Write adds lines. It never fails.
func (t *Table) Write(b []byte) (int, error) { return t.text.Write(b) }

// Flush writes the table.
func (t *Table) Flush() error {
	var out strings.Builder
	var rows [][]string
	flush := func() {
		if len(rows) > 0 {
			out.WriteString(align(rows, t.width))
			rows = nil
		}
	}
	for line := range strings.Lines(t.text.String()) {
		line = strings.TrimSuffix(line, "\n")
		if strings.Contains(line, "\t") {
			rows = append(rows, strings.Split(line, "\t"))
			continue
		}
		flush()
		out.WriteString(line + "\n")
	}
	flush()
	t.text.Reset()
	_, err := io.WriteString(t.w, out.String())
	return err
}

// Spaces between columns, and the narrowest width to which a column with longer cells is wrapped.
const (
	columnGap = 2
	minColumn = 8
)

// align returns rows as aligned text. A width of 0 means unlimited.
func align(rows [][]string, width int) string {
	columns := columnWidths(rows)
	limits, fits := fit(columns, width)
	if !fits && isHeading(rows[0]) {
		return records(rows)
	}
	t := table.NewWriter()
	t.SetStyle(table.Style{Box: table.BoxStyle{MiddleVertical: strings.Repeat(" ", columnGap)}, Options: table.Options{SeparateColumns: true}})
	t.SuppressTrailingSpaces()
	var configs []table.ColumnConfig
	for i, limit := range limits {
		if limit < columns[i] {
			configs = append(configs, table.ColumnConfig{Number: i + 1, WidthMax: limit, WidthMaxEnforcer: text.WrapSoft})
		}
	}
	t.SetColumnConfigs(configs)
	for _, cells := range rows {
		row := make(table.Row, len(cells))
		for i, c := range cells {
			row[i] = c
		}
		t.AppendRow(row)
	}
	return t.Render() + "\n"
}

// columnWidths returns the width of the longest cell of each column.
func columnWidths(rows [][]string) (widths []int) {
	for _, cells := range rows {
		for i, c := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], text.StringWidthWithoutEscSequences(c))
		}
	}
	return widths
}

// fit narrows the widest columns until a table of these columns fits the width. It reports whether
// that is possible.
func fit(columns []int, width int) ([]int, bool) {
	limits := slices.Clone(columns)
	excess := columnGap*(len(columns)-1) - width
	for _, n := range columns {
		excess += n
	}
	for ; width > 0 && excess > 0; excess-- {
		widest := slices.Index(limits, slices.Max(limits))
		if limits[widest] <= minColumn {
			return columns, false
		}
		limits[widest]--
	}
	return limits, true
}

// isHeading reports whether a row consists of headings, which are in capitals.
func isHeading(cells []string) bool {
	for _, c := range cells {
		if c != strings.ToUpper(c) {
			return false
		}
	}
	return true
}

// records writes each row below the headings as lines of a heading and a cell, with an empty line
// between rows.
func records(rows [][]string) string {
	var out strings.Builder
	widest := slices.Max(columnWidths([][]string{rows[0]}))
	for n, cells := range rows[1:] {
		if n > 0 {
			out.WriteByte('\n')
		}
		for i, c := range cells {
			heading := ""
			if i < len(rows[0]) {
				heading = rows[0][i]
			}
			out.WriteString(strings.TrimRight(text.Pad(heading, widest+columnGap, ' ')+c, " ") + "\n")
		}
	}
	return out.String()
}
