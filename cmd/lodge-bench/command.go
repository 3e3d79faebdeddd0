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
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
)

// benchOptions are the flags of lodge-bench.
type benchOptions struct {
	json, text, list, plan bool
	filter, write          string
	sets                   []string
	field                  string
	dim, parties           int
	duration               time.Duration
}

// benchPart is a group of rows with the flags that change them.
type benchPart struct {
	rows                func(cmd *cobra.Command, o *bench.Options) ([]bench.Row, error)
	field, dim, parties bool
}

// sure returns the rows of a part that cannot fail.
func sure(rows func(o *bench.Options) []bench.Row) func(*cobra.Command, *bench.Options) ([]bench.Row, error) {
	return func(_ *cobra.Command, o *bench.Options) ([]bench.Row, error) { return rows(o), nil }
}

// benchCommand returns lodge-bench with the subcommands that measure.
func benchCommand() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "lodge-bench",
		Short: "Measure kernels, operations and whole protocols on this machine",
		Long: "Measure this machine. Each time is compared with that of Lattigo's routine for the same work, if there is one, and with\n" +
			"that of the kernels in plain Go. They run in turn in one process; ratios above 1 mean that the selected kernels are\n" +
			"faster. Whole protocols run between processes, like those of `lodge demo`. `lodge-bench paper` compares the figures of\n" +
			"the papers with those of this machine.",
		Args: noArguments, SilenceUsage: true, SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return invalid("see `"+cmd.CommandPath()+" --help`", "%v", err)
	})
	f := cmd.PersistentFlags()
	f.BoolVar(&o.json, "json", false, "write a list of {name, unit, value, lattigo_ratio, plain_ratio}, with want and want_ratio if the figure has a target")
	f.BoolVar(&o.text, "text", false, "write lines for benchstat")
	f.BoolVar(&o.list, "list", false, "write the names of the results, and measure nothing")
	f.BoolVar(&o.plan, "dry-run", false, "write the rows with estimates of memory and time, and measure nothing")
	f.StringVar(&o.filter, "filter", "", "measure only results whose names match this regular expression")
	f.StringSliceVar(&o.sets, "set", append([]string{bench.Headline, params.Default, lwe.Default, paperSet}, multikey.Names()...),
		"parameter sets of operations and protocols, threshold keys and multi-key gates")
	f.StringVar(&o.field, "field", "", "field of slots and triples, p64 to p4096 (default p128, or the smallest of the set)")
	f.IntVar(&o.dim, "dim", 0, fmt.Sprintf("dimension of matrix blocks, a power of two up to %d (default 128, or the largest of the set)", bench.MaxDim))
	f.IntVar(&o.parties, "parties", 0, "number of parties (default 2; 3 for key generation, first batches and the stock; 2t+1 for threshold keys; 2 to 32 for gates)")
	f.DurationVar(&o.duration, "duration", time.Second, "time for one row, unless its work takes longer; whole protocols take ten times as long")
	f.StringVar(&o.write, "write", "", "also write the results to this page, such as docs/measurements/benchmarks.md, and to the JSON file of the same name; sections that are not measured stay")
	complete(cmd, "set", setNames())
	complete(cmd, "field", config.Fields)
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
		{"protocol", "Measure parties that make triples, each in its own process", []benchPart{protocol}},
		{"stock", "Measure the store and reservations, with each party in its own process", []benchPart{stock}},
		{"threshold", "Measure threshold keys: the protocols alone, and between processes", []benchPart{keys}},
		{"multikey", "Measure gates on bits under several parties' keys, and tfhe-go's", []benchPart{gates}},
		{"linear", "Measure products of matrices and vectors of two parties", []benchPart{products}},
		{"all", "Measure everything", []benchPart{kernels, operations, protocol, stock, keys, gates, products}},
	} {
		cmd.AddCommand(&cobra.Command{Use: c.name, Short: c.short, Args: noArguments, Example: examples[c.name], RunE: func(cmd *cobra.Command, _ []string) error {
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
				return invalid("see --set and --parties", "`lodge-bench %s` has no row for %d parties with the sets %s", c.name, o.parties, strings.Join(o.sets, ", "))
			}
			return o.run(cmd, b, rows)
		}})
	}
	cmd.AddCommand(benchPaperCommand(o))
	return cmd
}

