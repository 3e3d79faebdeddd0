package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// benchOptions are the flags of `lodge bench`.
type benchOptions struct {
	json, text, list, plan bool
	filter, write          string
	sets                   []string
	field                  string
	dim, parties           int
	duration               time.Duration
}

// benchPart is a kind of rows, and the flags that change them.
type benchPart struct {
	rows                func(cmd *cobra.Command, o *bench.Options) ([]bench.Row, error)
	field, dim, parties bool
}

// sure is a part that cannot fail.
func sure(rows func(o *bench.Options) []bench.Row) func(*cobra.Command, *bench.Options) ([]bench.Row, error) {
	return func(_ *cobra.Command, o *bench.Options) ([]bench.Row, error) { return rows(o), nil }
}

// benchCommand is `lodge bench`.
func benchCommand() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure kernels, operations and whole protocols on this machine",
		Long: "Measure this machine. Each time stands beside that of Lattigo's own routine for the same work, where there is one, and\n" +
			"that of the kernels in plain Go. All are measured in turn in one process; ratios above 1 mean that the selected kernels\n" +
			"are faster. Whole protocols run between processes as `lodge demo` runs them. `lodge bench paper` puts the figures of\n" +
			"the papers beside those of this machine.",
	}
	f := cmd.PersistentFlags()
	f.BoolVar(&o.json, "json", false, "write one list of {name, unit, value, lattigo_ratio, plain_ratio}, and want, want_ratio where a figure is wanted")
	f.BoolVar(&o.text, "text", false, "write lines for benchstat")
	f.BoolVar(&o.list, "list", false, "write the names of what would be measured, and measure nothing")
	f.BoolVar(&o.plan, "dry-run", false, "write what would be measured with estimates of memory and time, and measure nothing")
	f.StringVar(&o.filter, "filter", "", "measure only what has a name that matches this regular expression")
	f.StringSliceVar(&o.sets, "set", append([]string{bench.Headline, params.Default, lwe.Default, paperSet}, multikey.Names()...),
		"parameter sets of operations and protocols, threshold keys and multi-key gates")
	f.StringVar(&o.field, "field", "", "field of slots and triples, p64 to p4096 (default p128, or the smallest of the set)")
	f.IntVar(&o.dim, "dim", 0, fmt.Sprintf("dimension of matrix blocks, a power of two up to %d (default 128, or what fits the set)", bench.MaxDim))
	f.IntVar(&o.parties, "parties", 0, "number of parties (default 2; 3 for key generation, first batches and the stock; 2t+1 for threshold keys; 2 to 32 for gates)")
	f.DurationVar(&o.duration, "duration", time.Second, "time for one row, unless its work takes longer; whole protocols take ten times as long")
	f.StringVar(&o.write, "write", "", "write the results to this page too, such as docs/measurements/benchmarks.md; sections that are not measured stay")
	complete(cmd, "set", allSetWords)
	complete(cmd, "field", fieldWords)
	kernels := benchPart{rows: sure((*bench.Options).Kernels), field: true, dim: true}
	operations := benchPart{rows: sure((*bench.Options).Operations), field: true, dim: true, parties: true}
	protocol := benchPart{rows: protocolRows, field: true, dim: true, parties: true}
	stock := benchPart{rows: stockRows, field: true, parties: true}
	keys := benchPart{rows: thresholdRows, parties: true}
	gates := benchPart{rows: sure((*bench.Options).Multikey), parties: true}
	products := benchPart{rows: sure((*bench.Options).LinearAlgebra)}
	for _, c := range []struct {
		name, short string
		parts       []benchPart
	}{
		{"kernels", "Measure kernels: transforms, products, samplers, fields", []benchPart{kernels}},
		{"operations", "Measure encryption, products, proofs, decryption", []benchPart{operations}},
		{"protocol", "Measure parties that make triples, each in a process of its own", []benchPart{protocol}},
		{"stock", "Measure the store and reservations, with parties in processes of their own", []benchPart{stock}},
		{"threshold", "Measure threshold keys: the protocols alone, and parties in processes of their own", []benchPart{keys}},
		{"multikey", "Measure gates on bits under several parties' keys, beside tfhe-go's", []benchPart{gates}},
		{"linear", "Measure products of matrices and vectors of two parties", []benchPart{products}},
		{"all", "Measure everything", []benchPart{kernels, operations, protocol, stock, keys, gates, products}},
	} {
		cmd.AddCommand(&cobra.Command{Use: c.name, Short: c.short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := o.options(cmd, c.parts)
			if err != nil {
				return err
			}
			var rows []bench.Row
			for _, p := range c.parts {
				some, err := p.rows(cmd, b)
				if err != nil {
					return err
				}
				rows = append(rows, some...)
			}
			if len(rows) == 0 {
				return invalid("see --set and --parties", "`lodge bench %s` has no row for %d parties with the sets %s", c.name, o.parties, strings.Join(o.sets, ", "))
			}
			return o.run(cmd, b, rows)
		}})
	}
	cmd.AddCommand(benchPaperCommand(o))
	return cmd
}

