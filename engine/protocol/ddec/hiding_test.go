package ddec

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// The shares sum to the messages whatever the masks and floods are. These tests check that masks
// and floods are present, fresh for each ciphertext and large enough.

// drawn splits the message of party p for ciphertext k: without the secret key's part it encodes
// the mask plus the flood.
func (w *world) drawn(p round.Party, k int, message ring.Poly) (mask field.Vec, flood []*big.Int) {
	s, primes := w.scheme, w.instance.DDecPrimes
	b := s.Prefix(primes)
	part := func(coeffs field.Vec) ring.Poly {
		d := b.NewPoly()
		s.DecryptionShare(d, w.switched[k].C1, w.key.Shares[p], intpoly.New(s.N(), 1), coeffs, primes)
		b.Sub(d, message, d)
		return d
	}
	coeffs, mask := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
	s.Decode(coeffs, part(coeffs), primes)
	s.Pack.Unpack(mask, coeffs)
	flood = b.ToBig(part(coeffs))
	for _, v := range flood {
		if new(big.Int).Lsh(v, 1).Cmp(b.Modulus()) > 0 {
			v.Sub(v, b.Modulus())
		}
	}
	return mask, flood
}

// Every ciphertext has a fresh mask, which hides the combiner's result, and a fresh flood, uniform
// in [-E, E].
func TestMasksAndFloodsAreFresh(t *testing.T) {
	const count = 8
	for _, n := range []int{2, 3} {
		w := newWorld(t, "insecure-8", "p128", n, count)
		f, bound := w.scheme.Field, w.instance.FloodBound
		sent := make([][]ring.Poly, n)
		var options []roundtest.Option
		for p := range round.Party(n) {
			options = append(options, roundtest.Watch(p, byzantine.On(byzantine.New(), "test/share", func(messages []ring.Poly) {
				for _, m := range messages {
					sent[p] = append(sent[p], m.Clone())
				}
			})))
		}
		out := w.run(options...).OK(t)
		seen := map[string]string{}
		fresh := func(where, value string) {
			if other, ok := seen[value]; ok {
				t.Errorf("%d parties: the %s is equal to the %s", n, where, other)
			}
			seen[value] = where
		}
		squares, largest, values := 0.0, 0.0, 0
		for p := range round.Party(n) {
			for k := range count {
				mask, flood := w.drawn(p, k, sent[p][k])
				fresh(fmt.Sprintf("mask of party %d for ciphertext %d", p, k), fmt.Sprint(mask.W))
				fresh(fmt.Sprintf("flood of party %d for ciphertext %d", p, k), fmt.Sprint(flood))
				w.independent(t, p, k, mask, flood)
				zero, share := f.NewVec(mask.Len()), out.Results[p][k].Clone()
				for slot := range mask.Len() {
					if f.IsZero(mask.At(slot)) {
						t.Fatalf("%d parties: slot %d of the mask of party %d for ciphertext %d is zero", n, slot, p, k)
					}
				}
				// A party other than the combiner keeps minus its mask.
				if f.AddVec(share, share, mask); k%n != int(p) && !f.EqualVec(share, zero) {
					t.Errorf("%d parties: the mask that party %d sends differs from the one it keeps for ciphertext %d", n, p, k)
				}
				for at, v := range flood {
					if v.CmpAbs(bound) > 0 {
						t.Fatalf("%d parties: coefficient %d of a flood is %v, with bound %v", n, at, v, bound)
					}
					x, _ := new(big.Rat).SetFrac(v, bound).Float64()
					squares += x * x
					largest = max(largest, math.Abs(x))
					values++
				}
			}
		}
		// Values uniform in [-1, 1] have a mean square of 1/3, with a deviation of sqrt(4/45) for
		// one value.
		if mean := squares / float64(values); math.Abs(mean-1.0/3) > 6*math.Sqrt(4.0/45/float64(values)) || largest < 0.99 {
			t.Errorf("%d parties: floods have mean square %.3f E^2 and maximum %.3f E", n, mean, largest)
		}
	}
}

