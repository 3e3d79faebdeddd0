//go:build !purego

package kernel

import (
	"math/rand/v2"
	"testing"
)

// lazyInput returns n words below limit: the ends of every range in between, and random ones.
func lazyInput(r *rand.Rand, n int, q, limit uint64) []uint64 {
	v := make([]uint64, n)
	for i := range v {
		switch multiple := r.Uint64N(limit/q+1) * q; r.IntN(4) {
		case 0:
			v[i] = r.Uint64N(limit)
		case 1:
			v[i] = limit - 1
		case 2:
			v[i] = min(multiple, limit-1)
		default:
			v[i] = max(multiple, 1) - 1
		}
	}
	return v
}

// levelsForward computes the given levels of butterflies modulo q on a number of blocks of v, with
// roots from k.
func (t *NTT) levelsForward(v []uint64, k, blocks, levels int) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = x % t.Q
	}
	for ; levels > 0; levels-- {
		half := len(v) / blocks / 2
		for i := range blocks {
			x, y := out[2*i*half:][:half], out[(2*i+1)*half:][:half]
			for j := range x {
				p := t.Mul(y[j], t.forward.c[k+i])
				x[j], y[j] = t.Add(x[j], p), t.Sub(x[j], p)
			}
		}
		k, blocks = 2*k, 2*blocks
	}
	return out
}

// levelsInverse does the same for an inverse transform; k and blocks belong to the last level.
func (t *NTT) levelsInverse(v []uint64, k, blocks, levels int) []uint64 {
	out := make([]uint64, len(v))
	for i, x := range v {
		out[i] = x % t.Q
	}
	for l := levels - 1; l >= 0; l-- {
		half := len(v) / (blocks << l) / 2
		for i := range blocks << l {
			x, y := out[2*i*half:][:half], out[(2*i+1)*half:][:half]
			for j := range x {
				x[j], y[j] = t.Add(x[j], y[j]), t.Mul(t.Sub(x[j], y[j]), t.inverse.c[k<<l+i])
			}
		}
	}
	return out
}

// Every pass, on values up to its input bound and for the longest moduli, returns congruent values
// within its output bound.
func TestPassesAtTheirBounds(t *testing.T) {
	const n = 1 << 10
	r := rand.New(rand.NewPCG(31, 31))
	for _, c := range []struct {
		path   Path
		p      *passes
		length int
		bound  uint64 // in units of q
	}{{IFMA, passesIFMA, MaxBitsIFMA, 2}, {AVX512, passesAVX512, MaxBits, 4}, {AVX2, passesAVX2, MaxBits, 4}} {
		if c.path > best {
			t.Skipf("this processor cannot run %v", c.path)
		}
		for _, q := range nttPrimes(c.length, n, 3) {
			tr, bound := mustNTT(t, q, n), c.bound*q
			check := func(what string, got, want []uint64, limit uint64) {
				t.Helper()
				for i, x := range got {
					if x >= limit || x%q != want[i] {
						t.Fatalf("%v, q=%d, %s: word %d is %d, want %d modulo q, below %d", c.path, q, what, i, x, want[i], limit)
					}
				}
			}
			f, g := tr.forward, tr.inverse
			for range 20 {
				const k, blocks, size = 5, 3, 64
				out, v := make([]uint64, size*blocks), lazyInput(r, size*blocks, q, 2*bound)
				c.p.forward2(&out[0], &v[0], &f.c[0], &f.scaled[0], k, blocks, size/2, q)
				check("forward2", out, tr.levelsForward(v, k, blocks, 1), 2*bound)
				c.p.forward4(&out[0], &v[0], &f.c[0], &f.scaled[0], k, blocks, size/4, q)
				check("forward4", out, tr.levelsForward(v, k, blocks, 2), 2*bound)
				c.p.forward16(&out[0], &v[0], &f.c[0], &f.scaled[0], 4*k, 4*blocks, q)
				check("forward16", out, tr.levelsForward(v, 4*k, 4*blocks, 4), q)

				v = lazyInput(r, size*blocks, q, bound)
				c.p.inverse4(&out[0], &v[0], &g.c[0], &g.scaled[0], k, blocks, size/4, q)
				check("inverse4", out, tr.levelsInverse(v, k, blocks, 2), bound)
				c.p.inverse16(&out[0], &v[0], &g.c[0], &g.scaled[0], 4*k, 4*blocks, q)
				check("inverse16", out, tr.levelsInverse(v, 4*k, 4*blocks, 4), bound)

				v = lazyInput(r, size, q, bound)
				out = append(out[:0], v...)
				c.p.inverse2Last(&out[0], &g.c[0], &g.scaled[0], size/2, &tr.last, q)
				want := tr.levelsInverse(v, 1, 1, 1)
				tr.ScaleVec(want, want, tr.last[0])
				check("inverse2Last", out, want, q)
				out = append(out[:0], v...)
				c.p.inverse4Last(&out[0], &g.c[0], &g.scaled[0], size/4, &tr.last, q)
				want = tr.levelsInverse(v, 1, 1, 2)
				tr.ScaleVec(want, want, tr.last[0])
				check("inverse4Last", out, want, q)
			}
		}
	}
}