// options checks the flags that were given for the parts.
func (o *benchOptions) options(cmd *cobra.Command, parts []benchPart) (*bench.Options, error) {
	switch {
	case o.json && o.text:
		return nil, invalid("write one of them", "--json and --text exclude each other")
	case o.write != "" && o.filter != "":
		return nil, invalid("leave one of them out", "--write writes whole sections or tables, of which --filter would drop rows")
	case o.list && o.plan:
		return nil, invalid("write one of them", "--list and --dry-run exclude each other")
	case len(o.sets) == 0 || o.duration <= 0:
		return nil, invalid("see --set and --duration", "a benchmark needs a parameter set and a duration above 0")
	case cmd.Flags().Changed("parties") && o.parties < 2:
		return nil, invalid("use 2 or more", "--parties %d: a protocol has at least two parties", o.parties)
	}
	for _, flag := range []struct {
		name string
		of   func(p benchPart) bool
	}{
		{"field", func(p benchPart) bool { return p.field }}, {"dim", func(p benchPart) bool { return p.dim }}, {"parties", func(p benchPart) bool { return p.parties }},
	} {
		if cmd.Flags().Changed(flag.name) && !slices.ContainsFunc(parts, flag.of) {
			return nil, invalid("leave it out", "--%s changes nothing that `lodge bench %s` measures", flag.name, cmd.Name())
		}
	}
	b := &bench.Options{
		Field: o.field, Dimension: o.dim, Parties: o.parties, Duration: o.duration, Linear: bench.AllLinear(),
		Resident: func() uint64 {
			now, _ := metrics.ResidentBytes()
			return now
		},
	}
	if err := o.choose(b); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(parts, func(p benchPart) bool { return p.dim }) {
		if err := b.Check(); err != nil {
			return nil, invalid("see --set, --field, --dim and --parties", "%v", err)
		}
	}
	return b, nil
}

// choose looks up the sets.
func (o *benchOptions) choose(b *bench.Options) error {
	for _, name := range o.sets {
		if i := slices.IndexFunc(bench.AllGates(), func(g bench.GateSets) bool { return g.Set == name }); i >= 0 {
			b.Gates = append(b.Gates, bench.AllGates()[i])
			continue
		}
		if set, err := lwe.Lookup(name); err == nil {
			b.Threshold = append(b.Threshold, set)
			continue
		}
		set, err := params.Lookup(name)
		if err != nil {
			return err
		}
		b.Sets = append(b.Sets, set)
	}
	b.Gates = bench.GatesFor(b.Gates, o.parties)
	return nil
}

// run measures the rows and writes the results.
func (o *benchOptions) run(cmd *cobra.Command, b *bench.Options, rows []bench.Row) error {
	filter, err := regexp.Compile(o.filter)
	if err != nil {
		return invalid("write a regular expression", "--filter: %v", err)
	}
	w := cmd.OutOrStdout()
	if o.list {
		for _, r := range rows {
			for _, name := range r.Names {
				if filter.MatchString(name) {
					fmt.Fprintln(w, name)
				}
			}
		}
		return nil
	}
	if o.plan {
		return o.writePlan(cmd, rows, filter)
	}
	machine := bench.ThisMachine()
	progress := newProgress(cmd.ErrOrStderr())
	about := append(machine.Lines(), b.Lines()...)
	if o.json || o.text {
		bench.WriteLines(cmd.ErrOrStderr(), about)
	} else {
		bench.WriteLines(w, about)
	}
	list, err := bench.Run(cmd.Context(), rows, filter, bench.AvailableMemory(), func(line string) { progress.say("%s", line) })
	progress.done()
	if err != nil {
		return err
	}
	if o.parties == 0 {
		bench.AddGoals(list)
	}
	if o.write != "" {
		if err := o.rewrite(func(w io.Writer, old string) error { return bench.WritePage(w, old, machine, benchLine(cmd), list) }); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		return bench.WriteJSON(w, list)
	case o.text:
		return bench.WriteText(w, machine, list)
	}
	return bench.WriteTable(w, list)
}

// writePlan writes a line for each row. A duration is what rows take at least: work that takes longer is done once.
func (o *benchOptions) writePlan(cmd *cobra.Command, rows []bench.Row, filter *regexp.Regexp) error {
	t := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	available := bench.AvailableMemory()
	fmt.Fprint(t, "ROW\tRESULTS\tMEMORY\tAT LEAST\n")
	for _, r := range rows {
		if !slices.ContainsFunc(r.Names, filter.MatchString) {
			continue
		}
		memory, least := "-", o.duration
		if r.Memory > 0 {
			memory = fmt.Sprintf("%.2g GB", float64(r.Memory)/1e9)
		}
		if why := bench.Lacks(r.Memory, available); why != "" {
			memory = "too much: " + why
		}
		if strings.HasPrefix(r.Section, "Whole protocols") {
			least *= 10
		}
		fmt.Fprintf(t, "%s\t%d\t%s\t%v\n", r.Names[0], len(r.Names), memory, least)
	}
	return t.Flush()
}

// rewrite reads the page that --write names, if it exists, and writes it anew.
func (o *benchOptions) rewrite(write func(w io.Writer, old string) error) error {
	old, err := os.ReadFile(o.write)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var page bytes.Buffer
	if err := write(&page, string(old)); err != nil {
		return err
	}
	return os.WriteFile(o.write, page.Bytes(), 0o644)
}

// benchLine is the command with the flags that were given, except where results go.
func benchLine(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "json" && f.Name != "text" && f.Name != "write" {
			line += fmt.Sprintf(" --%s %s", f.Name, strings.Trim(f.Value.String(), "[]"))
		}
	})
	return "`" + line + "`"
}
