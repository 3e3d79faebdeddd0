package ring

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// primesOf returns count primes of the given length that are 1 mod 2^(logN+1), the largest first.
func primesOf(logN, length, count int) (out []uint64) {
	step := uint64(2) << logN
	for q := uint64(1)<<length - step + 1; len(out) < count; q -= step {
		if new(big.Int).SetUint64(q).ProbablyPrime(10) {
			out = append(out, q)
		}
	}
	return out
}

func mustBasis(t testing.TB, logN int, primes ...uint64) *Basis {
	b, err := NewBasis(logN, primes)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// small returns bases of degree 16: with small primes, the largest primes, and mixed ones.
func small(t testing.TB) []*Basis {
	return []*Basis{
		mustBasis(t, 4, 97),
		mustBasis(t, 4, 97, 193, 257),
		mustBasis(t, 4, primesOf(4, 61, 4)...),
		mustBasis(t, 4, primesOf(4, 49, 7)...),
		mustBasis(t, 4, append([]uint64{193}, append(primesOf(4, 61, 2), primesOf(4, 30, 3)...)...)...),
	}
}

func randomPoly(r *rand.Rand, b *Basis) Poly {
	p := b.NewPoly()
	for i, q := range b.Primes() {
		for k := range p.C[i] {
			switch p.C[i][k] = r.Uint64N(q); r.IntN(8) {
			case 0:
				p.C[i][k] = q - 1
			case 1:
				p.C[i][k] = 0
			}
		}
	}
	return p
}

// lift returns the coefficients of p, in [0, q) and not centred, by Garner's method, limb after
// limb.
func lift(b *Basis, p Poly) []*big.Int {
	out := make([]*big.Int, b.N())
	for k := range out {
		x, m := new(big.Int), big.NewInt(1)
		for i, prime := range b.Primes() {
			q := new(big.Int).SetUint64(prime)
			d := new(big.Int).SetUint64(p.C[i][k])
			d.Sub(d, x).Mul(d, new(big.Int).ModInverse(m, q)).Mod(d, q)
			x.Add(x, d.Mul(d, m))
			m.Mul(m, q)
		}
		out[k] = x
	}
	return out
}

// schoolbook multiplies integer polynomials modulo X^N+1.
func schoolbook(x, y []*big.Int) []*big.Int {
	n := len(x)
	out := make([]*big.Int, n)
	for k := range out {
		out[k] = new(big.Int)
	}
	t := new(big.Int)
	for i := range n {
		for j := range n {
			if t.Mul(x[i], y[j]); i+j < n {
				out[i+j].Add(out[i+j], t)
			} else {
				out[i+j-n].Sub(out[i+j-n], t)
			}
		}
	}
	return out
}

// substitute returns x(X^g) by definition.
func substitute(x []*big.Int, g int) []*big.Int {
	n := len(x)
	out := make([]*big.Int, n)
	for k := range n {
		at := (k*g%(2*n) + 2*n) % (2 * n)
		if at < n {
			out[at] = x[k]
		} else {
			out[at-n] = new(big.Int).Neg(x[k])
		}
	}
	return out
}

func wantPoly(t *testing.T, b *Basis, got Poly, want []*big.Int, what string, args ...any) {
	t.Helper()
	w := b.NewPoly()
	b.FromBig(w, want)
	if !got.Equal(w) {
		t.Fatalf("modulo %v: "+what, append([]any{b.Primes()}, args...)...)
	}
}

func TestNewBasisRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		logN   int
		primes []uint64
	}{
		"no primes":     {4, nil},
		"small degree":  {3, []uint64{97}},
		"large degree":  {18, []uint64{97}},
		"not 1 mod 2N":  {4, []uint64{101}},
		"composite":     {4, []uint64{33 * 97}},
		"repeated":      {4, []uint64{97, 97}},
		"even":          {4, []uint64{96}},
		"zero":          {4, []uint64{0}},
		"one":           {4, []uint64{1}},
		"one of many":   {4, []uint64{97, 101}},
		"over 61 bits":  {4, primesOf(4, 62, 1)},
		"over 61 bits2": {4, primesOf(4, 63, 1)},
	} {
		if _, err := NewBasis(c.logN, c.primes); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestBasisParts(t *testing.T) {
	primes := primesOf(4, 40, 5)
	b := mustBasis(t, 4, primes...)
	for _, p := range []*Basis{Join(b.Prefix(2), b.Range(2, 5)), Join(b.Range(0, 4), b.Range(4, 5)), b} {
		if p.Len() != 5 || p.N() != 16 || p.Modulus().Cmp(b.Modulus()) != 0 {
			t.Fatal("parts do not join")
		}
		for i, q := range p.Primes() {
			if q != primes[i] {
				t.Fatalf("prime %d is %d", i, q)
			}
		}
	}
	// A prefix of a basis works on longer polynomials without changing their other limbs.
	r := rand.New(rand.NewPCG(9, 9))
	x, y := randomPoly(r, b), randomPoly(r, b)
	keep := y.Clone()
	other := b.NewNTT()
	if other.Copy(NTT(y)); !other.Equal(NTT(y)) {
		t.Fatal("a copy differs from its source")
	}
	b.Prefix(2).MulMonomial(y, x, 3)
	if !other.Equal(NTT(keep)) {
		t.Fatal("a copy shares storage")
	}
	b.Prefix(2).Add(y, y, x)
	if (Poly{y.C[2:]}).Equal(Poly{keep.C[2:]}) == false || (Poly{y.C[:2]}).Equal(Poly{keep.C[:2]}) {
		t.Fatal("a prefix changed other limbs than its own")
	}
}

func TestBigRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, b := range small(t) {
		x := randomPoly(r, b)
		v := b.ToBig(x)
		half := new(big.Int).Rsh(b.Modulus(), 1)
		for k, c := range lift(b, x) {
			if c.Cmp(half) > 0 {
				c.Sub(c, b.Modulus())
			}
			if v[k].Cmp(c) != 0 {
				t.Fatalf("%v, not %v", v[k], c)
			}
		}
		wantPoly(t, b, x, v, "ToBig and FromBig differ")
	}
}