// options checks the flags for the parts and returns the selection.
func (o *benchOptions) options(cmd *cobra.Command, parts []benchPart) (*bench.Options, error) {
	switch {
	case o.json && o.text:
		return nil, invalid("use one of them", "--json and --text exclude each other")
	case o.write != "" && o.filter != "":
		return nil, invalid("leave one of them out", "--write writes whole sections or tables, and --filter would drop some of their rows")
	case o.list && o.plan:
		return nil, invalid("use one of them", "--list and --dry-run exclude each other")
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
			return nil, invalid("leave it out", "--%s changes no measurement of `lodge-bench %s`", flag.name, cmd.Name())
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

// choose looks up the parameter sets.
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
	progress := terminal.NewProgress(cmd.ErrOrStderr())
	about := append(machine.Lines(), b.Lines()...)
	if o.json || o.text {
		bench.WriteLines(cmd.ErrOrStderr(), about)
	} else {
		bench.WriteLines(w, about)
	}
	list, err := bench.Run(cmd.Context(), rows, filter, bench.AvailableMemory(), func(line string) { progress.Say("%s", line) })
	progress.Done()
	if err != nil {
		return err
	}
	if o.parties == 0 {
		bench.AddGoals(list)
	}
	if o.write != "" {
		if err := o.rewrite(func(page, data io.Writer, old []byte) error {
			return bench.WritePage(page, data, old, machine, benchLine(cmd), list)
		}); err != nil {
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

// writePlan writes a line for each row. Its time is a minimum: work that takes longer runs once.
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

// rewrite replaces the page that --write names and the JSON file of the same name with all of its
// figures. It passes the old figures to write, or nil.
func (o *benchOptions) rewrite(write func(page, data io.Writer, old []byte) error) error {
	file := strings.TrimSuffix(o.write, ".md") + ".json"
	old, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	var page, data bytes.Buffer
	if err := write(&page, &data, old); err != nil {
		return err
	}
	if err := os.WriteFile(file, data.Bytes(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(o.write, page.Bytes(), 0o644)
}

// benchLine returns the command with its flags, except those that direct the output.
func benchLine(cmd *cobra.Command) string {
	line := cmd.CommandPath()
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if f.Name != "json" && f.Name != "text" && f.Name != "write" {
			line += fmt.Sprintf(" --%s %s", f.Name, strings.Trim(f.Value.String(), "[]"))
		}
	})
	return "`" + line + "`"
}

// noArguments rejects arguments, which would otherwise be misspelt subcommands.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return invalid("see `"+cmd.CommandPath()+" --help`", "unknown command %q for %q", args[0], cmd.CommandPath())
	}
	return nil
}

// setNames lists the parameter sets of triples and threshold keys.
func setNames() (names []string) {
	for _, s := range params.Sets() {
		names = append(names, s.Name)
	}
	return append(append(names, lwe.Names()...), multikey.Names()...)
}

// examples maps the subcommands to their examples.
var examples = map[string]string{
	"all":        "  lodge-bench all --json\n  lodge-bench all --write docs/measurements/benchmarks.md",
	"kernels":    "  lodge-bench kernels --filter 'ntt|matmul' --text\n  lodge-bench kernels --list",
	"linear":     "  lodge-bench linear --filter vector",
	"multikey":   "  lodge-bench multikey --set M11-4-128",
	"operations": "  lodge-bench operations --set S14-64 --duration 5s\n  lodge-bench operations --field p512 --dim 256 --dry-run",
	"paper":      "  lodge-bench paper --dry-run\n  lodge-bench paper --table matrigear-7,multikey-3\n  lodge-bench paper --write docs/measurements/benchmarks-papers.md",
	"protocol":   "  lodge-bench protocol --parties 3\n  lodge-bench protocol --filter scalar --json",
	"stock":      "  lodge-bench stock\n  lodge-bench stock --list",
	"threshold":  "  lodge-bench threshold --parties 3",
}
