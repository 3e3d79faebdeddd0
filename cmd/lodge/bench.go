package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/metrics"
)

// benchOptions are the flags of `lodge bench`.
type benchOptions struct {
	json, text, list bool
	filter, write    string
	sets             []string
	parties          int
	duration         time.Duration
}

// benchCommand is `lodge bench`.
func benchCommand() *cobra.Command {
	o := &benchOptions{}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure kernels, operations and whole protocols on this machine",
		Long: "Measure this machine. Every time stands beside that of Lattigo's own routine for the same work, where there is one,\n" +
			"and beside that of the kernels in plain Go, all measured in turn in one process; ratios above 1 mean that the\n" +
			"selected kernels are faster. Whole protocols run between processes as `lodge demo` runs them.",
	}
	f := cmd.PersistentFlags()
	f.BoolVar(&o.json, "json", false, "write one list of {name, unit, value, lattigo_ratio, plain_ratio}, and want, want_ratio where a figure is wanted")
	f.BoolVar(&o.text, "text", false, "write lines for benchstat")
	f.BoolVar(&o.list, "list", false, "write the names of what would be measured, and measure nothing")
	f.StringVar(&o.filter, "filter", "", "measure only what has a name that matches this regular expression")
	f.StringSliceVar(&o.sets, "set", append([]string{bench.Headline, params.Default, lwe.Default, paperSet}, multikey.Names()...),
		"parameter sets of operations and protocols, threshold keys and multi-key gates among them")
	f.IntVar(&o.parties, "parties", 2, "parties of whole protocols")
	f.DurationVar(&o.duration, "duration", time.Second, "time for one row, unless its work takes longer; whole protocols take ten times as long")
	f.StringVar(&o.write, "write", "", "write the results to this page too, such as docs/benchmarks.md")
	complete(cmd, "set", allSetWords)
	type part func(cmd *cobra.Command, o *bench.Options) []bench.Row
	gates := func(_ *cobra.Command, b *bench.Options) []bench.Row { return b.Multikey() }
	products := func(_ *cobra.Command, b *bench.Options) []bench.Row { return b.LinearAlgebra() }
	kernels := func(_ *cobra.Command, b *bench.Options) []bench.Row { return b.Kernels() }
	operations := func(_ *cobra.Command, b *bench.Options) []bench.Row { return b.Operations() }
	for _, c := range []struct {
		name, short string
		parts       []part
	}{
		{"kernels", "Measure kernels: transforms, products, samplers, fields", []part{kernels}},
		{"operations", "Measure encryption, products, proofs, decryption", []part{operations}},
		{"protocol", "Measure parties that make triples, each in a process of its own", []part{protocolRows}},
		{"stock", "Measure the store and reservations, with parties in processes of their own", []part{stockRows}},
		{"threshold", "Measure threshold keys: the protocols alone, and parties in processes of their own", []part{thresholdRows}},
		{"multikey", "Measure gates on bits under several parties' keys, beside tfhe-go's", []part{gates}},
		{"linear", "Measure products of matrices and vectors of two parties", []part{products}},
		{"all", "Measure everything", []part{kernels, operations, protocolRows, stockRows, thresholdRows, gates, products}},
	} {
		cmd.AddCommand(&cobra.Command{Use: c.name, Short: c.short, Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			b, err := o.options()
			if err != nil {
				return err
			}
			var rows []bench.Row
			for _, p := range c.parts {
				rows = append(rows, p(cmd, b)...)
			}
			return o.run(cmd, b, rows)
		}})
	}
	return cmd
}

func (o *benchOptions) options() (*bench.Options, error) {
	if o.json && o.text {
		return nil, invalid("write one of them", "--json and --text exclude each other")
	}
	b := &bench.Options{Parties: o.parties, Duration: o.duration, Linear: bench.AllLinear(), Resident: func() uint64 {
		now, _ := metrics.ResidentBytes()
		return now
	}}
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
			return nil, err
		}
		b.Sets = append(b.Sets, set)
	}
	if len(o.sets) == 0 || o.parties < 2 || o.duration <= 0 {
		return nil, invalid("see --set, --parties and --duration", "a benchmark wants a parameter set, two parties or more, and time")
	}
	return b, nil
}

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
	machine := bench.ThisMachine()
	progress := newProgress(cmd.ErrOrStderr())
	about := append(machine.Lines(), b.Lines()...)
	if o.json || o.text {
		bench.WriteLines(cmd.ErrOrStderr(), about)
	} else {
		bench.WriteLines(w, about)
	}
	list, err := bench.Run(cmd.Context(), rows, filter, func(line string) { progress.say("%s", line) })
	progress.done()
	if err != nil {
		return err
	}
	if o.write != "" {
		var page bytes.Buffer
		if err := bench.WritePage(&page, about, list); err != nil {
			return err
		}
		if err := os.WriteFile(o.write, page.Bytes(), 0o644); err != nil {
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
