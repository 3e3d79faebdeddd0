package demos

import (
	"context"
	crand "crypto/rand"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	linearclient "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// Linear computes the linear layers of a small convolutional network. One client shares an image,
// the other client has the filters and weights, and its party computes on ciphertexts of the first
// client. Both clients end with shares of the scores. Then the party multiplies two encrypted
// matrices. Linear compares all results with the same computation in plaintext.
func Linear(ctx context.Context, c *cluster.Cluster) (*LinearReport, error) {
	scheme, err := linear.Find(linear.DefaultVector)
	if err != nil {
		return nil, err
	}
	r := &LinearReport{Security: "passive_evaluator", VectorSet: scheme.Name, ProductSet: linear.DefaultProduct}
	d := &linearDemo{cluster: c, t: scheme.T, report: r}
	for name, client := range map[string]**linearclient.Client{devnet.App: &d.image, devnet.ClientName(0): &d.model} {
		config, err := c.Client(name)
		if err != nil {
			return nil, err
		}
		if *client, err = linearclient.Dial(config, c.Net.Roster.Parties[0].Name); err != nil {
			return nil, err
		}
		defer (*client).Close()
	}
	if r.Correct, err = d.network(ctx); err != nil {
		return nil, err
	}
	product, err := d.product(ctx)
	r.Correct = r.Correct && product
	return r, err
}

// linearDemo has the clients of the two ends. Shares are residues modulo t.
type linearDemo struct {
	cluster      *cluster.Cluster
	image, model *linearclient.Client
	t            uint64
	report       *LinearReport
}

// network evaluates the layers on shares, and compares the scores with those in plaintext.
func (d *linearDemo) network(ctx context.Context) (bool, error) {
	pixels := make([]int64, imageSide*imageSide)
	for i := range pixels {
		pixels[i] = rand.Int64N(maxPixel + 1)
	}
	shares, err := d.share(pixels)
	if err != nil {
		return false, err
	}
	filters, filterResidues := d.random(filterCount*kernelSide*kernelSide, maxWeight)
	weights, weightResidues := d.random(classes*hiddenSize, maxWeight)
	convolved, err := d.both(ctx, "convolution", func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.image.AskBatch(ctx, convolution(e), windows(shares[0]))
	}, func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.model.AnswerBatch(ctx, convolution(e), windows(shares[1]), filterResidues)
	})
	if err != nil {
		return false, err
	}
	add := func(a, b uint64) uint64 { return (a + b) % d.t }
	hidden := [2][]uint64{windowSums(convolved[0], add), windowSums(convolved[1], add)} // each client sums its own share
	scores, err := d.both(ctx, "dense layer", func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.image.AskVector(ctx, &linearclient.Vector{Ends: e, Rows: classes, Cols: hiddenSize}, hidden[0])
	}, func(e linearclient.Ends) (*linearclient.Shares, error) {
		return d.model.AnswerVector(ctx, &linearclient.Vector{Ends: e, Rows: classes, Cols: hiddenSize}, hidden[1], func(i int, into []uint64) error {
			copy(into, weightResidues[i*hiddenSize:])
			return nil
		})
	})
	if err != nil {
		return false, err
	}
	for i, want := range plainScores(pixels, filters, weights) {
		if (scores[0][i]+scores[1][i])%d.t != d.residue(want) {
			return false, nil
		}
	}
	return true, nil
}

// convolution is a product of the windows of an image with the filters.
func convolution(e linearclient.Ends) *linearclient.Batch {
	return &linearclient.Batch{Ends: e, Rows: convolvedSide * convolvedSide, Cols: kernelSide * kernelSide, Count: 1, Outputs: filterCount}
}

// share splits values into two random shares.
func (d *linearDemo) share(values []int64) (shares [2][]uint64, err error) {
	source, err := sample.Draw(crand.Reader, "demonstration of linear algebra")
	if err != nil {
		return shares, err
	}
	defer source.Wipe()
	stream := source.Stream("image")
	defer stream.Wipe()
	shares = [2][]uint64{make([]uint64, len(values)), make([]uint64, len(values))}
	sample.Uniform(shares[1], d.t, stream)
	for i, v := range values {
		shares[0][i] = (d.residue(v) + d.t - shares[1][i]) % d.t
	}
	return shares, nil
}

// both runs the two ends of a product concurrently and returns both shares of the result.
func (d *linearDemo) both(ctx context.Context, name string, ask, answer func(linearclient.Ends) (*linearclient.Shares, error)) (shares [2][]uint64, err error) {
	d.cluster.Progress.Say("%s on shares", name)
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
	d.report.add(name, len(shares[0]), got[0].Up, got[0].Down, got[0].LogDistance, time.Since(began))
	return shares, ctx.Err()
}

// product multiplies two matrices that the party receives encrypted, and compares the result with
// the product in plaintext.
func (d *linearDemo) product(ctx context.Context) (bool, error) {
	const n = matrixSide
	name, began := fmt.Sprintf("encrypted %d x %d x %d", n, n, n), time.Now()
	d.cluster.Progress.Say("%s", name)
	left, _ := d.random(n*n, maxEntry)
	right, _ := d.random(n*n, maxEntry)
	got, err := d.image.Multiply(ctx, &linearclient.Product{Rows: n, Inner: n, Cols: n, Left: left, Right: right, MaxLeft: maxEntry, MaxRight: maxEntry})
	if err != nil {
		return false, err
	}
	d.report.add(name, n*n, got.Up, got.Down, got.LogDistance, time.Since(began))
	return equalsProduct(got.Entries, left, right, n), nil
}
