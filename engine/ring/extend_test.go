package ring

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// uncertain is the width of the interval above -F/2 in which an extension may be off by F.
func uncertain(from *Basis) *big.Int {
	if from.Len() == 1 {
		return new(big.Int)
	}
	w := new(big.Int).Mul(from.Modulus(), big.NewInt(int64(3*from.Len())))
	return w.Rsh(w, 64)
}

// centredValues returns values in (-F/2, F/2): random ones and those where an error is most likely.
// The two parts hold the values whose lift is certain and the others.
func centredValues(r *rand.Rand, from *Basis) (certain, open []*big.Int) {
	f := from.Modulus()
	half := new(big.Int).Rsh(f, 1) // (F-1)/2
	low := new(big.Int).Sub(uncertain(from), half)
	add := func(v *big.Int) {
		switch {
		case v.CmpAbs(half) > 0:
		case v.Cmp(low) < 0:
			open = append(open, v)
		default:
			certain = append(certain, v)
		}
	}
	for d := int64(-3); d <= 3; d++ {
		e := big.NewInt(d)
		add(e)
		add(new(big.Int).Add(half, e))
		add(new(big.Int).Sub(e, half))
		add(new(big.Int).Add(low, e))
		for _, q := range from.Primes() { // multiples of f_i and of F/f_i
			p := new(big.Int).SetUint64(q)
			add(new(big.Int).Add(p, e))
			add(new(big.Int).Add(p.Quo(f, p), e))
		}
	}
	for range 40 {
		bytes := make([]byte, len(f.Bytes())+8)
		for i := range bytes {
			bytes[i] = byte(r.Uint32())
		}
		v := new(big.Int).SetBytes(bytes)
		add(v.Mod(v, f).Sub(v, half))
		small := new(big.Int).Rsh(v, uint(r.IntN(f.BitLen())))
		add(small)
		add(new(big.Int).Sub(half, small))
		add(new(big.Int).Sub(small, half))
	}
	return certain, open
}

// inBatches calls f with polynomials that hold all values.
func inBatches(b *Basis, values []*big.Int, f func(x Poly, v []*big.Int)) {
	for len(values) > 0 {
		v := make([]*big.Int, b.N())
		for k := range v {
			v[k] = new(big.Int)
		}
		values = values[copy(v, values):]
		x := b.NewPoly()
		b.FromBig(x, v)
		f(x, v)
	}
}

func TestExtend(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	q61, q49, q30 := primesOf(4, 61, 8), primesOf(4, 49, 8), primesOf(4, 30, 4)
	big61 := mustBasis(t, 4, q61...)
	seven := mustBasis(t, 4, q49[:7]...)
	mixed := mustBasis(t, 4, 97, q61[0], q30[0], q49[0], 193)
	many := mustBasis(t, 4, primesOf(4, 61, maxTerms)...)
	for name, c := range map[string]struct{ from, to *Basis }{
		"one to one":          {mustBasis(t, 4, 97), mustBasis(t, 4, 193)},
		"large to small":      {mustBasis(t, 4, q61[0]), mustBasis(t, 4, 97, 193)},
		"small to large":      {mustBasis(t, 4, 97), big61},
		"single large":        {big61.Range(0, 1), big61.Range(1, 2)},
		"8 x 61 to 7 x 49":    {big61, seven},
		"7 x 49 to 8 x 61":    {seven, big61},
		"mixed to 49":         {mixed, seven},
		"49 to mixed":         {seven, mixed},
		"shared primes":       {seven, Join(seven, big61.Prefix(2))},
		"part of itself":      {seven, seven.Range(2, 5)},
		"digit below":         {seven.Range(3, 6), seven.Range(0, 3)},
		"digit above":         {seven.Range(3, 6), seven.Range(6, 7)},
		"first digit":         {seven.Range(0, 3), seven},
		"single target":       {seven, big61.Range(3, 4)},
		"as many as may be":   {many, mustBasis(t, 4, 97, q49[0], q61[3])},
		"to as many as exist": {mixed, many},
	} {
		e := NewExtender(c.from, c.to)
		certain, open := centredValues(r, c.from)
		inBatches(c.from, certain, func(x Poly, v []*big.Int) {
			got := randomPoly(r, c.to)
			e.Extend(got, x)
			want := c.to.NewPoly()
			c.to.FromBig(want, v)
			if !got.Equal(want) {
				t.Fatalf("%s: the lift of values %v has a wrong length", name, v)
			}
		})
		f := c.from.Modulus()
		inBatches(c.from, open, func(x Poly, v []*big.Int) {
			got := c.to.NewPoly()
			e.Extend(got, x)
			for k := range v {
				same, above := true, true
				for i, q := range c.to.Primes() {
					p := new(big.Int).SetUint64(q)
					same = same && new(big.Int).Mod(v[k], p).Uint64() == got.C[i][k]
					up := new(big.Int).Add(v[k], f)
					above = above && up.Mod(up, p).Uint64() == got.C[i][k]
				}
				if !same && !above {
					t.Fatalf("%s: %v is lifted neither to itself nor to %v", name, v[k], f)
				}
			}
		})
	}
}

func TestExtendExhaustively(t *testing.T) {
	from, to := mustBasis(t, 4, 97, 193), mustBasis(t, 4, 257, 97)
	half := int64(97*193) / 2
	var all []*big.Int
	for v := -half; v <= half; v++ {
		all = append(all, big.NewInt(v))
	}
	e := NewExtender(from, to)
	inBatches(from, all, func(x Poly, v []*big.Int) {
		got := to.NewPoly()
		e.Extend(got, x)
		wantPoly(t, to, got, v, "lift of %v", v)
	})
}

