package lwe

import (
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kernel"
)

// centred is the integer that a residue stands for in a gadget.
func centred(x, q uint64, g Gadget) *big.Int {
	v := new(big.Int).SetUint64(x)
	if g.LogBase > 1 && x > q/2 {
		v.Sub(v, new(big.Int).SetUint64(q))
	}
	return v
}

// checkDigits compares the digits of x with the definition, and returns the dropped remainder.
func checkDigits(t *testing.T, d *digits, x uint64) int64 {
	t.Helper()
	half := int64(1) << (d.LogBase - 1)
	sum := new(big.Int)
	for j := range d.Digits {
		v := d.signed(x, &d.at[j])
		low, high := -half, half-1
		if d.LogBase == 1 {
			low, high = 0, 1
		}
		if j == d.Digits-1 {
			high++ // the carry
		}
		if v < low || v > high {
			t.Fatalf("q = %d, %+v: digit %d of %d is %d", d.q, d.Gadget, j, x, v)
		}
		sum.Add(sum, new(big.Int).Mul(big.NewInt(v), new(big.Int).SetUint64(d.Factor(d.q, j))))
	}
	rest := sum.Sub(centred(x, d.q, d.Gadget), sum)
	step := int64(1) << d.drop
	if !rest.IsInt64() || rest.Int64() < -step/2 || rest.Int64() >= max(step/2, 1) {
		t.Fatalf("q = %d, %+v: digits of %d leave %v", d.q, d.Gadget, x, rest)
	}
	return rest.Int64()
}

// Every residue of small moduli, in every gadget.
func TestDigitsExhaustively(t *testing.T) {
	for _, q := range []uint64{17, 31, 97, 127, 251, 257, 511, 513, 1021, 2039} {
		for base := 1; base <= bits.Len64(q); base++ {
			for count := 1; base*count <= bits.Len64(q); count++ {
				d := newDigits(Gadget{LogBase: base, Digits: count}, q)
				var dropped int64
				for x := range q {
					dropped += checkDigits(t, &d, x)
				}
				// Rounding is to the nearest, half up: dropped remainders add up to 0, except for
				// half a unit each and for an incomplete last period.
				if limit := int64(q+1)/2 + int64(1)<<d.drop + int64(1)<<(2*d.drop)/8; dropped < -limit || dropped > limit {
					t.Errorf("q = %d, %+v: drops %d in all", q, d.Gadget, dropped)
				}
			}
		}
	}
}

// The gadgets of the sets at the ends of the range, around the places where digits carry, and at
// random; and the kernel's digits on every path.
func TestDigitsOfSets(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, s := range Sets() {
		for _, g := range []Gadget{s.Rotation, s.Switch} {
			d := newDigits(g, s.Q)
			var list []uint64
			for _, at := range []uint64{0, s.Q / 2, s.Q} {
				for k := range uint64(40) {
					list = append(list, (at+k)%s.Q, (at+s.Q-k)%s.Q)
				}
			}
			for j := range g.Digits {
				for range 20 {
					at := g.Factor(s.Q, j)*(r.Uint64N(1<<g.LogBase)/2) + g.Factor(s.Q, j)/2
					list = append(list, at%s.Q, (at+s.Q-1)%s.Q, (2*s.Q-at)%s.Q, r.Uint64N(s.Q))
				}
			}
			for _, x := range list {
				checkDigits(t, &d, x)
			}
			mod, err := kernel.NewModulus(s.Q)
			if err != nil {
				t.Fatal(err)
			}
			got := make([]uint64, len(list))
			onPaths(t, func() {
				for j := range g.Digits {
					mod.DigitVec(got, list, &d.at[j])
					for i, x := range list {
						want := d.signed(x, &d.at[j])
						if got[i] != uint64(want)+s.Q&uint64(want>>63) {
							t.Fatalf("%s, %+v on %v: digit %d of %d is %d, want %d", s.Name, g, kernel.Selected(), j, x, got[i], want)
						}
					}
				}
			})
		}
	}
}

// onPaths runs f on every path of this processor.
func onPaths(t *testing.T, f func()) {
	defer func(p kernel.Path) { _ = kernel.Select(p) }(kernel.Selected())
	for p := kernel.Plain; p <= kernel.Best(); p++ {
		if err := kernel.Select(p); err != nil {
			t.Fatal(err)
		}
		f()
	}
}

// The rounding of modulus switching, against big integers.
func TestExponent(t *testing.T) {
	for _, set := range Sets() {
		s, err := New(set)
		if err != nil {
			t.Fatal(err)
		}
		r := rand.New(rand.NewPCG(3, 4))
		circle := int64(2 * s.N())
		for k := range int64(2000) {
			x := r.Uint64N(s.Q)
			if k < 1000 { // around the middle between two exponents
				x = (s.Q*uint64(k%32)/32 + s.Q/uint64(2*circle) + uint64(k) - 500) % s.Q
			}
			v := new(big.Int).Mul(new(big.Int).SetUint64(x), big.NewInt(2*circle))
			v.Add(v, new(big.Int).SetUint64(s.Q)).Div(v, new(big.Int).SetUint64(2*s.Q))
			if got, want := s.Exponent(x), v.Int64()%circle; int64(got) != want {
				t.Fatalf("%s: exponent of %d is %d, want %d", s.Name, x, got, want)
			}
		}
	}
}

// turn multiplies by monomials, against the definition.
func TestTurn(t *testing.T) {
	set, err := Lookup("insecure-L8-50")
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	n := s.N()
	r := rand.New(rand.NewPCG(5, 6))
	x, got := make([]uint64, n), make([]uint64, n)
	for i := range x {
		x[i] = r.Uint64N(s.Q)
	}
	x[0], x[1] = 0, s.Q-1
	for e := range 2 * n {
		for _, less := range []bool{false, true} {
			s.turn(got, x, e, less)
			for i := range n {
				at := (i + e) % (2 * n)
				want := x[i]
				if at >= n {
					want, at = s.mod.Neg(want), at-n
				}
				if less {
					want = s.mod.Sub(want, x[at])
				}
				if got[at] != want {
					t.Fatalf("X^%d: coefficient %d is %d, want %d", e, at, got[at], want)
				}
			}
		}
	}
}

func TestDot(t *testing.T) {
	set, _ := Lookup("L11-53")
	s, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	a := make([]uint64, 1<<16)
	for i := range a {
		a[i] = s.Q - 1
	}
	if got := s.Dot(a, a); got != 1<<16 { // (-1)^2 each
		t.Errorf("the longest and largest inner product is %d", got)
	}
	defer func() {
		if recover() == nil {
			t.Error("an inner product of vectors of two lengths")
		}
	}()
	s.Dot(a, a[1:])
}
