package linear

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	linearclient "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/linear"
)

// end holds the flags of one end of a product on shares.
type end struct {
	*multiplier
	fixedFlags
	run, with, share, out string
	rows                  int
	matrix                string // vector only
	vectors               string // batch only
	outputs               int
}

func (x *end) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&x.run, "run", "", "32 hexadecimal `digits` that name the run at both ends, and no other run: use `openssl rand -hex 16`")
	f.StringVar(&x.with, "with", "", "the client at the other end, by its name at the party")
	f.StringVar(&x.share, "share", "", "`file` of this end's share, from `lodge linear split`; the other end may have none, which means 0")
	f.StringVar(&x.out, "out", "", "file of this end's share of the product to create, .npy")
	x.fixedFlags.flags(cmd)
}

// ends checks the flags that both ends need.
func (x *end) ends(cmd *cobra.Command, set string) (linearclient.Ends, func(), error) {
	e := linearclient.Ends{With: x.with, Set: set}
	id, err := hex.DecodeString(x.run)
	if err != nil || len(id) != len(e.Run) {
		return e, nil, cli.Invalid("make one with `openssl rand -hex 16`, for both ends", "--run %q is not 32 hexadecimal digits", x.run)
	}
	if x.with == "" {
		return e, nil, cli.Invalid("name the client at the other end", "no --with")
	}
	copy(e.Run[:], id)
	p := cli.ProgressOf(cmd)
	e.Progress = show(p)
	return e, p.Done, newShare(x.out)
}

// finish runs one end, and writes its share of the product.
func (x *end) finish(cmd *cobra.Command, scheme *linear.Scheme, done func(), shape []int, f func(context.Context, *linearclient.Client) (*linearclient.Shares, error)) error {
	began := time.Now()
	defer done()
	var got *linearclient.Shares
	if err := x.do(func(c *linearclient.Client) (err error) {
		got, err = f(cmd.Context(), c)
		return err
	}); err != nil {
		return err
	}
	done()
	defer clear(got.Entries)
	if err := WriteArray(x.out, shape, got.Entries); err != nil {
		return err
	}
	return x.print(cmd, &linearReport{
		Security: got.Security, Set: scheme.Name, Run: x.run, Shape: shape, Out: x.out, UpBytes: got.Up, DownBytes: got.Down,
		LogDistance: got.LogDistance, Seconds: time.Since(began).Seconds(),
	})
}

func (o *multiplier) vectorCommand() *cobra.Command {
	x := &end{multiplier: o}
	cmd := cli.Command("vector", func(cmd *cobra.Command, _ []string) error {
		if x.matrix != "" {
			return x.answerVector(cmd)
		}
		return x.askVector(cmd)
	})
	x.flags(cmd)
	cmd.Flags().StringVar(&x.matrix, "matrix", "", "file of the matrix: integers, numbers with --fraction, or residues if they are unsigned")
	cmd.Flags().IntVar(&x.rows, "rows", 0, "rows of the other end's matrix, without --matrix")
	return cmd
}

func (x *end) askVector(cmd *cobra.Command) error {
	scheme, err := x.scheme(linear.DefaultVector)
	if err != nil {
		return err
	}
	if x.rows < 1 || x.share == "" {
		return cli.Invalid("name the rows of the other end's matrix and a share, or a matrix", "--rows %d, --share %q and no --matrix", x.rows, x.share)
	}
	share, shape, err := readShare(x.share, scheme)
	if err != nil {
		return err
	}
	defer clear(share)
	if len(shape) != 1 {
		return cli.Invalid("name a vector", "%s is of shape %v", x.share, shape)
	}
	e, done, err := x.ends(cmd, scheme.Name)
	if err != nil {
		return err
	}
	return x.finish(cmd, scheme, done, []int{x.rows}, func(ctx context.Context, c *linearclient.Client) (*linearclient.Shares, error) {
		return c.AskVector(ctx, &linearclient.Vector{Ends: e, Rows: x.rows, Cols: len(share)}, share)
	})
}

