package main

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	linearclient "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// The network of the demonstration: an image of 8-bit pixels, filters and weights of 4 bits, sums of windows, and scores.
// Every value is an integer within (-T/2, T/2) of the set for vectors.
const (
	demoSide    = 28
	demoKernel  = 5
	demoFilters = 8
	demoConv    = demoSide - demoKernel + 1 // side of a convolution
	demoPool    = demoConv / 2              // and of sums of windows of 2 x 2
	demoHidden  = demoFilters * demoPool * demoPool
	demoClasses = 10
	demoPixel   = 255
	demoWeight  = 7

	demoOutsourced = 64   // side of the encrypted matrices
	demoEntry      = 1023 // their entries' magnitude
)

// linearLayer is what one product of the demonstration came to.
type linearLayer struct {
	Name     string  `json:"name"`
	Values   int     `json:"values"`
	UpBytes  uint64  `json:"encrypted_bytes"`
	Down     uint64  `json:"answer_bytes"`
	Seconds  float64 `json:"seconds"`
	Distance float64 `json:"log_distance"`
}

// linearDemo is the outcome of `lodge demo linear`.
type linearDemo struct {
	Security     string        `json:"security"`
	VectorSet    string        `json:"vector_set"`
	ProductSet   string        `json:"product_set"`
	Layers       []linearLayer `json:"layers"`
	Correct      bool          `json:"correct"`
	TotalSeconds float64       `json:"total_seconds"`
}

// demoLinearCommand is `lodge demo linear`.
func demoLinearCommand() *cobra.Command {
	var asJSON, keep bool
	cmd := &cobra.Command{
		Use:   "linear",
		Short: "Compute the linear layers of a small convolutional network on shares, and an encrypted product",
		Long: linearText + "Start a cluster as `lodge demo` does. One client shares an image, the other has a convolution and the weights of a dense\n" +
			"layer; the party of the other computes on what the first encrypts. Each client ends with shares of the scores, which are\n" +
			"compared with those of the same network in the clear. Activations between layers are no linear algebra and are left out.\n" +
			"Then the party multiplies two encrypted matrices.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return runDemoLinear(cmd, asJSON, keep) },
	}
	f := cmd.Flags()
	f.BoolVar(&asJSON, "json", false, "write the result as JSON")
	f.BoolVar(&keep, "keep", false, "keep the working directory: configurations, logs and vaults")
	return cmd
}

func runDemoLinear(cmd *cobra.Command, asJSON, keep bool) (err error) {
	start := time.Now()
	defer func() { err = ended(cmd, err) }()
	c, err := startCluster(cmd, clusterOptions{parties: 2, set: params.Default, keep: keep})
	if err != nil {
		return err
	}
	defer c.stop()
	scheme, err := linear.Find(linear.DefaultVector)
	if err != nil {
		return err
	}
	d := &linearRun{cluster: c, t: scheme.T, report: &linearDemo{Security: "passive_evaluator", VectorSet: scheme.Name, ProductSet: linear.DefaultProduct}}
	if d.source, err = sample.Draw(crand.Reader, "demonstration of linear algebra"); err != nil {
		return err
	}
	defer d.source.Wipe()
	for _, x := range []struct {
		name string
		to   **linearclient.Client
	}{{devnet.App, &d.image}, {devnet.ClientName(0), &d.model}} {
		config, err := lodge.Load(filepath.Join(c.net.Dir, "clients", x.name+".yaml"))
		if err != nil {
			return err
		}
		if *x.to, err = linearclient.Dial(config, c.net.Roster.Parties[0].Name); err != nil {
			return err
		}
		defer (*x.to).Close()
	}
	r := d.report
	if r.Correct, err = d.network(cmd.Context()); err != nil {
		return plain(err)
	}
	same, err := d.outsourced(cmd.Context())
	if err != nil {
		return plain(err)
	}
	r.Correct, r.TotalSeconds = r.Correct && same, time.Since(start).Seconds()
	c.progress.done()
	hold(cmd)
	if asJSON {
		err = writeIndented(cmd.OutOrStdout(), r)
	} else {
		err = r.print(cmd)
	}
	if err == nil && !r.Correct {
		err = rpc.Errorf(checkFailed, "", "the results are not those in the clear")
	}
	return err
}

