package linear

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

// run multiplies a matrix with a shared vector, encodes and decodes every message, and returns the
// sum of the shares.
func (w *world) run(t testing.TB, p *VectorPlan, m, mine, yours []uint64) []uint64 {
	t.Helper()
	w.renew()
	in, err := p.Encrypt(w.secret, mine, 2, w.source())
	if err != nil {
		t.Fatal(err)
	}
	received := w.received(t, in)
	e, err := p.Evaluator(w.public, received)
	if err != nil {
		t.Fatal(err)
	}
	var out []uint64
	down := 0
	for g := range p.Answers {
		from, to := p.RowsOf(g)
		answer, shares, err := e.Answer(g, m[from*p.Cols:to*p.Cols], yours, w.source())
		if err != nil {
			t.Fatal(err)
		}
		down += len(answer)
		opened, err := p.Open(w.secret, g, answer)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, w.sum(opened, shares)...)
	}
	up := len(in.Header()) + in.Len()*w.CiphertextSize()
	for i := range w.ProofFrames(in.Len()) {
		up += len(in.ProofFrame(i))
	}
	if up != p.UpBytes() || down != p.DownBytes() {
		t.Errorf("%d bytes and %d back, but the plan says %d and %d", up, down, p.UpBytes(), p.DownBytes())
	}
	return out
}

// received returns inputs after encoding and decoding, the last one first.
func (w *world) received(t testing.TB, in *Inputs) *Inputs {
	t.Helper()
	key, err := w.DecodePublicKey(w.public.Encode())
	if err != nil {
		t.Fatal(err)
	}
	out, err := key.ReceiveInputs(in.Header(), in.Len())
	if err != nil {
		t.Fatal(err)
	}
	for i := in.Len() - 1; i >= 0; i-- {
		if err := out.Put(i, in.AppendCiphertext(nil, i)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range w.ProofFrames(in.Len()) {
		if err := out.PutProof(i, in.ProofFrame(i)); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

var packings = []Packing{Cheapest, Forward, Double, Tiled}

// Tests every packing on random and extreme shapes and values.
func TestMatrixTimesSharedVector(t *testing.T) {
	for _, set := range []string{"insecure-V6-32", "insecure-V6-32-proved"} {
		t.Run(set, func(t *testing.T) { vectors(t, newWorld(t, set)) })
	}
}

func vectors(t *testing.T, w *world) {
	shapes := [][2]int{{1, 1}, {1, 64}, {64, 1}, {1, 65}, {65, 1}, {64, 64}, {3, 500}, {500, 3}, {63, 129}}
	for range 8 {
		shapes = append(shapes, [2]int{1 + w.below(100), 1 + w.below(200)})
	}
	for _, shape := range shapes {
		rows, cols := shape[0], shape[1]
		for _, packing := range packings {
			p, err := w.PlanVector(rows, cols, packing, 0)
			if err != nil {
				t.Fatal(err)
			}
			m, x, y := w.residues(rows*cols), w.residues(cols), w.residues(cols)
			for name, in := range map[string][3][]uint64{
				"random":  {m, x, y},
				"alone":   {m, x, nil},
				"largest": {constant(rows*cols, w.T-1), constant(cols, w.T-1), constant(cols, w.T-1)},
				"middle":  {constant(rows*cols, w.T/2), constant(cols, w.T/2), constant(cols, w.T/2+1)},
				"zeros":   {make([]uint64, rows*cols), x, y},
			} {
				v := in[1]
				if in[2] != nil {
					v = w.sum(v, in[2])
				}
				if got, want := w.run(t, p, in[0], in[1], in[2]), w.product(in[0], v); !slices.Equal(got, want) {
					t.Errorf("%d x %d, %v, %s: got %d, want %d", rows, cols, packing, name, got, want)
				}
			}
		}
	}
}

// Tests every number of rows per answer that a packing can have.
func TestRowsPerAnswer(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	for _, packing := range packings[1:] {
		for l := 1; l <= w.N(); l++ {
			p, err := w.PlanVector(7, 23, packing, l)
			if possible := packing == Tiled || packing == Double && l&(l-1) == 0 || packing == Forward && l <= 2; !possible {
				if !errors.Is(err, ErrShape) {
					t.Errorf("%v, %d rows to an answer: %v", packing, l, err)
				}
				continue
			}
			if err != nil || p.PerAnswer != l || p.Packing != packing {
				t.Fatalf("%v, %d rows to an answer: %v", packing, l, err)
			}
			m, x := w.residues(7*23), w.residues(23)
			if got := w.run(t, p, m, x, nil); !slices.Equal(got, w.product(m, x)) {
				t.Errorf("%v, %d rows to an answer: the product is wrong", packing, l)
			}
		}
	}
}

// Tests a shipped set in the shape that the paper measures, except for the number of rows.
func TestVectorAtFullDegree(t *testing.T) {
	w := newWorld(t, Unproved)
	for _, packing := range packings[1:] {
		p, err := w.PlanVector(130, 2000, packing, 0)
		if err != nil {
			t.Fatal(err)
		}
		m, x, y := w.residues(130*2000), w.residues(2000), w.residues(2000)
		if got := w.run(t, p, m, x, y); !slices.Equal(got, w.product(m, w.sum(x, y))) {
			t.Errorf("%v: the product is wrong", packing)
		}
	}
}

// The plans match the documentation.
func TestVectorPlans(t *testing.T) {
	s, err := Find(Unproved)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		rows, cols int
		packing    Packing
		want       string
	}{
		{4000, 2000, Double, "double 64 x 128"},
		{4000, 2000, Forward, "forward 4 x 2000"},
		{4000, 2000, Cheapest, "tiled 69 x 118"},
		{4096, 100352, Double, "double 8 x 1024"},
		{4096, 100352, Cheapest, "tiled 11 x 744"},
	} {
		p, err := s.PlanVector(c.rows, c.cols, c.packing, 0)
		if err != nil {
			t.Error(err)
			continue
		}
		got := fmt.Sprintf("%v %d x %d", p.Packing, p.PerAnswer, p.Width)
		if got != c.want {
			t.Errorf("%d x %d, %v: %s, want %s", c.rows, c.cols, c.packing, got, c.want)
		}
	}
}

// No other plan has fewer bytes than the cheapest.
func TestCheapestPlan(t *testing.T) {
	s, err := Find("insecure-V6-32")
	if err != nil {
		t.Fatal(err)
	}
	for _, shape := range [][2]int{{1, 1}, {1, 300}, {300, 1}, {50, 50}, {17, 200}, {200, 17}} {
		cheapest, err := s.PlanVector(shape[0], shape[1], Cheapest, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, packing := range packings[1:] {
			for l := range s.N() + 1 {
				if p, err := s.PlanVector(shape[0], shape[1], packing, l); err == nil && p.bytes() < cheapest.bytes() {
					t.Errorf("%v: %v with %d rows to an answer has fewer bytes", shape, packing, l)
				}
			}
		}
	}
}
