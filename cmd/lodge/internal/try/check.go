package try

import (
	"errors"
	"fmt"
	"os"

	"github.com/lodge-mpc/lodge/clients/go/mpspdz"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/demos"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Limits of the policies that devnet writes.
const (
	demoMaxCount = 1 << 20 // triples
	demoMaxDim   = 1 << 12 // of rows, inner or columns
	demoMaxJobs  = 999     // 1000 in an hour, including the one for keys
)

// check rejects demonstrations that cannot succeed, before any process starts, and sets the default
// count.
func (o *demoOptions) check(given func(flag string) bool) error {
	if !job.MakesTuples(job.KindOf(o.kind)) {
		return cli.Invalid("write "+demoKinds, "--kind %s", o.kind)
	}
	if !job.Shaped(job.KindOf(o.kind)) && given("dim") {
		return cli.Invalid("add --kind matrix or convolution", "--dim %s: only they have dimensions", o.size.Shape)
	}
	if !job.Owned(job.KindOf(o.kind)) && given("input-party") {
		return cli.Invalid("add --kind input", "--input-party %d: only input masks are of one party", o.inputParty)
	}
	if o.noSacrifice && o.export == "" && !job.Multiplies(job.KindOf(o.kind)) {
		return cli.Invalid("remove it: these tuples contain no products", "--no-sacrifice with --kind %s", o.kind)
	}
	if err := checkParties(o.parties); err != nil {
		return err
	}
	if o.inputParty < 0 || o.inputParty >= o.parties {
		return cli.Invalid(fmt.Sprintf("the parties are 0 to %d", o.parties-1), "--input-party %d", o.inputParty)
	}
	shape, block, err := o.shape(given)
	if err != nil {
		return err
	}
	o.every = o.export != "" && !given("kind")
	if o.count == 0 {
		o.count = o.defaultCount()
	}
	if o.count > demoMaxCount {
		return cli.Invalid(fmt.Sprintf("a demonstration makes at most %d tuples", demoMaxCount), "--count %d", o.count)
	}
	for _, run := range o.runs() {
		if err := o.plan(run.Kind, shape, block); err != nil {
			return err
		}
	}
	if err := o.checkExport(); err != nil {
		return err
	}
	return checkOut(o.out)
}

// defaultCount returns one batch of matrices, ten thousand tuples of another kind, or a thousand of
// each kind.
func (o *demoOptions) defaultCount() uint64 {
	switch {
	case o.every:
		return 1000
	case job.Shaped(job.KindOf(o.kind)):
		return 1
	}
	return 10000
}

// plan returns an error if the engine cannot make the tuples with the set, field, shape and number
// of parties.
func (o *demoOptions) plan(kindName string, shape *jobv1.Shape, block uint32) error {
	set, err := params.Lookup(o.params)
	if err != nil {
		return err
	}
	k, size := kind.Of(kindName), wire.Shape(shape)
	if k.Shaped() {
		product, err := k.Product(size)
		if err != nil {
			return err
		}
		if product.Largest() > demoMaxDim {
			return cli.Invalid(fmt.Sprintf("a demonstration has matrices of at most %d rows and columns", demoMaxDim), "--dim %s", o.size.Shape)
		}
	}
	p, err := triple.NewPlan(set, o.field, o.parties, k, size, int(block), int(o.count), int(block))
	if err != nil {
		return cli.Invalid(fmt.Sprintf("`lodge params show %s` lists the fields and shapes of the set", o.params), "%v", err)
	}
	if o.noSacrifice && p.Kind.Multiplies() {
		if p, err = p.Trusting(); err != nil {
			return err
		}
	}
	if jobs := (o.count + uint64(p.Count) - 1) / uint64(p.Count); jobs > demoMaxJobs {
		return cli.Invalid(fmt.Sprintf("a demonstration makes at most %d batches", demoMaxJobs), "--count %d: that is %d batches of %d", o.count, jobs, p.Count)
	}
	return nil
}

func checkParties(n int) error {
	if n < 2 || n > config.MaxParties {
		return cli.Invalid(fmt.Sprintf("a cluster has 2 to %d", config.MaxParties), "--parties %d", n)
	}
	return nil
}

// checkOut makes the directory for the shares. It must be empty and writable.
func checkOut(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	list, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if len(list) > 0 {
		return rpc.Errorf(rpc.Conflict, "name a new directory", "--out %s is not empty", dir)
	}
	probe, err := os.CreateTemp(dir, "probe-")
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// runs lists the kinds to make: one, or all that MP-SPDZ reads except matrices.
func (o *demoOptions) runs() []demos.Run {
	if !o.every {
		return []demos.Run{{Kind: o.kind, Owner: o.inputParty}}
	}
	var runs []demos.Run
	for _, k := range kind.All() {
		switch {
		case k.Describe().MPSPDZ == "" || k.Shaped():
		case k.Owned():
			for i := range o.parties {
				runs = append(runs, demos.Run{Kind: k.String(), Owner: i})
			}
		default:
			runs = append(runs, demos.Run{Kind: k.String()})
		}
	}
	return runs
}

// checkExport rejects tuples that cannot be exported.
func (o *demoOptions) checkExport() error {
	switch {
	case o.export == "":
		return nil
	case o.export != "mp-spdz":
		return cli.Invalid("write mp-spdz", "--export %s", o.export)
	case o.out == "":
		return cli.Invalid("say where with --out", "--export %s without --out", o.export)
	case kind.Of(o.kind).Describe().MPSPDZ == "":
		return cli.Invalid("name another --kind", "--export %s: MP-SPDZ has no file for %s", o.export, kind.Of(o.kind).Describe().Title)
	}
	p, err := verify.Modulus(o.params, o.field)
	if err != nil {
		return err
	}
	if p.BitLen() > mpspdz.MaxPrimeBits {
		return cli.Invalid(fmt.Sprintf("stock builds of MP-SPDZ take primes of up to %d bits", mpspdz.MaxPrimeBits), "--export %s: the prime of %s has %d bits",
			o.export, o.field, p.BitLen())
	}
	return nil
}
