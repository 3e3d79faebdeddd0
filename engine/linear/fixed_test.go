package linear

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestFixedPoint(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	x, err := w.Fixed(12, 7)
	if err != nil || x.Most != 2047 {
		t.Fatal(x, err)
	}
	for v := -2047; v <= 2047; v++ {
		for _, off := range []float64{-0.499, 0, 0.499} {
			r, err := x.Encode((float64(v) + off) / 128)
			if err != nil || r >= w.T {
				t.Fatalf("%v: %d, %v", float64(v)+off, r, err)
			}
			if back, err := x.Decode(r); err != nil || back != float64(v)/128 {
				t.Fatalf("%v is decoded as %v, %v", float64(v)/128, back, err)
			}
			if i, err := x.Integer(int64(v)); err != nil || i != r {
				t.Fatalf("%d is encoded as %d, want %d, %v", v, i, r, err)
			}
		}
	}
	refused(t, ErrRange, map[string]error{
		"large":              second(x.Encode(2047.5 / 128)),
		"small":              second(x.Encode(-2047.5 / 128)),
		"infinite":           second(x.Encode(math.Inf(1))),
		"minus infinite":     second(x.Encode(math.Inf(-1))),
		"no number":          second(x.Encode(math.NaN())),
		"integer":            second(x.Integer(2048)),
		"minus integer":      second(x.Integer(-2048)),
		"least integer":      second(x.Integer(math.MinInt64)),
		"residue":            second(x.Decode(2048)),
		"residue below 0":    second(x.Decode(w.T - 2048)),
		"no residue":         second(x.Decode(w.T)),
		"no residue, larger": second(x.Signed(math.MaxUint64)),
		"no bits":            second(w.Fixed(0, 0)),
		"more than T":        second(w.Fixed(33, 0)),
		"fraction":           second(w.Fixed(8, 63)),
		"terms":              second(x.Product(x, 0)),
		"sum":                second(x.Product(x, 1<<9+1)),
		"fractions":          second(x.Product(Fixed{T: w.T, Fraction: 60, Most: 1}, 1)),
		"another T":          second(x.Product(Fixed{T: 257, Most: 1}, 1)),
	})
}

// An error states the entry and the range.
func TestRangeErrors(t *testing.T) {
	w := newWorld(t, "insecure-V6-32")
	x, err := w.Fixed(12, 7)
	if err != nil {
		t.Fatal(err)
	}
	p, err := w.PlanVector(2, 3, Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, residue := p.Encrypt(w.secret, []uint64{0, w.T, 1}, 1, w.source())
	for _, c := range []struct {
		err  error
		at   int
		want string
	}{
		{x.EncodeAll(make([]uint64, 3), []float64{1, -15.9921875, 16}), 2, "number 2 is not in [-15.9921875, 15.9921875]"},
		{x.DecodeAll(make([]float64, 2), []uint64{2047, 2048}), 1, "the integer of residue 1 is not in [-2047, 2047]"},
		{second(x.Integer(-2048)), 0, "integer 0 is not in [-2047, 2047]"},
		{residue, 1, "entry 1 of the vector is not in [0, 4293918720]"},
	} {
		var out *RangeError
		if !errors.As(c.err, &out) || out.Index != c.at || !errors.Is(c.err, ErrRange) || !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%v, want %s", c.err, c.want)
		}
	}
}

// Computes a layer of a network on fixed-point shares; the shares of the result add up to exactly
// the product.
func TestFixedPointLayer(t *testing.T) {
	const rows, cols = 10, 33
	w := newWorld(t, "insecure-V6-32")
	x, err := w.Fixed(12, 8)
	if err != nil {
		t.Fatal(err)
	}
	result, err := x.Product(x, cols)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(n int) (v []float64, residues []uint64) {
		for range n {
			f := float64(w.below(4095)-2047) / 256
			r, err := x.Encode(f)
			if err != nil {
				t.Fatal(err)
			}
			v, residues = append(v, f), append(residues, r)
		}
		return v, residues
	}
	matrix, m := numbers(rows * cols)
	vector, v := numbers(cols)
	mine := w.residues(cols)
	p, err := w.PlanVector(rows, cols, Cheapest, 0)
	if err != nil {
		t.Fatal(err)
	}
	yours, mod := make([]uint64, cols), w.plaintext()
	mod.SubVec(yours, v, mine)
	for i, r := range w.run(t, p, m, mine, yours) {
		want := 0.0
		for j, f := range vector {
			want += matrix[i*cols+j] * f
		}
		if got, err := result.Decode(r); err != nil || got != want {
			t.Errorf("row %d: %v, want %v, %v", i, got, want, err)
		}
	}
}
