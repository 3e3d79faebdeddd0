package field

import (
	"encoding/binary"
	"io"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// exactCentre returns t_{iD+j} = (1/p)·sum_a b^(M-1-a)·e_{i-a} exactly, as numerator over p.
func exactCentre(p *Packing, e intpoly.Poly, i, j int) *big.Int {
	sum, m := new(big.Int), p.M()
	for a := range m {
		k, sign := i-a, int64(1)
		if k < 0 {
			k, sign = k+m, -1
		}
		term := signed(e.Coeff(k*p.D() + j))
		term.Mul(term, new(big.Int).Exp(p.f.b, big.NewInt(int64(m-1-a)), nil))
		sum.Add(sum, term.Mul(term, big.NewInt(sign)))
	}
	return sum
}

// TestRandPack checks for every field that centres are accurate to 2^-120, integer parts included,
// and that the assembled mu equals e + P·(z + floor(t)), reduces to the plaintext, and stays within
// its bound.
func TestRandPack(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		p := newPacking(t, f, s.logN)
		n, d, m := p.N(), p.D(), p.M()
		c, back := f.NewVec(d), f.NewVec(d)
		if err := f.Random(c, shake("coset")); err != nil {
			t.Fatal(err)
		}
		for i, v := range []int64{0, 1, -1, -2} {
			f.SetBig(c.At(i), big.NewInt(v))
		}
		e := intpoly.New(n, p.DigitWords())
		p.Digits(e, c)
		centres, floors := make([]uint64, 2*n), make([]int64, n)
		p.CosetCentres(centres, floors, e)
		z, raw := make([]int64, n), make([]byte, 8)
		const zMax = 2400
		r := shake("z")
		for k := range z {
			io.ReadFull(r, raw)
			z[k] = int64(binary.LittleEndian.Uint64(raw)%(2*zMax+1)) - zMax
		}
		width := (f.b.BitLen() + 13 + 63) / 64
		mu := intpoly.New(n, width)
		for k, v := range z {
			floors[k] += v
		}
		p.AssembleRandPack(mu, e, floors)
		if p.Reduce(back, mu); !f.EqualVec(back, c) {
			t.Fatal("mu reduces to a different plaintext")
		}
		bound := new(big.Int).Add(f.b, big.NewInt(1))
		bound.Mul(bound, big.NewInt(zMax+2))
		if maxAbs(mu).Cmp(bound) > 0 {
			t.Fatal("mu is too large")
		}
		for j := range min(d, 6) {
			prev := new(big.Int) // z_{-1} + floor(t_{-1}), with its sign
			for i := -1; i < m; i++ {
				at := (i + m) % m
				tn := exactCentre(p, e, at, j)
				k := at*d + j
				floor, rest := new(big.Int).DivMod(tn, f.p, new(big.Int))
				if tn.CmpAbs(f.p) >= 0 {
					t.Fatal("|t| >= 1")
				}
				frac := new(big.Int).Div(rest.Lsh(rest, 128), f.p)
				got := new(big.Int).SetUint64(centres[2*k])
				got.Lsh(got, 64).Or(got, new(big.Int).SetUint64(centres[2*k+1]))
				diff := got.Sub(got, frac)
				// If t is so close to an integer that the fraction wraps, its floor differs and is
				// equally right.
				if wrap := new(big.Int).Lsh(big.NewInt(1), 127); diff.CmpAbs(wrap) > 0 {
					if diff.Sign() > 0 {
						floor.Sub(floor, big.NewInt(1))
						diff.Sub(diff, wrap.Lsh(wrap, 1))
					} else {
						floor.Add(floor, big.NewInt(1))
						diff.Add(diff, wrap.Lsh(wrap, 1))
					}
				}
				if diff.BitLen() > 7 {
					t.Fatalf("centre %d of column %d is off by 2^%d/2^128", at, j, diff.BitLen())
				}
				x := floor.Add(floor, big.NewInt(z[k]))
				if i < 0 {
					prev.Neg(x)
					continue
				}
				want := signed(e.Coeff(k))
				want.Add(want, prev).Sub(want, new(big.Int).Mul(f.b, x))
				if want.Cmp(signed(mu.Coeff(k))) != 0 {
					t.Fatalf("coefficient %d of column %d is wrong", i, j)
				}
				prev = x
			}
		}
	})
}

// TestRandPackMean checks the sign and the consistency of integer parts statistically: for z
// sampled around the centres, x = z + floor(t) - t has mean zero in every column.
func TestRandPackMean(t *testing.T) {
	f := small(t, 16, 4)
	p := newPacking(t, f, 10)
	rng := words{shake("rounding")}
	c := f.NewVec(p.D())
	f.Random(c, shake("mean"))
	e, mu := intpoly.New(p.N(), 1), intpoly.New(p.N(), 1)
	p.Digits(e, c)
	centres, floors, x := make([]uint64, 2*p.N()), make([]int64, p.N()), make([]int64, p.N())
	p.CosetCentres(centres, floors, e)
	const runs = 200
	sum := make([]float64, p.N())
	for range runs {
		copy(x, floors)
		for k := range x { // randomized rounding has mean exactly at the centre
			if rng.next() < centres[2*k] {
				x[k]++
			}
		}
		p.AssembleRandPack(mu, e, x)
		for k := range sum {
			sum[k] += float64(int64(mu.C[k]))
		}
	}
	// E[mu] = P·E[x] = 0; a step has standard deviation at most sqrt(16²+1)/2.
	for k, s := range sum {
		if mean := s / runs; mean > 4 || mean < -4 {
			t.Fatalf("coefficient %d has mean %.2f", k, mean)
		}
	}
}

// words returns words from a deterministic source.
type words struct{ r io.Reader }

func (w words) next() uint64 {
	var b [8]byte
	io.ReadFull(w.r, b[:])
	return binary.LittleEndian.Uint64(b[:])
}

func (w words) below(n uint64) int { return int(w.next() % n) }

func TestDivisor(t *testing.T) {
	rng := words{shake("divisor")}
	for range 20000 {
		d := new(big.Int).SetUint64(rng.next())
		d.Lsh(d, 64).Or(d, new(big.Int).SetUint64(rng.next())).Rsh(d, uint(rng.below(128)))
		switch rng.below(4) {
		case 0:
			d.Lsh(big.NewInt(1), uint(rng.below(128)))
		case 1:
			d.Lsh(big.NewInt(1), uint(1+rng.below(128)))
			d.Sub(d, big.NewInt(1+int64(rng.below(2))))
		}
		if d.Sign() <= 0 {
			continue
		}
		x := make([]uint64, 1+rng.below(6))
		for i := range x {
			x[i] = rng.next()
			if k := rng.below(4); k < 2 {
				x[i] = -uint64(k)
			}
		}
		n := new(big.Int)
		for i := len(x) - 1; i >= 0; i-- {
			n.Lsh(n, 64).Or(n, new(big.Int).SetUint64(x[i]))
		}
		div := newDivisor(d)
		hi, lo := div.divide(x)
		r := new(big.Int).SetUint64(hi)
		r.Lsh(r, 64).Or(r, new(big.Int).SetUint64(lo))
		q := new(big.Int)
		for i := len(x) - 1; i >= 0; i-- {
			q.Lsh(q, 64).Or(q, new(big.Int).SetUint64(x[i]))
		}
		wantQ, wantR := new(big.Int).DivMod(n, d, new(big.Int))
		if q.Cmp(wantQ) != 0 || r.Cmp(wantR) != 0 {
			t.Fatalf("%v / %v = %v, %v; want %v, %v", n, d, q, r, wantQ, wantR)
		}
	}
}
