package linear

import (
	"fmt"
	"testing"
)

// BenchmarkVector measures the product of a matrix of 4000 x 2000 with a shared vector, modulo T of
// 32 bits, on one core: the time of the owner of the key, the time of the owner of the matrix, and
// the bytes in each direction.
func BenchmarkVector(b *testing.B) {
	const rows, cols = 4000, 2000
	w := newWorld(b, Unproved)
	m, mine, yours := w.residues(rows*cols), w.residues(cols), w.residues(cols)
	for _, packing := range packings[1:] {
		p, err := w.PlanVector(rows, cols, packing, 0)
		if err != nil {
			b.Fatal(err)
		}
		in, err := p.Encrypt(w.secret, mine, 1, w.source())
		if err != nil {
			b.Fatal(err)
		}
		answers := make([][]byte, p.Answers)
		evaluate := func() {
			e, err := p.Evaluator(w.public, in)
			if err != nil {
				b.Fatal(err)
			}
			for g := range answers {
				from, to := p.RowsOf(g)
				if answers[g], _, err = e.Answer(g, m[from*cols:to*cols], yours, w.source()); err != nil {
					b.Fatal(err)
				}
			}
		}
		evaluate()
		name := func(who string) string {
			return fmt.Sprintf("%v-%dx%d/%s", packing, p.PerAnswer, p.Width, who)
		}
		b.Run(name("owner-of-key"), func(b *testing.B) {
			for b.Loop() {
				if _, err := p.Encrypt(w.secret, mine, 1, w.source()); err != nil {
					b.Fatal(err)
				}
				for g, answer := range answers {
					if _, err := p.Open(w.secret, g, answer); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(p.UpBytes())/1e6, "MB-up")
			b.ReportMetric(float64(p.DownBytes())/1e6, "MB-down")
		})
		b.Run(name("owner-of-matrix"), func(b *testing.B) {
			for b.Loop() {
				evaluate()
			}
		})
	}
}

// BenchmarkBatch measures the sum over twelve matrices of 124^2 x 4 on one core, with the work of
// both parties.
func BenchmarkBatch(b *testing.B) {
	w := newWorld(b, Unproved)
	p, err := w.PlanBatch(124*124, 4, 12, 1)
	if err != nil {
		b.Fatal(err)
	}
	mine, vectors := w.residues(p.Rows*p.Cols*p.Count), w.residues(p.Cols*p.Count)
	for b.Loop() {
		in, err := p.Encrypt(w.secret, mine, 1, w.source())
		if err != nil {
			b.Fatal(err)
		}
		e, err := p.Evaluator(w.public, in)
		if err != nil {
			b.Fatal(err)
		}
		for g := range p.Answers {
			answer, _, err := e.Answer(g, vectors, nil, w.source())
			if err != nil {
				b.Fatal(err)
			}
			if _, err := p.Open(w.secret, g, answer); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(p.UpBytes())/1e6, "MB-up")
	b.ReportMetric(float64(p.DownBytes())/1e6, "MB-down")
}

// BenchmarkProduct multiplies encrypted matrices on one core: encryption, the service and
// decryption.
func BenchmarkProduct(b *testing.B) {
	square := func(n int, most uint64, method Method, base uint64) ProductShape {
		return ProductShape{Rows: n, Inner: n, Cols: n, MaxLeft: most, MaxRight: most, Method: method, Base: base}
	}
	for _, c := range []struct {
		name, set string
		shape     ProductShape
	}{
		{"binary-32-first", "P13-17", square(32, 1, First, 0)},
		{"binary-32-second", "P13-17", square(32, 1, Second, 0)},
		{"10-bit-16-first", "P13-40", square(16, 1023, First, 0)},
		{"10-bit-16-second", "P13-40", square(16, 1023, Second, 0)},
		{"10-bit-16-base-2-first", "P13-17", square(16, 1023, First, 2)},
		{"10-bit-16-base-2-second", "P13-17", square(16, 1023, Second, 2)},
		{"10-bit-16-base-32-second", "P13-17", square(16, 1023, Second, 32)},
		{"16-bit-128", "P13-40", square(128, 65535, FewestBytes, 0)},
	} {
		w := newWorld(b, c.set)
		p, err := w.PlanProduct(c.shape)
		if err != nil {
			b.Fatal(err)
		}
		left, right := w.entries(p.Rows*p.Inner, p.MaxLeft), w.entries(p.Inner*p.Cols, p.MaxRight)
		b.Run(fmt.Sprintf("%s-%s-%dx%dx%d", c.name, c.set, p.TileRows, p.TileInner, p.TileCols), func(b *testing.B) {
			out := make([]int64, p.Rows*p.Cols)
			for b.Loop() {
				l, err := p.EncryptLeft(w.secret, left, 1, w.source())
				if err != nil {
					b.Fatal(err)
				}
				r, err := p.EncryptRight(w.secret, right, 1, w.source())
				if err != nil {
					b.Fatal(err)
				}
				e, err := p.Evaluator(w.public, l, r)
				if err != nil {
					b.Fatal(err)
				}
				for g, answer := range e.Multiply(1, w.source()) {
					if err := p.Open(w.secret, g, answer, out); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(p.UpBytes())/1e6, "MB-up")
			b.ReportMetric(float64(p.DownBytes())/1e6, "MB-down")
		})
	}
}
