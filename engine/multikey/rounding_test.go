package multikey

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
)

// A centred set rotates by the mean of the rounding errors, rounded down, for either sign; the
// other sets rotate only by b.
func TestBody(t *testing.T) {
	for _, name := range []string{cheap, cheap + "-128", Default} {
		s := schemeOf(t, name)
		r := rand.New(rand.NewPCG(21, 22))
		unit := int64(1) << (lweBits - s.LogN - 1)
		for range 2000 {
			c := &Ciphertext{B: r.Uint32(), Parts: []Part{{A: make([]uint32, s.Dim)}, {A: make([]uint32, s.Dim)}}}
			sum := int64(0)
			for _, p := range c.Parts {
				for i := range p.A {
					p.A[i] = r.Uint32()
					nearest := int64(math.Floor(float64(p.A[i])/float64(unit)+0.5)) * unit
					sum += int64(p.A[i]) - nearest
				}
			}
			want := s.exponent(c.B)
			if s.Centred {
				want = s.exponent(c.B + uint32(int64(math.Floor(float64(sum)/float64(s.Block+1)))))
			}
			if got := s.body(c); got != want {
				t.Fatalf("%s: rotates by %d with errors of %d, want %d", name, got, sum, want)
			}
		}
	}
}

// Rounding errors of ciphertexts of k parties have the variance and the tails of the model. Daily
// runs use some thousands of errors; with -long all, the test uses 200,000 for each set and number
// of parties.
func TestRoundingOnEverySet(t *testing.T) {
	count := 4_000
	if longtest.All() {
		count = 200_000
	}
	for _, set := range Sets() {
		if set.LogN < 11 || set.Insecure {
			continue
		}
		for _, k := range []int{1, min(4, set.Parties)} {
			rounding(t, schemeOf(t, set.Name), k, count)
		}
	}
}

func rounding(t *testing.T, s *Scheme, k, count int) {
	t.Helper()
	r := rand.New(rand.NewPCG(23, uint64(k)))
	circle := float64(2 * s.N())
	variance := s.Noise(k).Rounding() * circle * circle // in units of 1/2N
	deviation := math.Sqrt(variance)
	c := &Ciphertext{}
	for range k {
		c.Parts = append(c.Parts, Part{A: make([]uint32, s.Dim)})
	}
	var square, fourth float64
	var beyond [5]int
	for range count {
		c.B = r.Uint32()
		phase, turn := c.B, 0
		for _, p := range c.Parts {
			for i := range p.A {
				p.A[i] = r.Uint32()
			}
			for at := 0; at < s.Dim; at += s.Block {
				if one := r.IntN(s.Block + 1); one < s.Block {
					phase += p.A[at+one]
					turn += s.exponent(p.A[at+one])
				}
			}
		}
		turn += s.body(c)
		off := math.Remainder(float64(turn)-float64(phase)/(1<<lweBits)*circle, circle)
		square, fourth = square+off*off, fourth+off*off*off*off
		for j := range beyond {
			if math.Abs(off) >= float64(j)*deviation {
				beyond[j]++
			}
		}
	}
	n := float64(count)
	second, kurtosis := square/n/variance, fourth/n/variance/variance
	t.Logf("%s, %d parties, %d errors: variance %.4f of the model's %.2f, fourth moment %.3f of 3, beyond 1 to 4 deviations %v",
		s.Name, k, count, second, variance, kurtosis, beyond[1:])
	slack := 6 / math.Sqrt(n)
	if math.Abs(second-1) > slack*math.Sqrt2 || math.Abs(kurtosis-3) > slack*math.Sqrt(96)+0.02 {
		t.Errorf("%s, %d parties: variance %.4f of the model's, fourth moment %.3f of 3", s.Name, k, second, kurtosis)
	}
	for j := 1; j < len(beyond); j++ {
		if want := n * math.Erfc(float64(j)/math.Sqrt2); math.Abs(float64(beyond[j])-want) > 6*math.Sqrt(want)+0.02*want+3 {
			t.Errorf("%s, %d parties: %d errors beyond %d deviations, want %.0f", s.Name, k, beyond[j], j, want)
		}
	}
}
