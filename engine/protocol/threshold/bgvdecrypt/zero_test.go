package bgvdecrypt

import (
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/bgv/bgvtest"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// This attack shows why answers contain shares of zero. Of three parties, 0 and 1 decrypt, and 2
// colludes with the recipient. With s(X) = s + r X, 2 s_0 = (4 s + 2 s_2)/3. So from the answer d =
// 2 s_0 c_1 + f of party 0, party 2 computes
//
//	3 d - 2 s_2 c_1 - 4 (m/T - c_0) = 4 e + 3 f.
//
// These are small integers, and their remainder modulo 3 is that of the noise e, which the flood
// does not hide. With shares of zero the answer is uniform, and so is the remainder.
func TestSharesOfZeroHideTheNoise(t *testing.T) {
	w := newWorld(t, "insecure-B6-31", 3, 1)
	f := w.flooding(t)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	low, err := f.lower(ct)
	if err != nil {
		t.Fatal(err)
	}
	// The noise e of the phase of mu, (Q mu + m')/T + e.
	basis, q, plain := f.basis, f.basis.Modulus(), new(big.Int).SetUint64(w.T)
	inverse := new(big.Int).ModInverse(plain, q)
	var noise, clean []*big.Int // e, and m'/T modulo Q
	for _, v := range bgvtest.Phase(w.Scheme, low, w.secret) {
		x := new(big.Int).Mul(v, plain)
		if x.Mod(x, q); new(big.Int).Lsh(x, 1).Cmp(q) > 0 {
			x.Sub(x, q)
		}
		m := new(big.Int).Mod(x, plain)
		noise = append(noise, x.Sub(x, m).Quo(x, plain))
		clean = append(clean, m.Mul(m, inverse))
	}
	times := func(p ring.Poly, c uint64) ring.Poly {
		out, factors := basis.NewPoly(), make([]uint64, basis.Len())
		for i := range factors {
			factors[i] = c
		}
		basis.MulScalar(out, p, factors)
		return out
	}
	known := basis.NewPoly() // 2 s_2 c_1 + 4 (m/T - c_0)
	basis.FromBig(known, clean)
	basis.Sub(known, known, low.C0)
	known = times(known, 4)
	share, c1, product := basis.NewPoly(), basis.NewNTT(), basis.NewNTT()
	for k := range share.C {
		copy(share.C[k], w.shares[2][k*w.N():(k+1)*w.N()])
	}
	basis.Forward(product, share)
	basis.Forward(c1, low.C1)
	basis.MulNTT(product, product, c1)
	basis.Inverse(share, product)
	basis.Add(known, known, times(share, 2))

	right := func(answer ring.Poly) (n int) {
		left := times(answer, 3)
		basis.Sub(left, left, known)
		for k, v := range basis.ToBig(left) {
			if v.Sub(v, noise[k]).Mod(v, big.NewInt(3)).Sign() == 0 {
				n++
			}
		}
		return n
	}
	bare, err := f.Secret(w.additive(t, []int{0, 1}, f.Primes())[0])
	if err != nil {
		t.Fatal(err)
	}
	if n := right(f.share(low.C1, bare, source("bare", 0).Stream("flood", 0))); n != w.N() {
		t.Errorf("without shares of zero only %d of %d remainders are known: the attack no longer works as described", n, w.N())
	}
	n, count := 0, 0
	for range 20 {
		answers := answersOf(t, f, w.flood(t, []int{0, 1}, []*bgv.Ciphertext{ct}, Outside))
		n, count = n+right(answers[0][0]), count+w.N()
	}
	if want := float64(count) / 3; math.Abs(float64(n)-want) > 5*math.Sqrt(want) {
		t.Errorf("with shares of zero %d of %d remainders are guessed", n, count)
	}
}
