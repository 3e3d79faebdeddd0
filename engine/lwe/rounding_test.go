package lwe

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
)

// Centred rounding against its definition in big integers, with sums of errors at their bounds.
func TestCentred(t *testing.T) {
	for _, set := range Sets() {
		if !set.Centred {
			continue
		}
		s := must(New(set))
		r := rand.New(rand.NewPCG(11, 12))
		most := int64(s.Dim) * int64(s.Q/2)
		for k := range 4000 {
			b, sum := r.Uint64N(s.Q), r.Int64N(2*most+1)-most
			switch k {
			case 0:
				b, sum = 0, most
			case 1:
				b, sum = s.Q-1, -most
			case 2:
				b, sum = 0, 0
			}
			v := new(big.Int).Mul(new(big.Int).SetUint64(b), big.NewInt(int64(4*s.N())))
			v.Sub(v, big.NewInt(sum)).Add(v, new(big.Int).SetUint64(s.Q))
			v.Div(v, new(big.Int).SetUint64(2*s.Q)).Mod(v, big.NewInt(int64(2*s.N()))) // Div rounds down
			if got := s.centred(b, sum); int64(got) != v.Int64() {
				t.Fatalf("%s: %d with errors of %d turns by %d, want %d", s.Name, b, sum, got, v)
			}
		}
	}
}

// The rounding error is the difference from the unrounded value.
func TestRoundingError(t *testing.T) {
	for _, set := range Sets() {
		s := must(New(set))
		r := rand.New(rand.NewPCG(13, 14))
		for range 1000 {
			x := r.Uint64N(s.Q)
			v := new(big.Int).Mul(new(big.Int).SetUint64(x), big.NewInt(int64(2*s.N())))
			nearest := new(big.Int).Add(v, new(big.Int).SetUint64(s.Q/2))
			nearest.Div(nearest, new(big.Int).SetUint64(s.Q))
			v.Sub(v, nearest.Mul(nearest, new(big.Int).SetUint64(s.Q)))
			if got := s.RoundingError(x); got != v.Int64() {
				t.Fatalf("%s: rounding %d leaves %d, want %d", s.Name, x, got, v)
			}
		}
	}
}

// measured counts rounding errors of modulus switching, in units of 2N to the circle.
type measured struct {
	count          int
	square, fourth float64
	beyond         [5]int // entry k: errors of at least k deviations of the model
}

// measure rounds ciphertexts with uniform residues under fresh secrets.
func measure(s *Scheme, count int, r *rand.Rand) (m measured) {
	w, secret := s.newSwitched(), make([]uint64, s.Dim)
	circle, deviation := float64(2*s.N()), math.Sqrt(s.Noise().Rounding())
	for range count {
		var word, phase uint64
		for i := range w.a {
			if i%64 == 0 {
				word = r.Uint64()
			}
			w.a[i], secret[i] = r.Uint64N(s.Q), word&1
			word >>= 1
			phase += w.a[i] * secret[i] % s.Q
		}
		w.b = r.Uint64N(s.Q)
		w.round(s)
		turn := w.turn
		for i, x := range w.turns {
			turn -= x * int(secret[i])
		}
		exact := float64((w.b+s.Q-phase%s.Q)%s.Q) / float64(s.Q) * circle
		off := math.Remainder(float64(turn)-exact, circle)
		m.count++
		m.square += off * off
		m.fourth += off * off * off * off
		for k := range m.beyond {
			if math.Abs(off) >= float64(k)*deviation {
				m.beyond[k]++
			}
		}
	}
	return m
}

// agrees compares the measured errors with a Gaussian of the model's variance: the second and
// fourth moments, and how many errors are beyond 1 to 4 deviations.
func (m measured) agrees(t *testing.T, name string, variance float64) {
	t.Helper()
	n := float64(m.count)
	second, kurtosis := m.square/n/variance, m.fourth/n/variance/variance
	summary := fmt.Sprintf("%s, %d errors: variance %.4f of the model's %.2f, fourth moment %.3f of 3", name, m.count, second, variance, kurtosis)
	slack := 6 / math.Sqrt(n) // six deviations of the moments below
	if math.Abs(second-1) > slack*math.Sqrt2 || math.Abs(kurtosis-3) > slack*math.Sqrt(96) {
		t.Error(summary)
	}
	for k := 1; k < len(m.beyond); k++ {
		want := n * math.Erfc(float64(k)/math.Sqrt2)
		summary += fmt.Sprintf("; beyond %d deviations %d of %.0f", k, m.beyond[k], want)
		if math.Abs(float64(m.beyond[k])-want) > 6*math.Sqrt(want)+3 {
			t.Errorf("%s: %d errors beyond %d deviations, want %.0f", name, m.beyond[k], k, want)
		}
	}
	t.Log(summary)
}

// Rounding errors have the variance and the tails of the model, for sets that subtract the mean and
// for those that do not. Every day some thousands, and with -long all three million of each set.
func TestRoundingOnEverySet(t *testing.T) {
	count := 20_000
	if longtest.All() {
		count = 3_000_000
	}
	for _, set := range Sets() {
		if set.LogN < 11 {
			continue
		}
		s := must(New(set))
		measure(s, count, rand.New(rand.NewPCG(15, 16))).agrees(t, s.Name, s.Noise().Rounding())
	}
}

// Without the mean, T11-4 would have twice the variance and fail with 2^-71, which no set for new
// keys may.
func TestMeanLeftOut(t *testing.T) {
	set := must(Lookup(Default))
	if got := set.LookupFailure(); got > -128 {
		t.Errorf("%s fails with probability 2^%.1f", set.Name, got)
	}
	set.Centred = false
	if got := set.LookupFailure(); got < -80 || set.Validate() == nil {
		t.Errorf("without the mean it fails with probability 2^%.1f, and is accepted: %v", got, set.Validate() == nil)
	}
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
