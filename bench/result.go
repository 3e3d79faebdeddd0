// Package bench measures the engine: its kernels and whole operations. It compares each with
// Lattigo's routine and with the plain path of the kernels, if they exist, in turn in one process.
// It also writes these results, and those of the whole protocols that lodge-bench measures, as
// JSON, as lines for benchstat, as a table, and as a page.
//
// On a shared machine times drift, but ratios of routines that ran in turn are stable.
package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

// Result is one measured figure.
type Result struct {
	Name  string  `json:"name"`
	Unit  string  `json:"unit"`
	Value float64 `json:"value"`
	// LattigoRatio is the time of Lattigo's routine for the same work over ours, and PlainRatio the
	// time of the plain path over that of the selected one; nil where there is no rival.
	LattigoRatio *float64 `json:"lattigo_ratio"`
	PlainRatio   *float64 `json:"plain_ratio"`
	// Want is the project's limit, and WantRatio the value divided by it; nil without a limit.
	Want      *float64 `json:"want,omitempty"`
	WantRatio *float64 `json:"want_ratio,omitempty"`

	What    string `json:"-"` // for people
	section string // of the page
	runs    []run  // all measurements of a time
}

// Wanted returns the result with the given limit, unless the limit is 0.
func (r Result) Wanted(most float64) Result {
	if most > 0 {
		ratio := r.Value / most
		r.Want, r.WantRatio = &most, &ratio
	}
	return r
}

// run holds the times of one contender for one unit of work in each turn, in seconds.
type run struct {
	by    string // the kernels' path, or lattigo
	times []float64
}

// Row is a measurement that yields results of known names.
type Row struct {
	Section string // heading of the result in tables and pages
	Names   []string
	Memory  uint64 // estimated bytes of all processes; 0 if negligible
	Run     func(ctx context.Context) ([]Result, error)
}

// Lacks compares the estimated memory with the available memory. It returns "" if the row fits or
// if the available memory is unknown (0), and otherwise a phrase with both numbers.
func Lacks(need, available uint64) string {
	if available == 0 || need <= available {
		return ""
	}
	return fmt.Sprintf("needs about %s of memory, %s are available", people(float64(need), "B"), people(float64(available), "B"))
}

// Run runs the rows with a name that the filter matches, in order, and returns the results that it
// matches. It skips rows that need more memory than is available (see Lacks), and returns an error
// if it skips all. Run calls say before each row and for each skipped row.
func Run(ctx context.Context, rows []Row, filter *regexp.Regexp, available uint64, say func(line string)) ([]Result, error) {
	if !slices.ContainsFunc(rows, func(r Row) bool { return matches(r.Names, filter) }) {
		return nil, fmt.Errorf("bench: nothing is called %q; --list writes what there is", filter)
	}
	var list []Result
	var skipped error
	for _, row := range rows {
		if !matches(row.Names, filter) {
			continue
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		//lodge:check bench/row-memory [run=^TestRunSkips$] a row exhausts the memory of the machine
		if why := Lacks(row.Memory, available); why != "" {
			skipped = fmt.Errorf("bench: %s %s", row.Names[0], why)
			say(row.Names[0] + ": skipped: it " + why)
			continue
		}
		say(row.Names[0])
		got, err := row.Run(ctx)
		if err != nil {
			return nil, fmt.Errorf("bench: %s: %w", row.Names[0], err)
		}
		for i, r := range got {
			if i >= len(row.Names) || r.Name != row.Names[i] {
				return nil, fmt.Errorf("bench: the row %v gave %s in place %d", row.Names, r.Name, i)
			}
			if filter.MatchString(r.Name) {
				r.section = row.Section
				list = append(list, r)
			}
		}
		if len(got) != len(row.Names) {
			return nil, fmt.Errorf("bench: the row %v gave %d results", row.Names, len(got))
		}
	}
	if len(list) == 0 {
		return nil, skipped
	}
	return list, nil
}

func matches(names []string, filter *regexp.Regexp) bool {
	for _, n := range names {
		if filter.MatchString(n) {
			return true
		}
	}
	return false
}

// WriteJSON writes results or cells as one list.
func WriteJSON[T Result | Compared](w io.Writer, list []T) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(list)
}

// WriteText writes the results in the format of Go's benchmarks, which benchstat reads: a line for
// every turn. Rivals of a time are told apart by the key "by".
func WriteText(w io.Writer, m Machine, list []Result) error {
	var b strings.Builder
	fmt.Fprintf(&b, "goos: %s\ngoarch: %s\npkg: github.com/lodge-mpc/lodge/bench\ncpu: %s\n", m.OS, m.Arch, m.CPU)
	for _, r := range list {
		if len(r.runs) == 0 {
			fmt.Fprintf(&b, "Benchmark%s 1 %.10g %s\n", camel(r.Name), r.Value, strings.ReplaceAll(r.Unit, " ", "-"))
		}
		for _, run := range r.runs {
			for _, t := range run.times {
				fmt.Fprintf(&b, "Benchmark%s/by=%s 1 %.10g ns/op\n", camel(r.Name), run.by, t*1e9)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// camel turns ntt_n14_50bit into NttN14_50bit: the name after "Benchmark" must not begin with a
// small letter.
func camel(name string) string {
	var b strings.Builder
	for _, w := range strings.Split(name, "_") {
		if w[0] >= '0' && w[0] <= '9' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	return b.String()
}

// WriteLines writes the machine and the parameters of the measurements.
func WriteLines(w io.Writer, about [][2]string) {
	for _, l := range about {
		fmt.Fprintf(w, "%-12s %s\n", l[0], l[1])
	}
	fmt.Fprintln(w)
}

// WriteTable writes the results as a readable table.
func WriteTable(w io.Writer, list []Result) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "NAME\tVALUE\tUNIT\tLATTIGO\tPLAIN\tWANT\tOF IT\t\n")
	for _, r := range list {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", r.Name, figure(r.Value), r.Unit, ratio(r.LattigoRatio), ratio(r.PlainRatio), r.wanted(figure), ratio(r.WantRatio))
	}
	return t.Flush()
}

// wanted formats the limit.
func (r Result) wanted(as func(float64) string) string {
	if r.Want == nil {
		return "-"
	}
	return as(*r.Want)
}

// figure prints a value with four digits, and integers of more whole.
func figure(v float64) string {
	if v >= 1000 || v <= -1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

func ratio(r *float64) string {
	if r == nil {
		return "-"
	}
	return fmt.Sprintf("%.2fx", *r)
}
