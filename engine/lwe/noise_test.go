package lwe_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
)

// The noise of every operation has the variance of the model. Given a key, terms depend on the
// norms of its errors and on the number of ones in s, which vary little in large dimensions and by
// a quarter in tiny ones.
func TestNoiseOnEverySet(t *testing.T) {
	everySet(t, func(t *testing.T, s *subject) {
		mod := s.Modulus()
		low, high := 0.7, 1.3
		if !s.Insecure {
			low, high = 0.9, 1.1
		}
		key, err := s.PublicKey(s.keys)
		if err != nil {
			t.Fatal(err)
		}
		var fresh []int64
		for i := range 8 {
			c, err := key.Encrypt(nil, lwe.Plain, s.source.Sub("fresh", uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range s.secret.RingPhase(c) {
				fresh = append(fresh, centred(x, s.Q))
			}
		}
		within(t, "encryption", meanSquare(fresh), s.noise.Fresh(), low, high)

		// The phase under s after key switching, and after rounding to exponents, for ciphertexts
		// of uniform residues.
		r := rand.New(rand.NewPCG(9, 9))
		var switching []int64
		var decision []float64
		c := s.NewLWE()
		for range s.count(400, 100) {
			for i := range c.A {
				c.A[i] = r.Uint64N(s.Q)
			}
			c.B = r.Uint64N(s.Q)
			a, b := s.e.KeySwitch(c)
			want := s.secret.Phase(c)
			phase := mod.Sub(b, s.Dot(a, s.secret.S))
			switching = append(switching, centred(mod.Sub(phase, want), s.Q))

			turns, exponent := s.Turns(a, b)
			for i, x := range turns {
				exponent -= x * int(s.secret.S[i])
			}
			circle := float64(2 * s.N())
			off := math.Mod(float64(exponent)-float64(want)/float64(s.Q)*circle, circle)
			decision = append(decision, math.Remainder(off, circle))
		}
		const least, most = 0.6, 1.4 // of a hundred samples
		if s.Switch.LogBase == 1 {   // half of it is a constant of the key, which may be small or large
			within(t, "key switching", meanSquare(switching), s.noise.Switching(), 0.4, 4)
		} else {
			within(t, "key switching", meanSquare(switching), s.noise.Switching(), least, most)
		}
		sum := 0.0
		for _, x := range decision {
			sum += x * x
		}
		within(t, "decision", sum/float64(len(decision)), s.noise.Decision(0), least, most)

		var bootstrapped []int64
		x, out := s.encrypt(t, 1, lwe.Boolean), s.NewLWE()
		for i := range s.count(400, 12) {
			if err := s.e.Gate(out, lwe.And, x, s.encrypt(t, 1, lwe.Boolean, uint64(i))); err != nil {
				t.Fatal(err)
			}
			bootstrapped = append(bootstrapped, s.secret.Error(out, 1, lwe.Boolean))
		}
		if !s.Insecure {
			low, high = 0.3, 2.2 // of 12 samples
		}
		within(t, "bootstrap", meanSquare(bootstrapped), s.noise.Bootstrapped(), low, high)
	})
}

// With sets for new keys, lookups of results and of sums of results fail with probability at most
// 2^-128, under keys of up to 64 holders; gates and decryption fail far less often. Legacy sets
// fail as often as when they shipped.
func TestFailures(t *testing.T) {
	for _, set := range lwe.Sets() {
		if set.Insecure {
			continue
		}
		bound := -128.0
		if set.Legacy() {
			bound = -64
		}
		for _, n := range []int{1, 3, 21, 64} {
			noise := set.NoiseOf(n, (n-1)/2)
			v := noise.Bootstrapped()
			lookup, gate, open := noise.LookupFailure(20*v), noise.GateFailure(2*v), noise.OpenFailure(20*v)
			t.Logf("%s, %d parties: deviations fresh 2^%.1f, bootstrapped 2^%.1f, decision %.2f; a lookup fails with 2^%.1f, of a sum with 2^%.1f",
				set.Name, n, math.Log2(noise.Fresh())/2, math.Log2(v)/2, math.Sqrt(noise.Decision(v)), noise.LookupFailure(v), lookup)
			if lookup > bound || gate > -1000 || open > -1000 {
				t.Errorf("%s, %d parties: failures lookup 2^%.1f, gate 2^%.0f, open 2^%.0f", set.Name, n, lookup, gate, open)
			}
		}
	}
	// The paper's form of decryption: the noise is 2^-30 of the distance between messages.
	for _, name := range []string{"L11-53", "T11-53"} {
		set, err := lwe.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		ratio := math.Sqrt(set.NoiseOf(3, 1).Bootstrapped()) * math.Sqrt(2/math.Pi) * float64(set.P) / float64(set.Q)
		if got := math.Log2(ratio); got > -29.5 || got < -31 {
			t.Errorf("%s: the paper's form of decryption fails with probability 2^%.2f", name, got)
		}
	}
}

// Failures happen as often as the model predicts where they can be counted: with errors close to
// the middle between two messages.
func TestFailuresHappen(t *testing.T) {
	for _, name := range tiny[:1] {
		s := newSubject(t, name)
		spread := 2 * math.Sqrt(s.noise.Decision(0)) // the distance from the middle, in deviations
		middle := float64(s.Q) / float64(4*s.P)
		phase, _ := s.Encode(5, lwe.Padded)
		phase += uint64(middle - (spread+0.5)/float64(2*s.N())*float64(s.Q))
		identity, out, wrong := s.identity(t), s.NewLWE(), 0
		const count = 1500
		for i := range count {
			c := s.encrypt(t, 0, lwe.Padded, uint64(i))
			s.AddPhase(c, phase)
			if err := s.e.Lookup(out, c, identity); err != nil {
				t.Fatal(err)
			}
			switch s.secret.Decrypt(out, lwe.Padded) {
			case 6:
				wrong++
			case 5:
			default:
				t.Fatalf("%s: neither of two neighbours", name)
			}
		}
		want := math.Erfc(2/math.Sqrt2) / 2 * count // 34
		if w := float64(wrong); w < want/3 || w > want*3 {
			t.Errorf("%s: %d of %d go to the neighbour, want %.0f or so", name, wrong, count, want)
		}
	}
}

func TestMonotony(t *testing.T) {
	set, err := lwe.Lookup(lwe.Default)
	if err != nil {
		t.Fatal(err)
	}
	noise := set.Noise()
	last := math.Inf(-1)
	for k := range 100 { // continuous where one formula of the tail ends and the other begins
		p := noise.OpenFailure(math.Exp2(40 + float64(k)))
		if !(p >= last) || p > 1 || math.IsNaN(p) {
			t.Errorf("2^%d: 2^%v after 2^%v", 40+k, p, last)
		}
		last = p
	}
	if v := lwe.PartyVariance(1, 3, 1); v != lwe.MinDeviation*lwe.MinDeviation {
		t.Errorf("the floor is %v", v)
	}
}