// independent fails the test if the flood comes from the stream of the mask.
func (w *world) independent(t *testing.T, p round.Party, k int, mask field.Vec, flood []*big.Int) {
	t.Helper()
	s := w.scheme
	coeffs, slots := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
	if err := s.Field.Random(coeffs, source("run", p).Stream("mask", uint64(k))); err != nil {
		t.Fatal(err)
	}
	if s.Pack.Unpack(slots, coeffs); !s.Field.EqualVec(slots, mask) {
		t.Fatal("the names of streams in this test are out of date")
	}
	e := intpoly.New(s.N(), (w.instance.FloodBound.BitLen()+1+64)/64)
	sample.Flood(e, w.instance.FloodBound, source("run", p).Stream("mask", uint64(k)))
	if e.Big(0).Cmp(flood[0]) == 0 && e.Big(1).Cmp(flood[1]) == 0 {
		t.Errorf("party %d draws mask and flood of ciphertext %d from one stream", p, k)
	}
}

// The answers to clients are flooded too, differently by each party and source.
func TestAnswersToClientsAreFlooded(t *testing.T) {
	w := newWorld(t, "insecure-8", "p128", 2, 1)
	s, k := w.scheme, w.instance.DDecPrimes
	w.switched[0] = s.SwitchModulus(w.full[0], k)
	seen := map[string]bool{}
	for p := range round.Party(w.n) {
		for _, label := range []string{"client 1", "client 2"} {
			answer := ClientShare(s, w.instance, w.full[0], w.key.Shares[p], source(label, p))
			d := s.Prefix(k).NewPoly()
			if err := codec.DecodePoly(d.C, s.Prefix(k).Primes(), answer); err != nil {
				t.Fatal(err)
			}
			mask, e := w.drawn(p, 0, d)
			if !s.Field.EqualVec(mask, s.Field.NewVec(s.Slots())) {
				t.Errorf("the answer of party %d is masked", p)
			}
			large := 0
			for _, v := range e {
				if v.CmpAbs(w.instance.FloodBound) > 0 {
					t.Fatalf("party %d: a flood exceeds its bound", p)
				}
				if new(big.Int).Lsh(v, 1).CmpAbs(w.instance.FloodBound) > 0 {
					large++
				}
			}
			// half of 256 are larger than E/2, with a deviation of 8
			if large < 80 || large > 176 || seen[fmt.Sprint(e)] {
				t.Errorf("party %d: %d of %d coefficients of a flood are above half the bound, or a flood is repeated", p, large, len(e))
			}
			seen[fmt.Sprint(e)] = true
		}
	}
}

// If a run ends before its result, for any reason, the shares, the sums and the randomness are
// erased.
func TestTheEndErases(t *testing.T) {
	const n, count = 2, 4
	w := newWorld(t, "insecure-8", "p128", n, count)
	c := Config{
		Session: round.Session{Parties: n, Secrets: new(round.Secrets)}, Step: "test", Scheme: w.scheme, Instance: w.instance,
		Ciphertexts: w.switched, Secret: w.key.Shares[0], Source: source("run", 0), Workers: 2,
	}
	next, err := share(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	r := next.Next.(*combine)
	erased := func() (shares, sums int) {
		for k := range count {
			if v := r.shares[k]; w.scheme.Field.EqualVec(v, w.scheme.Field.NewVec(v.Len())) {
				shares++
			}
			if p := r.sum[k]; p.C != nil && p.Equal(r.basis().NewPoly()) {
				sums++
			}
		}
		return shares, sums
	}
	if shares, sums := erased(); shares != 0 || sums != 0 {
		t.Fatal("there is nothing to erase")
	}
	c.Session.Secrets.Wipe()
	if shares, sums := erased(); shares != count || sums != count/n {
		t.Errorf("%d of %d shares and %d of %d sums are erased", shares, count, sums, count/n)
	}
	defer func() {
		if recover() == nil {
			t.Error("the source still returns randomness")
		}
	}()
	c.Source.Stream("mask", 0)
}

// The polynomials that a run returns to the pool contain nothing of its messages and sums. The test
// also checks that there are any.
func TestReturnedPolynomialsAreZero(t *testing.T) {
	w := newWorld(t, "insecure-8", "p128", 3, 4)
	ring.Trim()
	w.run().OK(t)
	if ring.Trim() == 0 {
		t.Error("no polynomial was returned to the pool")
	}
	w.run().OK(t)
	for range 4 * w.n * 4 * w.scheme.Q.Len() { // more limbs than a run holds at a time
		p := w.scheme.Prefix(1).Borrow()
		for _, x := range p.C[0] {
			if x != 0 {
				t.Fatal("the pool has words that are not 0")
			}
		}
	}
}