func TestArithmetic(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, b := range small(t) {
		x, y := randomPoly(r, b), randomPoly(r, b)
		X, Y := lift(b, x), lift(b, y)
		sum, diff, neg, twice := make([]*big.Int, 16), make([]*big.Int, 16), make([]*big.Int, 16), make([]*big.Int, 16)
		scaled := make([]*big.Int, 16)
		c := big.NewInt(-12345678901)
		residues := make([]uint64, b.Len())
		for i, q := range b.Primes() {
			residues[i] = new(big.Int).Mod(c, new(big.Int).SetUint64(q)).Uint64()
		}
		for k := range X {
			sum[k], diff[k] = new(big.Int).Add(X[k], Y[k]), new(big.Int).Sub(X[k], Y[k])
			neg[k], twice[k] = new(big.Int).Neg(X[k]), new(big.Int).Lsh(X[k], 1)
			scaled[k] = new(big.Int).Mul(X[k], c)
		}
		d := randomPoly(r, b)
		b.Add(d, x, y)
		wantPoly(t, b, d, sum, "sum")
		b.Sub(d, x, y)
		wantPoly(t, b, d, diff, "difference")
		b.Neg(d, x)
		wantPoly(t, b, d, neg, "negation")
		b.Double(d, x)
		wantPoly(t, b, d, twice, "double")
		b.MulScalar(d, x, residues)
		wantPoly(t, b, d, scaled, "multiple")
	}
}

func TestProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, b := range small(t) {
		x, y, z := randomPoly(r, b), randomPoly(r, b), randomPoly(r, b)
		X, Y, Z := b.NewNTT(), b.NewNTT(), b.NewNTT()
		b.Forward(X, x)
		b.Forward(Y, y)
		b.Forward(Z, z)
		for i, q := range b.Primes() {
			for _, v := range X.C[i] {
				if v >= q {
					t.Fatalf("value %d is not below %d", v, q)
				}
			}
		}
		back := b.NewPoly()
		b.Inverse(back, X)
		if !back.Equal(x) {
			t.Fatalf("modulo %v: the inverse transform does not undo the transform", b.Primes())
		}
		inPlace := x.Clone()
		b.Forward(NTT(inPlace), inPlace)
		if !NTT(inPlace).Equal(X) {
			t.Fatal("a transform in place differs")
		}
		b.Inverse(inPlace, NTT(inPlace))
		if !inPlace.Equal(x) {
			t.Fatal("an inverse transform in place differs")
		}

		p, xb, yb, zb := b.NewNTT(), lift(b, x), lift(b, y), lift(b, z)
		want := schoolbook(xb, yb)
		b.MulNTT(p, X, Y)
		b.Inverse(back, p)
		wantPoly(t, b, back, want, "product")
		b.MulAddNTT(p, X, Z)
		for k, c := range schoolbook(xb, zb) {
			want[k].Add(want[k], c)
		}
		b.Inverse(back, p)
		wantPoly(t, b, back, want, "product and sum")
		b.SubNTT(p, p, Y)
		b.AddNTT(p, p, Z)
		b.NegNTT(p, p)
		for k := range want {
			want[k].Sub(want[k], yb[k]).Add(want[k], zb[k]).Neg(want[k])
		}
		b.Inverse(back, p)
		wantPoly(t, b, back, want, "sums in evaluation form")
	}
}

func TestMonomials(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for _, b := range small(t) {
		x := randomPoly(r, b)
		X := lift(b, x)
		for e := range 2 * b.N() {
			power := make([]*big.Int, b.N())
			for k := range power {
				power[k] = new(big.Int)
			}
			power[e%b.N()].SetInt64(int64(1 - e/b.N()*2))
			want := schoolbook(X, power)
			y := randomPoly(r, b)
			b.MulMonomial(y, x, e)
			wantPoly(t, b, y, want, "X^%d", e)
			y = randomPoly(r, b)
			for k, c := range lift(b, y) {
				want[k].Add(want[k], c)
			}
			b.AddMonomial(y, x, e)
			wantPoly(t, b, y, want, "adding X^%d", e)
		}
	}
	b := mustBasis(t, 4, 97)
	for _, e := range []int{-1, 2 * b.N(), 2*b.N() + 1} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("AddMonomial accepted X^%d", e)
				}
			}()
			b.AddMonomial(b.NewPoly(), b.NewPoly(), e)
		}()
	}
}

func TestFromInt(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for _, b := range small(t) {
		for _, w := range []int{1, 2, 3, 4, 7, 8, 14, 15} {
			v := intpoly.New(b.N(), w)
			for i := range v.C {
				v.C[i] = r.Uint64()
			}
			clear(v.Coeff(0))
			for i := range w {
				v.Coeff(1)[i] = ^uint64(0)   // -1
				v.Coeff(2)[i] = uint64(0)    // -2^(64w-1)
				v.Coeff(3)[i] = ^uint64(0)   // 2^(64w-1) - 1
				v.Coeff(4)[i] = ^uint64(0)   // -2^64, for w > 1
				v.Coeff(5)[i] = uint64(1234) // positive
			}
			v.Coeff(2)[w-1] = 1 << 63
			v.Coeff(3)[w-1] = 1<<63 - 1
			v.Coeff(4)[0] = 0
			want := make([]*big.Int, b.N())
			for k := range want {
				want[k] = v.Big(k)
			}
			got := randomPoly(r, b)
			b.FromInt(got, v)
			wantPoly(t, b, got, want, "residues of integers of %d words", w)
		}
	}
}

func TestFromSmall(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for _, length := range []int{32, 49, 61} {
		b := mustBasis(t, 4, primesOf(4, length, 3)...)
		for length := range smallBits + 1 {
			v := intpoly.New(b.N(), 1)
			for i := range v.C {
				v.C[i] = uint64(int64(r.Uint64()) >> (63 - length))
			}
			end := int64(1)<<length - 1
			for i, x := range []int64{0, -1, end, -end} {
				v.C[i] = uint64(x)
			}
			want := randomPoly(r, b)
			b.FromInt(want, v)
			got := randomPoly(r, b)
			if b.FromSmall(got, v); !got.Equal(want) {
				t.Fatalf("residues of integers of %d bits", length)
			}
		}
	}
}