// linearRun is a demonstration under way.
type linearRun struct {
	cluster      *cluster
	image, model *linearclient.Client
	t            uint64
	source       *sample.Source
	report       *linearDemo
}

// small are random integers of at most a magnitude, as residues too.
func (d *linearRun) small(n, most int) (v []int64, residues []uint64) {
	for range n {
		x := rand.Int64N(int64(2*most+1)) - int64(most)
		v, residues = append(v, x), append(residues, uint64(x+int64(d.t))%d.t)
	}
	return v, residues
}

// network computes a convolution, sums of windows and a dense layer, on shares and in the clear.
func (d *linearRun) network(ctx context.Context) (bool, error) {
	pixels := make([]int64, demoSide*demoSide)
	shares := [2][]uint64{make([]uint64, len(pixels)), make([]uint64, len(pixels))}
	stream := d.source.Stream("image")
	defer stream.Wipe()
	sample.Uniform(shares[1], d.t, stream)
	for i := range pixels {
		pixels[i] = rand.Int64N(demoPixel + 1)
		shares[0][i] = (uint64(pixels[i]) + d.t - shares[1][i]) % d.t
	}
	filters, filterResidues := d.small(demoFilters*demoKernel*demoKernel, demoWeight)
	weights, weightResidues := d.small(demoClasses*demoHidden, demoWeight)

	convolved, err := d.both(ctx, "convolution", func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.image.AskBatch(ctx, demoBatch(e), windows(shares[0]))
	}, func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.model.AnswerBatch(ctx, demoBatch(e), windows(shares[1]), filterResidues)
	})
	if err != nil {
		return false, err
	}
	add := func(a, b uint64) uint64 { return (a + b) % d.t }
	hidden := [2][]uint64{windowSums(convolved[0], add), windowSums(convolved[1], add)} // whoever has a share sums it alone
	dense := linearclient.Vector{Rows: demoClasses, Cols: demoHidden}
	scores, err := d.both(ctx, "dense layer", func(e linearclient.Ends) (*linearclient.Shares, error) {
		v := dense
		v.Ends = e
		return d.image.AskVector(ctx, &v, hidden[0])
	}, func(e linearclient.Ends) (*linearclient.Shares, error) {
		v := dense
		v.Ends = e
		return d.model.AnswerVector(ctx, &v, hidden[1], func(i int, into []uint64) error {
			copy(into, weightResidues[i*demoHidden:])
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	open := windowSums(convolve(windows(pixels), filters), func(a, b int64) int64 { return a + b })
	for i := range demoClasses {
		want := int64(0)
		for j, x := range open {
			want += weights[i*demoHidden+j] * x
		}
		got := int64((scores[0][i] + scores[1][i]) % d.t)
		if got > int64(d.t/2) {
			got -= int64(d.t)
		}
		if got != want {
			return false, nil
		}
	}
	return true, nil
}

func demoBatch(e linearclient.Ends) *linearclient.Batch {
	return &linearclient.Batch{Ends: e, Rows: demoConv * demoConv, Cols: demoKernel * demoKernel, Count: 1, Outputs: demoFilters}
}

// windows are the rows that a convolution multiplies with its filters. Whoever has a share of an image makes them alone.
func windows[T any](image []T) (rows []T) {
	for y := range demoConv {
		for x := range demoConv {
			for i := range demoKernel {
				rows = append(rows, image[(y+i)*demoSide+x:][:demoKernel]...)
			}
		}
	}
	return rows
}

// convolve is the convolution in the clear.
func convolve(rows, filters []int64) (out []int64) {
	const size = demoKernel * demoKernel
	for f := range demoFilters {
		for i := range demoConv * demoConv {
			sum := int64(0)
			for j := range size {
				sum += rows[i*size+j] * filters[f*size+j]
			}
			out = append(out, sum)
		}
	}
	return out
}

// windowSums are the sums of windows of 2 x 2, filter by filter.
func windowSums[T any](v []T, add func(a, b T) T) (out []T) {
	for f := range demoFilters {
		at := v[f*demoConv*demoConv:]
		for y := range demoPool {
			for x := range demoPool {
				i := 2*y*demoConv + 2*x
				out = append(out, add(add(at[i], at[i+1]), add(at[i+demoConv], at[i+demoConv+1])))
			}
		}
	}
	return out
}

// both runs the two ends of a product at once, and gives both shares.
func (d *linearRun) both(ctx context.Context, name string, ask, answer func(linearclient.Ends) (*linearclient.Shares, error)) (shares [2][]uint64, err error) {
	d.cluster.progress.say("%s on shares", name)
	began, run := time.Now(), linearclient.NewRun()
	var got [2]*linearclient.Shares
	var errs [2]error
	var group sync.WaitGroup
	group.Go(func() { got[0], errs[0] = ask(linearclient.Ends{Run: run, With: devnet.ClientName(0)}) })
	group.Go(func() { got[1], errs[1] = answer(linearclient.Ends{Run: run, With: devnet.App}) })
	group.Wait()
	for i := range errs {
		if errs[i] != nil {
			return shares, errs[i]
		}
		shares[i] = got[i].Entries
	}
	d.report.Layers = append(d.report.Layers, linearLayer{
		Name: name, Values: len(shares[0]), UpBytes: got[0].Up, Down: got[0].Down, Seconds: time.Since(began).Seconds(), Distance: got[0].LogDistance,
	})
	return shares, ctx.Err()
}

// outsourced multiplies two matrices that the party sees encrypted only.
func (d *linearRun) outsourced(ctx context.Context) (bool, error) {
	const n = demoOutsourced
	name := fmt.Sprintf("encrypted %d x %d x %d", n, n, n)
	d.cluster.progress.say("%s", name)
	began := time.Now()
	left, _ := d.small(n*n, demoEntry)
	right, _ := d.small(n*n, demoEntry)
	got, err := d.image.Multiply(ctx, &linearclient.Product{Rows: n, Inner: n, Cols: n, Left: left, Right: right, MaxLeft: demoEntry, MaxRight: demoEntry})
	if err != nil {
		return false, err
	}
	wrong := false
	for i, x := range got.Entries {
		for k := range n {
			x -= left[i/n*n+k] * right[k*n+i%n]
		}
		if x != 0 {
			wrong = true
		}
	}
	d.report.Layers = append(d.report.Layers, linearLayer{
		Name: name, Values: n * n, UpBytes: got.Up, Down: got.Down, Seconds: time.Since(began).Seconds(), Distance: got.LogDistance,
	})
	return !wrong, nil
}

func (r *linearDemo) print(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	verdict := "the scores and the product are those in the clear"
	if !r.Correct {
		verdict = "the results are NOT those in the clear"
	}
	fmt.Fprintf(out, `
An image of %d x %d pixels that one client shares, %d filters of %d x %d and weights of %d x %d that the other has:
%s.
Security: %s, which means that the party follows the protocol; sets %s, with inputs that the client proves, and %s.
No activations between the layers.

  %-24s%12s%16s%14s%10s%12s
`, demoSide, demoSide, demoFilters, demoKernel, demoKernel, demoClasses, demoHidden, verdict, r.Security, r.VectorSet, r.ProductSet,
		"", "values", "sent encrypted", "answers", "time", "distance")
	for _, l := range r.Layers {
		fmt.Fprintf(out, "  %-24s%12d%16s%14s%8.2f s%12s\n", l.Name, l.Values, amount(float64(l.UpBytes)), amount(float64(l.Down)), l.Seconds, fmt.Sprintf("2^%.1f", l.Distance))
	}
	_, err := fmt.Fprintf(out, "  %-24s%52s%.1f s\n", "in all", "", r.TotalSeconds)
	return err
}