func (x *end) answerVector(cmd *cobra.Command) error {
	scheme, err := x.scheme(linear.DefaultVector)
	if err != nil {
		return err
	}
	if x.rows != 0 {
		return cli.Invalid("remove it", "--rows with --matrix, which determines the rows")
	}
	as, err := x.of(scheme)
	if err != nil {
		return err
	}
	m, err := openArray(x.matrix)
	if err != nil {
		return err
	}
	defer m.close()
	if len(m.dims) != 2 {
		return cli.Invalid("name a matrix", "%s is of shape %v", x.matrix, m.dims)
	}
	rows, cols := m.dims[0], m.dims[1]
	var share []uint64
	if x.share != "" {
		if share, _, err = readShare(x.share, scheme); err != nil {
			return err
		}
		defer clear(share)
	}
	e, done, err := x.ends(cmd, scheme.Name)
	if err != nil {
		return err
	}
	return x.finish(cmd, scheme, done, []int{rows}, func(ctx context.Context, c *linearclient.Client) (*linearclient.Shares, error) {
		return c.AnswerVector(ctx, &linearclient.Vector{Ends: e, Rows: rows, Cols: cols}, share, func(i int, into []uint64) error {
			err := m.residues(into, as)
			if err == nil && i == rows-1 {
				err = m.end()
			}
			return ofFile(x.matrix, err)
		})
	})
}

func (o *multiplier) batchCommand() *cobra.Command {
	x := &end{multiplier: o}
	cmd := cli.Command("batch", func(cmd *cobra.Command, _ []string) error { return x.batch(cmd) })
	x.flags(cmd)
	cmd.Flags().StringVar(&x.vectors, "vectors", "", "file of the vectors: integers, numbers with --fraction, or residues if they are unsigned")
	cmd.Flags().IntVar(&x.outputs, "outputs", 0, "outputs of the other end's vectors, without --vectors")
	cmd.Flags().IntVar(&x.rows, "rows", 0, "rows of each matrix, with --vectors and without --share")
	return cmd
}

func (x *end) batch(cmd *cobra.Command) error {
	scheme, err := x.scheme(linear.DefaultVector)
	if err != nil {
		return err
	}
	b := linearclient.Batch{Rows: x.rows, Outputs: x.outputs}
	var share, vectors []uint64
	var shape []int
	if x.share != "" {
		if share, shape, err = readShare(x.share, scheme); err != nil {
			return err
		}
		defer clear(share)
		if len(shape) != 3 || x.rows != 0 {
			return cli.Invalid("name a share of COUNT x R x C, and no --rows", "%s is of shape %v, and --rows %d", x.share, shape, x.rows)
		}
		b.Count, b.Rows, b.Cols = shape[0], shape[1], shape[2]
	}
	if x.vectors != "" {
		as, err := x.of(scheme)
		if err != nil {
			return err
		}
		if vectors, shape, err = readResidues(x.vectors, as); err != nil {
			return err
		}
		if len(shape) != 3 || x.outputs != 0 || share != nil && fmt.Sprint(shape[1:]) != fmt.Sprint([]int{b.Count, b.Cols}) {
			return cli.Invalid("name vectors of OUTPUTS x COUNT x C, and no --outputs", "%s is of shape %v, and --outputs %d", x.vectors, shape, x.outputs)
		}
		b.Outputs, b.Count, b.Cols = shape[0], shape[1], shape[2]
	}
	if b.Rows < 1 || b.Outputs < 1 || vectors == nil && share == nil {
		return cli.Invalid("name a share and --outputs, or vectors and a share or --rows", "the shape is unknown")
	}
	var done func()
	if b.Ends, done, err = x.ends(cmd, scheme.Name); err != nil {
		return err
	}
	return x.finish(cmd, scheme, done, []int{b.Outputs, b.Rows}, func(ctx context.Context, c *linearclient.Client) (*linearclient.Shares, error) {
		if vectors != nil {
			return c.AnswerBatch(ctx, &b, share, vectors)
		}
		return c.AskBatch(ctx, &b, share)
	})
}