func TestExtendInPlace(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	full := mustBasis(t, 11, append(primesOf(11, 49, 3), primesOf(11, 60, 2)...)...) // more than one block
	from := full.Range(1, 3)
	e := NewExtender(from, full)
	x, want := randomPoly(r, full), full.NewPoly()
	part := Poly{x.C[1:3]}
	keep := part.Clone()
	e.Extend(want, part)
	e.Extend(x, part)
	if !x.Equal(want) || !(Poly{x.C[1:3]}).Equal(keep) {
		t.Fatal("an extension in place differs")
	}
	wantPoly(t, full, x, from.ToBig(keep), "lift")
}

func TestExtenderRefusesManyPrimes(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	NewExtender(mustBasis(t, 4, primesOf(4, 40, maxTerms+1)...), mustBasis(t, 4, 97))
}

// round returns round(x/d) for odd d.
func round(x, d *big.Int) *big.Int {
	twice := new(big.Int).Lsh(x, 1)
	twice.Add(twice, d)
	return twice.Div(twice, new(big.Int).Lsh(d, 1)) // floor(x/d + 1/2)
}

func TestDivRound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	q61, q49 := primesOf(4, 61, 3), primesOf(4, 49, 7)
	seven, large := mustBasis(t, 4, q49...), mustBasis(t, 4, q61...)
	for name, c := range map[string]struct{ keep, drop *Basis }{
		"small":            {mustBasis(t, 4, 97), mustBasis(t, 4, 193)},
		"last of seven":    {seven.Prefix(6), seven.Range(6, 7)},
		"four of seven":    {seven.Prefix(3), seven.Range(3, 7)},
		"first of seven":   {seven.Range(1, 7), seven.Prefix(1)},
		"seven for three":  {large, seven},
		"three for seven":  {seven, large},
		"small from large": {mustBasis(t, 4, 97, 193), large},
	} {
		d := NewDivider(c.keep, c.drop)
		both, drop := Join(c.keep, c.drop), c.drop.Modulus()
		// x = m·Drop + e with all kinds of e and m; the fraction e/Drop is certain where the lift
		// of e is.
		remainders, _ := centredValues(r, c.drop)
		quotients, _ := centredValues(r, c.keep)
		values := make([]*big.Int, len(remainders))
		for i, e := range remainders {
			m := quotients[r.IntN(len(quotients))]
			values[i] = new(big.Int).Add(e, new(big.Int).Mul(m, drop))
		}
		inBatches(both, values, func(x Poly, v []*big.Int) {
			want := make([]*big.Int, len(v))
			for k := range v {
				want[k] = round(v[k], drop)
			}
			k := c.keep.Len()
			got := randomPoly(r, c.keep)
			d.DivRound(got, Poly{x.C[:k]}, Poly{x.C[k:]})
			wantPoly(t, c.keep, got, want, "%s: quotients of %v", name, v)
			d.DivRound(Poly{x.C[:k]}, Poly{x.C[:k]}, Poly{x.C[k:]})
			if !(Poly{x.C[:k]}).Equal(got) {
				t.Fatalf("%s: division in place differs", name)
			}
		})
	}
}

func TestDivRoundExhaustively(t *testing.T) {
	keep, drop := mustBasis(t, 4, 97), mustBasis(t, 4, 193)
	d, both := NewDivider(keep, drop), Join(keep, drop)
	var all []*big.Int
	for v := range int64(97 * 193) {
		all = append(all, big.NewInt(v))
	}
	inBatches(both, all, func(x Poly, v []*big.Int) {
		want, got := make([]*big.Int, len(v)), keep.NewPoly()
		for k := range v {
			want[k] = round(v[k], big.NewInt(193))
		}
		d.DivRound(got, Poly{x.C[:1]}, Poly{x.C[1:]})
		wantPoly(t, keep, got, want, "quotients of %v", v)
	})
}

func TestLift(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	full := mustBasis(t, 11, append(primesOf(11, 49, 3), primesOf(11, 60, 2)...)...)
	from := full.Range(1, 4)
	e := NewExtender(from, full)
	x, want, got := randomPoly(r, from), full.NewPoly(), full.NewPoly()
	e.Extend(want, x)
	lift := newLift(e.from.n, e.from.Len())
	for range 2 { // a lift may be filled again
		e.prepare(lift, x)
		for j := range got.C {
			e.limb(got.C[j], lift, j)
		}
		if !got.Equal(want) {
			t.Fatal("prime by prime the extension differs")
		}
	}
	lift.Wipe()
	for _, y := range lift.y {
		if y != 0 {
			t.Fatal("a wiped lift is not zero")
		}
	}
}

// prepare sets dst to the lift of src. It does not depend on the basis to.
func (e *Extender) prepare(dst *lifting, src Poly) {
	for start := 0; start < e.from.n; start += block {
		e.digits(dst.part(start, min(block, e.from.n-start)), src, start)
	}
}

// limb sets dst to prime j of the target basis, as Extend would.
func (e *Extender) limb(dst []uint64, src *lifting, j int) {
	for start := 0; start < e.from.n; start += block {
		part := src.part(start, min(block, e.from.n-start))
		e.combine(dst[start:start+len(part.v)], part, j)
	}
}
