package triple

import (
	"flag"
	"fmt"
	"slices"
	"testing"
)

var benchSet = flag.String("set", "S14-32", "the parameter set of benchmarks")

// BenchmarkBatch makes batches of two parties in one process, with and without a sacrifice: time,
// on one core, and bytes are of one party for one tuple.
func BenchmarkBatch(b *testing.B) {
	for _, c := range []struct {
		name  string
		kind  Kind
		shape Shape
		dim   int
	}{
		{"scalar", Scalar, Shape{}, 1},
		{"matrix", Matrix, Shape{128, 128, 128}, 128},
	} {
		b.Run(c.name, func(b *testing.B) {
			const n = 2
			w := newNetwork(b, *benchSet, "p128", n, c.dim)
			for p := range w.macs {
				w.macs[p].Operand = w.scheme.Left(w.macs[p].Ciphertext)
			}
			with := w.plan(b, c.kind, c.shape, 0, MaxBlocks*w.scheme.Slots()-1)
			without, err := with.Trusting()
			if err != nil {
				b.Fatal(err)
			}
			for _, plan := range []*Plan{without, with} {
				b.Run(fmt.Sprintf("sacrifice=%v", plan.Sacrifice), func(b *testing.B) {
					for b.Loop() {
						w.run(plan).OK(b)
					}
					tuples := float64(plan.Count)
					b.ReportMetric(b.Elapsed().Seconds()*1e6/float64(b.N)/n/tuples, "us/tuple")
					b.ReportMetric(float64(plan.SentBytes(w.scheme))/tuples, "B/tuple")
				})
			}
		})
	}
}

// BenchmarkBlocks makes batches of skewed matrices in blocks of several sizes (0: the chosen size),
// with two parties in one process. Time, on one core, and bytes are per party and tuple; memory is
// the estimate for a batch at one party.
func BenchmarkBlocks(b *testing.B) {
	const n, keyDim = 2, 128
	w := newNetwork(b, *benchSet, "p128", n, keyDim)
	for p := range w.macs {
		w.macs[p].Operand = w.scheme.Left(w.macs[p].Ciphertext)
	}
	for _, c := range []struct {
		shape Shape
		dims  []int
	}{{Shape{128, 128, 1}, []int{0, 32, 64, 128}}, {Shape{64, 576, 1}, []int{0, 64, 128}}} {
		for _, dim := range c.dims {
			b.Run(fmt.Sprintf("%dx%dx%d/dim=%d", c.shape.Rows, c.shape.Inner, c.shape.Cols, dim), func(b *testing.B) {
				plan := w.plan(b, Matrix, c.shape, dim, 1)
				for b.Loop() {
					w.run(plan).OK(b)
				}
				tuples := float64(plan.Count)
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/n/tuples, "ms/tuple")
				b.ReportMetric(float64(plan.SentBytes(w.scheme))/tuples, "B/tuple")
				b.ReportMetric(float64(plan.MemoryBytes(2))/1e9, "GB")
			})
		}
	}
}

// BenchmarkConvolutions makes convolution triples, as BenchmarkBlocks does matrices.
func BenchmarkConvolutions(b *testing.B) {
	const n, keyDim = 2, 128
	w := newNetwork(b, *benchSet, "p128", n, keyDim)
	for p := range w.macs {
		w.macs[p].Operand = w.scheme.Left(w.macs[p].Ciphertext)
	}
	for _, s := range []ConvolutionShape{{3, 16, 16, 8, 3, 3, 1, 1, 1, 1}, {16, 8, 8, 32, 3, 3, 1, 1, 1, 1}} {
		plan := w.convolution(b, s)
		b.Run(fmt.Sprintf("%dx%dx%d-by-%dx%dx%d/dim=%d", s.Channels, s.Height, s.Width, s.Outputs, s.KernelHeight, s.KernelWidth, plan.Dim), func(b *testing.B) {
			for b.Loop() {
				w.run(plan).OK(b)
			}
			tuples := float64(plan.Count)
			b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/n/tuples, "ms/tuple")
			b.ReportMetric(float64(plan.SentBytes(w.scheme))/tuples, "B/tuple")
			b.ReportMetric(float64(plan.MemoryBytes(2))/1e9, "GB")
		})
	}
}

// BenchmarkKinds makes the smallest and the largest batch of each kind, of two parties in one
// process: time, on one core, and bytes are of one party for one batch, and tuples is how many a
// batch gives. docs/measurements/performance.md compares two versions by it.
func BenchmarkKinds(b *testing.B) {
	const n, keyDim = 2, 32
	w := newNetwork(b, *benchSet, "p128", n, keyDim)
	for p := range w.macs {
		w.macs[p].Operand = w.scheme.Left(w.macs[p].Ciphertext)
	}
	for _, c := range []struct {
		name  string
		kind  Kind
		shape Shape
	}{
		{"scalar", Scalar, Shape{}}, {"square", Square, Shape{}}, {"random", Random, Shape{}}, {"input", Input, Shape{}},
		{"matrix", Matrix, Shape{32, 32, 32}},
	} {
		for _, count := range []int{1, MaxBlocks * w.scheme.Slots()} {
			if c.kind == Matrix && count > 1 {
				continue
			}
			plan := w.plan(b, c.kind, c.shape, 0, count)
			b.Run(fmt.Sprintf("%s/blocks=%d", c.name, plan.Blocks), func(b *testing.B) {
				var sent int64
				for b.Loop() {
					sent = slices.Max(w.run(plan).OK(b).Sent)
				}
				b.ReportMetric(b.Elapsed().Seconds()*1e3/float64(b.N)/n, "ms/batch")
				b.ReportMetric(float64(sent), "B/batch")
				b.ReportMetric(float64(plan.Count), "tuples")
			})
		}
	}
}
