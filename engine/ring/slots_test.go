package ring

import (
	"math/bits"
	"math/rand/v2"
	"testing"
)

// root returns g^((q-1)/2N) for the smallest primitive root g > 2 of q, found by trial. All parties
// must use the same root because keys are sent in evaluation form.
func root(n int, q uint64) uint64 {
	for g := uint64(3); ; g++ {
		x, order := g, uint64(1)
		for ; x != 1; order++ {
			x = x * g % q
		}
		if order == q-1 {
			x = 1
			for range (q - 1) / uint64(2*n) {
				x = x * g % q
			}
			return x
		}
	}
}

// Slot k holds the value at root^(2 rev(k) + 1), where rev reverses log N bits.
func TestSlots(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		logN   int
		primes []uint64
	}{{4, []uint64{97, 193, 257}}, {5, []uint64{193, 257}}, {6, []uint64{257, 641}}, {8, []uint64{7681, 12289}}} {
		b := mustBasis(t, c.logN, c.primes...)
		x, v := randomPoly(r, b), b.NewNTT()
		b.Forward(v, x)
		for i, q := range c.primes {
			l := b.limbs[i]
			psi := root(b.N(), q)
			for k := range b.N() {
				e := bits.Reverse64(uint64(k))>>(64-c.logN)*2 + 1
				at, sum := l.Exp(psi, e), uint64(0)
				for j := b.N() - 1; j >= 0; j-- {
					sum = l.Add(l.Mul(sum, at), x.C[i][j])
				}
				if v.C[i][k] != sum {
					t.Fatalf("N=%d, q=%d: slot %d is not the value at exponent %d", b.N(), q, k, e)
				}
			}
		}
	}
}

// Primes of real size are too large for the search in TestSlots, so their roots, which the
// transform of X reveals, are pinned.
func TestRootsArePinned(t *testing.T) {
	for _, c := range []struct {
		logN    int
		q, root uint64
	}{
		{14, 0x1ffffffd40001, 0x6c4295ef1d29},
		{14, 0x7fffffc18001, 0x57b82cb16de4},
		{13, 0x3ffffe8c001, 0x1f07bc2bd1d},
		{13, 0x6f6e3368001, 0x1d8a431d6a7},
		{15, 0x7fffffff150001, 0x50efda8b4c58df},
		{8, 0x1ffffffd40001, 0xf1b5d238d594},
	} {
		b := mustBasis(t, c.logN, c.q)
		x, v := b.NewPoly(), b.NewNTT()
		x.C[0][1] = 1
		b.Forward(v, x)
		got := v.C[0][0]
		if got != c.root {
			t.Errorf("the root for %#x is %#x", c.q, got)
		}
		if b.limbs[0].Exp(got, uint64(b.N())) != c.q-1 {
			t.Errorf("%#x^N is not -1 modulo %#x", got, c.q)
		}
	}
}
