package linear

import (
	"errors"
	"slices"
	"testing"
)

// multiply multiplies encrypted matrices, and encodes and decodes every message.
func (w *world) multiply(t testing.TB, p *ProductPlan, left, right []int64) []int64 {
	t.Helper()
	l, err := p.EncryptLeft(w.secret, left, 2, w.source())
	if err != nil {
		t.Fatal(err)
	}
	r, err := p.EncryptRight(w.secret, right, 2, w.source())
	if err != nil {
		t.Fatal(err)
	}
	e, err := p.Evaluator(w.public, w.received(t, l), w.received(t, r))
	if err != nil {
		t.Fatal(err)
	}
	out, down := make([]int64, p.Rows*p.Cols), 0
	for g, answer := range e.Multiply(2, w.source()) {
		down += len(answer)
		if err := p.Open(w.secret, g, answer, out); err != nil {
			t.Fatal(err)
		}
	}
	if up := 2*InputsHeaderSize + (l.Len()+r.Len())*w.CiphertextSize(); up != p.UpBytes() || down != p.DownBytes() {
		t.Errorf("%d bytes and %d back, but the plan says %d and %d", up, down, p.UpBytes(), p.DownBytes())
	}
	return out
}

// entries returns integers of at most a magnitude; one in eight has the maximal magnitude.
func (w *world) entries(n int, most uint64) []int64 {
	v := make([]int64, n)
	for i := range v {
		v[i] = int64(w.random.Uint64() % (most + 1))
		switch w.below(8) {
		case 0:
			v[i] = int64(most)
		case 1, 2, 3, 4:
			v[i] = -v[i]
		}
	}
	return v
}

func repeated(n int, v int64) []int64 {
	c := make([]int64, n)
	for i := range c {
		c[i] = v
	}
	return c
}

// integers returns the product over the integers.
func (x ProductShape) integers(left, right []int64) []int64 {
	out := make([]int64, x.Rows*x.Cols)
	for i := range x.Rows {
		for u := range x.Inner {
			for j := range x.Cols {
				out[i*x.Cols+j] += left[i*x.Inner+u] * right[u*x.Cols+j]
			}
		}
	}
	return out
}

func (w *world) checkProduct(t *testing.T, shape ProductShape) {
	t.Helper()
	p, err := w.PlanProduct(shape)
	if err != nil {
		t.Fatalf("%+v: %v", shape, err)
	}
	n, m := shape.Rows*shape.Inner, shape.Inner*shape.Cols
	for name, in := range map[string][2][]int64{
		"random":   {w.entries(n, shape.MaxLeft), w.entries(m, shape.MaxRight)},
		"largest":  {repeated(n, int64(shape.MaxLeft)), repeated(m, int64(shape.MaxRight))},
		"smallest": {repeated(n, -int64(shape.MaxLeft)), repeated(m, int64(shape.MaxRight))},
		"zeros":    {repeated(n, 0), w.entries(m, shape.MaxRight)},
	} {
		if got, want := w.multiply(t, p, in[0], in[1]), shape.integers(in[0], in[1]); !slices.Equal(got, want) {
			t.Errorf("%+v, %s: got %d, want %d", shape, name, got, want)
		}
	}
}

// Tests both methods, binary and wide entries, random and extreme shapes and values.
func TestProducts(t *testing.T) {
	for _, name := range []string{"insecure-P6-17", "insecure-P6-40"} {
		w := newWorld(t, name)
		bits := uint(2)
		if w.T > 1<<32 {
			bits = 15
		}
		shapes := [][3]int{{1, 1, 1}, {64, 1, 1}, {1, 64, 1}, {1, 1, 64},
			{65, 1, 1}, {1, 65, 1}, {1, 1, 65}, {4, 4, 4}, {8, 9, 10}}
		for range 6 {
			shapes = append(shapes, [3]int{1 + w.below(20), 1 + w.below(20), 1 + w.below(20)})
		}
		for _, x := range shapes {
			for method := FewestBytes; method <= Second; method++ {
				w.checkProduct(t, ProductShape{Rows: x[0], Inner: x[1], Cols: x[2], MaxLeft: 1, MaxRight: 1, Method: method})
				w.checkProduct(t, ProductShape{
					Rows: x[0], Inner: x[1], Cols: x[2], MaxLeft: 1<<bits + 3, MaxRight: 1<<bits - 1, Method: method,
				})
			}
		}
	}
}

// The paper's variant computes the same with a small T.
func TestProductsOfDigits(t *testing.T) {
	w := newWorld(t, "insecure-P6-17")
	for _, base := range []uint64{2, 3, 10, 16} {
		for range 3 {
			shape := ProductShape{Rows: 1 + w.below(4), Inner: 1 + w.below(4), Cols: 1 + w.below(4), MaxLeft: 1000}
			shape.MaxRight, shape.Base = 1023, base
			for _, shape.Method = range []Method{First, Second} {
				w.checkProduct(t, shape)
			}
		}
	}
	shape := ProductShape{Rows: 3, Inner: 3, Cols: 3, MaxLeft: 1000, MaxRight: 1023}
	if _, err := w.PlanProduct(shape); !errors.Is(err, ErrRange) {
		t.Errorf("without digits: %v", err)
	}
}

// Tests a shipped set with the smallest of the papers' shapes.
func TestProductAtFullDegree(t *testing.T) {
	newWorld(t, DefaultProduct).checkProduct(t, ProductShape{Rows: 16, Inner: 16, Cols: 16, MaxLeft: 1023, MaxRight: 1023})
}
