package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/bench"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/params"
)

// paperDecryptions is the batch size of the paper's decryptions.
const paperDecryptions = 20000

// benchPaperCommand returns lodge-bench paper.
func benchPaperCommand(o *benchOptions) *cobra.Command {
	var tables []string
	var tiny bool
	cmd := &cobra.Command{
		Use:   "paper",
		Short: "Print the tables of the papers with this machine's figures",
		Long: "Print the tables of the five papers that Lodge implements: the published figure, this machine's figure, how the two\n" +
			"setups differ, and why a figure is missing. A row that needs more memory than is available is skipped with a note.\n" +
			"All rows take about 40 minutes on two cores; --dry-run estimates the time and memory of each row.",
		Args: noArguments, Example: examples["paper"],
	}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.papers(cmd, tables, tiny) }
	f := cmd.Flags()
	f.StringSliceVar(&tables, "table", nil, "measure only these tables: "+strings.Join(bench.PaperTables(), ", "))
	f.BoolVar(&tiny, "insecure", false, "use rings that are too small to be secure: a quick test whose figures mean nothing")
	complete(cmd, "table", bench.PaperTables())
	for _, name := range []string{"set", "text"} { // the tables select the sets
		cmd.Flags().Bool(name, false, "")
		if err := cmd.Flags().MarkHidden(name); err != nil {
			panic(err) // the flag exists
		}
	}
	return cmd
}

// papers measures and prints tables.
func (o *benchOptions) papers(cmd *cobra.Command, tables []string, tiny bool) error {
	for _, name := range []string{"set", "text"} {
		if cmd.Flags().Changed(name) {
			return invalid("leave it out", "--%s does not apply to the tables of the papers", name)
		}
	}
	filter, err := regexp.Compile(o.filter)
	if err != nil {
		return invalid("write a regular expression", "--filter: %v", err)
	}
	b, err := o.options(cmd, []benchPart{{field: true, dim: true, parties: true}})
	if err != nil {
		return err
	}
	p := &processBench{cmd: cmd, options: b, tiny: tiny}
	rows := b.Papers(filter, p, tiny)
	if rows, err = onlyTables(rows, tables); err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	switch {
	case len(rows) == 0:
		return invalid("see --list", "no row of the papers' tables matches")
	case o.list:
		for _, r := range rows {
			fmt.Fprintf(w, "%s/%s\n", r.Table, r.Label)
		}
		return nil
	case o.plan:
		return bench.WritePlan(w, rows, bench.AvailableMemory())
	}
	machine := bench.ThisMachine()
	progress := terminal.NewProgress(cmd.ErrOrStderr())
	if tiny {
		progress.Note("--insecure: the rings are too small to be secure, and the figures mean nothing")
	}
	list, err := bench.RunPapers(cmd.Context(), rows, bench.AvailableMemory, func(line string) { progress.Say("%s", line) })
	progress.Done()
	if err != nil {
		return err
	}
	if o.write != "" {
		if err := o.rewrite(func(page, data io.Writer, old []byte) error {
			return bench.WriteComparisonPage(page, data, old, machine, benchLine(cmd), list)
		}); err != nil {
			return err
		}
	}
	if o.json {
		return bench.WriteJSON(w, list)
	}
	return bench.WriteComparison(w, machine, list)
}

// onlyTables returns the rows of the named tables, or all rows if there are no names.
func onlyTables(rows []bench.PaperRow, tables []string) (kept []bench.PaperRow, err error) {
	if len(tables) == 0 {
		return rows, nil
	}
	wanted := map[string]bool{}
	for _, name := range tables {
		wanted[name] = true
	}
	for _, name := range bench.PaperTables() {
		delete(wanted, name)
	}
	for name := range wanted {
		return nil, invalid("use one of "+strings.Join(bench.PaperTables(), ", "), "unknown table %q", name)
	}
	for _, name := range tables {
		for _, r := range rows {
			if r.Table == name {
				kept = append(kept, r)
			}
		}
	}
	return kept, nil
}

// processBench measures the rows of the papers' tables that need parties in their own processes. It
// implements bench.Processes.
type processBench struct {
	cmd     *cobra.Command
	options *bench.Options
	tiny    bool
}

// SentBytes makes two of the smallest batches and one batch of matrix triples. The first batch also
// makes the MAC key.
func (p *processBench) SentBytes(ctx context.Context, set *params.Set, field string, dim int) (macKey, triple float64, err error) {
	one := &protocolBench{cmd: p.cmd, options: p.options, set: set}
	n, err := one.start(ctx, p.options.PartyCount(), dim)
	if err != nil {
		return 0, 0, err
	}
	defer n.Stop()
	scalar := *n
	scalar.dim = 1
	first, err := scalar.make(ctx, field, 1, 0)
	if err != nil {
		return 0, 0, err
	}
	next, err := scalar.make(ctx, field, 1, 0)
	if err != nil {
		return 0, 0, err
	}
	matrices, err := n.make(ctx, field, most, 0)
	if err != nil {
		return 0, 0, err
	}
	return first.sent - next.sent, matrices.sent / matrices.tuples, nil
}

// Decryptions measures masks of the paper's form and a batch of decryptions with them. A first
// batch lets the heaps grow.
func (p *processBench) Decryptions(ctx context.Context, set *lwe.Set, t int) (decrypt, mask float64, err error) {
	count := paperDecryptions
	if p.tiny {
		count = 64
	}
	b := &thresholdBench{cmd: p.cmd, set: set, threshold: t, holders: 2*t + 1, count: count, runs: 1}
	r, err := b.start(ctx, newThresholdMeasured())
	if err != nil {
		return 0, 0, err
	}
	defer r.end()
	const form = "paper"
	if _, err := r.masks(ctx, form, r.request()); err != nil {
		return 0, 0, err
	}
	if _, err := r.decrypt(ctx, form, r.request(), false); err != nil {
		return 0, 0, err
	}
	made, err := r.masks(ctx, form, count)
	if err != nil {
		return 0, 0, err
	}
	opened, err := r.decrypt(ctx, form, count, false)
	return opened.wall, made.wall, err
}
