package lwekeys

import (
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func scheme(t testing.TB, set *lwe.Set) *lwe.Scheme {
	t.Helper()
	s, err := lwe.New(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func lookup(t testing.TB, name string) *lwe.Scheme {
	t.Helper()
	set, err := lwe.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return scheme(t, set)
}

// small returns a fast set with several digits of both gadgets.
func small() *lwe.Scheme { return smallScheme() }

var smallScheme = sync.OnceValue(func() *lwe.Scheme {
	s, err := lwe.New(smallSet())
	if err != nil {
		panic(err)
	}
	return s
})

func smallSet() *lwe.Set {
	return &lwe.Set{
		Name: "insecure-threshold", Insecure: true, LogN: 5, Q: 1<<50 - 16383, P: 8, Dim: 5, Variance: 12.96, SwitchVariance: 1 << 40,
		Rotation: lwe.Gadget{LogBase: 10, Digits: 2}, Switch: lwe.Gadget{LogBase: 4, Digits: 3},
	}
}

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("threshold keygen test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

func run(set *lwe.Scheme, n, t int, options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(n, func(rs round.Session) (transition, error) {
		return Start(Config{Session: rs, Scheme: set, Threshold: t, Source: source("run", rs.Self), Workers: 2})
	}, options...)
}

// quorums returns the subsets of n parties with the given size.
func quorums(n, size int) (list [][]int) {
	for mask := range 1 << n {
		var q []int
		for i := range n {
			if mask>>i&1 == 1 {
				q = append(q, i)
			}
		}
		if len(q) == size {
			list = append(list, q)
		}
	}
	return list
}

// secrets returns z and s as reconstructed by a quorum.
func secrets(p *plan, results []Result, quorum []int) (z, s []uint64) {
	z, s = make([]uint64, p.width), make([]uint64, p.dim)
	var zs, ss [][]uint64
	for _, i := range quorum {
		zs, ss = append(zs, results[i].Z.Open()), append(ss, results[i].S.Open())
	}
	p.Reconstruct(z, quorum, zs)
	p.Reconstruct(s, quorum, ss)
	return z, s
}

func testPlan(t testing.TB, set *lwe.Scheme, n, threshold int) *plan {
	t.Helper()
	p, err := newPlan(&Config{Session: round.Session{Parties: n}, Scheme: set, Threshold: threshold})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// slowly returns a b in Z_Q[X]/(X^N+1), computed by the definition.
func slowly(p *plan, a, b []uint64) []uint64 {
	c := make([]uint64, p.width)
	for i, x := range a {
		for j, y := range b {
			v := p.Mul(x, y)
			if k := i + j; k < p.width {
				c[k] = p.Add(c[k], v)
			} else {
				c[k-p.width] = p.Sub(c[k-p.width], v)
			}
		}
	}
	return c
}

// noises are the errors of keys, as integers: of ring samples and of switching samples.
type noises struct{ ring, far []float64 }

func centred(x, q uint64) float64 {
	if x > q/2 {
		return -float64(q - x)
	}
	return float64(x)
}

// open decrypts every sample of the keys and returns the errors that remain after subtracting the
// expected messages.
func open(t *testing.T, p *plan, set *lwe.Scheme, keys *lwe.Keys, z, s []uint64) (e noises) {
	t.Helper()
	inverse := func(v []uint64) []uint64 {
		out := make([]uint64, p.width)
		set.Inverse(out, v)
		return out
	}
	ringSample := func(a, b, message []uint64) {
		phase := slowly(p, inverse(a), z)
		p.SubVec(phase, inverse(b), phase)
		p.SubVec(phase, phase, message)
		for _, v := range phase {
			e.ring = append(e.ring, centred(v, p.Q))
		}
	}
	a := make([]uint64, p.width)
	set.UniformPublic(a, &keys.Seed)
	ringSample(a, keys.Public, make([]uint64, p.width))
	l := set.Set.Rotation.Digits
	for i := range p.dim {
		a := make([]uint64, 2*l*p.width)
		set.UniformRotation(a, &keys.Seed, i)
		for r := range 2 * l {
			message := make([]uint64, p.width)
			g := p.Mul(s[i], set.Set.Rotation.Factor(p.Q, r%l))
			if r < l {
				p.ScaleVec(message, z, p.Neg(g))
			} else {
				message[0] = g
			}
			ringSample(a[r*p.width:(r+1)*p.width], keys.RotationRow(i, r), message)
		}
	}
	l = set.Switch.Digits
	for k := range p.width {
		a := make([]uint64, l*p.dim)
		set.UniformSwitch(a, &keys.Seed, k)
		for j := range l {
			v := keys.Switch[k*l+j]
			for i, x := range a[j*p.dim : (j+1)*p.dim] {
				v = p.Sub(v, p.Mul(x, s[i]))
			}
			e.far = append(e.far, centred(p.Sub(v, p.Mul(z[k], set.Switch.Factor(p.Q, j))), p.Q))
		}
	}
	return e
}

func bounded(t *testing.T, name string, e []float64, variance float64) {
	t.Helper()
	for _, v := range e {
		if math.Abs(v) > 10*math.Sqrt(variance) {
			t.Fatalf("%s: an error of %g, with variance %g", name, v, variance)
		}
	}
}

// Every quorum has the same secrets, which are bits and differences of bits; all parties have the
// same keys; and every sample decrypts to its message with an error of the expected size.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ n, t int }{{3, 1}, {4, 1}, {5, 1}, {5, 2}, {7, 2}, {7, 3}} {
		t.Run(fmt.Sprint(c.t, " of ", c.n), func(t *testing.T) {
			set := small()
			out := run(set, c.n, c.t).OK(t)
			p := testPlan(t, set, c.n, c.t)
			z, s := secrets(p, out.Results, quorums(c.n, c.t+1)[0])
			for _, q := range quorums(c.n, c.t+1) {
				if z2, s2 := secrets(p, out.Results, q); !slices.Equal(z, z2) || !slices.Equal(s, s2) {
					t.Fatalf("quorum %v has other secrets", q)
				}
			}
			var bits, terns [3]int
			for _, v := range s {
				if v > 1 {
					t.Fatal("s is not binary")
				}
				bits[v]++
			}
			for _, v := range z {
				if v = p.Add(v, 1); v > 2 {
					t.Fatal("z is not ternary")
				}
				terns[v]++
			}
			if terns[0] == 0 || terns[1] == 0 || terns[2] == 0 {
				t.Errorf("z has %v coefficients of -1, 0 and 1", terns)
			}
			for i, r := range out.Results {
				if r.Keys.Digest() != out.Results[0].Keys.Digest() {
					t.Fatalf("party %d has other keys", i)
				}
			}
			e := open(t, p, set, out.Results[0].Keys, z, s)
			noise := set.NoiseOf(c.n, c.t)
			bounded(t, "ring samples", e.ring, noise.Ring)
			bounded(t, "switching samples", e.far, noise.Switch)
		})
	}
}

// Keys support encryption under the public key, and gates under the other keys.
func TestKeysEvaluate(t *testing.T) {
	var cases []longtest.Case
	for _, set := range lwe.Sets() {
		cases = append(cases, longtest.Case{Name: set.Name, Everyday: set.Insecure, Run: func(t *testing.T) {
			evaluates(t, scheme(t, set), 3, 1)
		}})
	}
	longtest.Run(t, cases)
}

func evaluates(t *testing.T, s *lwe.Scheme, n, threshold int) {
	out := run(s, n, threshold).OK(t)
	z, _ := secrets(testPlan(t, s, n, threshold), out.Results, []int{0, 2})
	public, err := s.PublicKey(out.Results[0].Keys)
	if err != nil {
		t.Fatal(err)
	}
	e, err := lwe.NewEvaluator(s, out.Results[1].Keys, 2)
	if err != nil {
		t.Fatal(err)
	}
	messages := make([]uint64, s.N())
	copy(messages, []uint64{0, 0, 1, 1, 0, 1})
	c, err := public.Encrypt(messages, lwe.Boolean, source("encrypt", 0))
	if err != nil {
		t.Fatal(err)
	}
	x, y, nand, mod := s.NewLWE(), s.NewLWE(), s.NewLWE(), s.Modulus()
	for i := range 5 {
		s.Extract(x, c, i)
		s.Extract(y, c, i+1)
		if err := e.Gate(nand, lwe.Nand, x, y); err != nil {
			t.Fatal(err)
		}
		phase := mod.Sub(nand.B, s.Dot(nand.A, z))
		if got := s.Decode(phase, lwe.Boolean); got != 1-messages[i]*messages[i+1] {
			t.Errorf("NAND of %d and %d is %d", messages[i], messages[i+1], got)
		}
	}
}
