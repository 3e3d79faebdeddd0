package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/kind"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// demoRun is what jobs of one kind make; owner is that of input masks.
type demoRun struct {
	kind  string
	owner int
}

// runs are the kinds that a demonstration makes: one, or all that MP-SPDZ reads but matrices.
func (o *demoOptions) runs() []demoRun {
	if !o.every {
		return []demoRun{{o.kind, o.inputParty}}
	}
	var runs []demoRun
	for _, k := range kind.All() {
		switch {
		case k.Describe().MPSPDZ == "" || k.Shaped():
		case k.Owned():
			for i := range o.parties {
				runs = append(runs, demoRun{k.String(), i})
			}
		default:
			runs = append(runs, demoRun{kind: k.String()})
		}
	}
	return runs
}

// checkExport refuses what could not be exported in the end.
func (o *demoOptions) checkExport() error {
	switch {
	case o.export == "":
		return nil
	case o.export != "mp-spdz":
		return invalid("write mp-spdz", "--export %s", o.export)
	case o.out == "":
		return invalid("say where with --out", "--export %s without --out", o.export)
	case kind.Of(o.kind).Describe().MPSPDZ == "":
		return invalid("name another --kind", "--export %s: MP-SPDZ has no file for %s", o.export, kind.Of(o.kind).Describe().Title)
	}
	p, err := verify.Modulus(o.params, o.field)
	if err != nil {
		return err
	}
	if p.BitLen() > mpspdz.MaxPrimeBits {
		return invalid(fmt.Sprintf("stock builds of MP-SPDZ take primes of up to %d bits", mpspdz.MaxPrimeBits), "--export %s: the prime of %s has %d bits",
			o.export, o.field, p.BitLen())
	}
	return nil
}

// exportAll writes every party's part of one Player-Data from the shares that were drawn and checked.
func (c *cluster) exportAll(ctx context.Context, o *demoOptions, batches []*coordinatorv1.Job) (reports []*mpspdz.Report, err error) {
	for i := range c.clients {
		var from []string
		for _, j := range batches {
			from = append(from, filepath.Join(c.shares(o), j.GetBatchId(), "party-"+strconv.Itoa(i)))
		}
		c.progress.say("exporting the shares of party %d", i)
		r, err := mpspdz.Export(ctx, from, o.out, mpspdz.ExportOptions{Pooled: true})
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// shares is where the parties' share directories go.
func (c *cluster) shares(o *demoOptions) string {
	if o.out == "" || o.export != "" {
		return filepath.Join(c.dir, "shares")
	}
	return o.out
}

// printExports says what an online engine finds where.
func (r *demoReport) printExports(cmd *cobra.Command) error {
	if len(r.Export) == 0 {
		return nil
	}
	w := cmd.OutOrStdout()
	if _, err := fmt.Fprintf(w, "\n%s has every party's files for MP-SPDZ:\n", r.Export[0].Dir); err != nil {
		return err
	}
	for _, f := range r.Export[0].Files {
		if _, err := fmt.Fprintf(w, "  %-28s %10d records %10d usable\n", filepath.Base(f.Path), f.Records, f.Usable); err != nil {
			return err
		}
	}
	_, err := fmt.Fprint(w, `
For trying only: all shares of the MAC key lie together there, so whoever reads them can forge any value. In earnest each
party exports its own shares on its own machine, with lodge export mp-spdz.
`)
	return err
}
