package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// In a file or a pipe a row is one line, laid out as text/tabwriter does, which scripts may rely
// on.
func TestTableIsLaidOutAsBefore(t *testing.T) {
	for _, lines := range []string{
		"ID\tKIND\tREASON\na\tscalar\t-\nlonger\tmatrix 2x3x4\tthe party was restarted\n",
		"epoch\t1, active\nthreshold\tany 2 of 3\n\nSHARE\tPARTY\n0\tp0\n10\tparty-1\n",
		"title\na\tb\n\tc\n\nlast line\n",
		"größe\t1\n…\t2\n",
	} {
		var want, got bytes.Buffer
		w, x := tabwriter.NewWriter(&want, 0, 0, 2, ' ', 0), NewTable(&got)
		for _, x := range []io.Writer{w, x} {
			if _, err := io.WriteString(x, lines); err != nil {
				t.Fatal(err)
			}
		}
		if err := errors.Join(w.Flush(), x.Flush()); err != nil || got.String() != want.String() {
			t.Errorf("%v: got\n%s\nwant\n%s", err, got.String(), want.String())
		}
	}
}

// On a terminal no line is wider than the terminal: long cells are wrapped, and a table with too
// many columns becomes a list.
func TestTableFitsTheTerminal(t *testing.T) {
	var lines strings.Builder
	fmt.Fprintln(&lines, "ID\tSTATE\tAGE\tREASON")
	fmt.Fprintf(&lines, "0123abcd\tfailed\t1m0s\t%s\n", strings.Repeat("the party was restarted ", 6))
	for _, width := range []int{80, 60, 40, 24} {
		var out bytes.Buffer
		x := &Table{w: &out, width: width}
		if _, err := io.WriteString(x, lines.String()); err != nil {
			t.Fatal(err)
		}
		if err := x.Flush(); err != nil {
			t.Fatal(err)
		}
		if width >= 40 {
			for line := range strings.Lines(out.String()) {
				if n := len(strings.TrimSuffix(line, "\n")); n > width {
					t.Errorf("width %d: a line has %d columns:\n%s", width, n, out.String())
				}
			}
		} else if !strings.HasPrefix(out.String(), "ID      0123abcd\nSTATE   failed\n") {
			t.Errorf("width %d: no list:\n%s", width, out.String())
		}
		if n := strings.Count(strings.Join(strings.Fields(out.String()), " "), "restarted"); n != 6 {
			t.Errorf("width %d: text is lost:\n%s", width, out.String())
		}
	}
}

// One record is written as JSON or as text, never both.
func TestWrite(t *testing.T) {
	for asJSON, want := range map[bool]string{true: "{\n  \"a\": 1\n}\n", false: "text\n"} {
		var out bytes.Buffer
		cmd := &cobra.Command{}
		cmd.SetOut(&out)
		cmd.Flags().Bool("json", asJSON, "")
		err := Write(cmd, map[string]int{"a": 1}, func(w io.Writer) error { _, err := fmt.Fprintln(w, "text"); return err })
		if err != nil || out.String() != want {
			t.Errorf("JSON %t: %v: %q", asJSON, err, out.String())
		}
	}
}
