package lwekeys

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/share"
)

// near fails the test if the variance of the errors differs from want by more than 6 standard
// deviations of the estimate.
func near(t *testing.T, name string, e []float64, want float64) {
	t.Helper()
	sum, squares := 0.0, 0.0
	for _, v := range e {
		sum += v
		squares += v * v
	}
	n := float64(len(e))
	if got := squares / n; math.Abs(got/want-1) > 6*math.Sqrt(2/n) {
		t.Errorf("%s: variance %g of %d errors, want %g", name, got, len(e), want)
	}
	if mean := sum / n; math.Abs(mean) > 6*math.Sqrt(want/n) {
		t.Errorf("%s: mean %g of %d errors of variance %g", name, mean, len(e), want)
	}
}

// The errors of keys have the variances of the noise model, also where the floor of the party
// variance applies.
func TestErrorVariance(t *testing.T) {
	for _, c := range []struct {
		set  string
		n, t int
	}{{"insecure-L8-53", 3, 1}, {"insecure-L8-50", 3, 1}, {"insecure-L8-50", 9, 4}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			set := lookup(t, c.set)
			out := run(set, c.n, c.t).OK(t)
			p := testPlan(t, set, c.n, c.t)
			z, s := secrets(p, out.Results, quorums(c.n, c.t+1)[0])
			e := open(t, p, set, out.Results[0].Keys, z, s)
			noise := set.NoiseOf(c.n, c.t)
			near(t, "ring samples", e.ring, noise.Ring)
			near(t, "switching samples", e.far, noise.Switch)
		})
	}
}

// Roots are found of all squares and of no other number. The test tries every number for a small
// prime, and samples for the primes of the sets.
func TestRoots(t *testing.T) {
	for _, q := range []uint64{1048897, 1<<50 - 16383, 9007199254614017} {
		set := smallSet()
		set.Q = q
		p := testPlan(t, scheme(t, set), 3, 1)
		for i := range uint64(5000) {
			x := p.Mul(i, i*i+12345)
			v := p.Mul(x, x)
			if r, ok := p.sqrt(v); !ok || r != x && r != p.Neg(x) {
				t.Fatalf("%d: %d has the root %d, %v", q, v, r, ok)
			}
			if x != 0 {
				if _, ok := p.sqrt(p.Mul(v, p.nonresidue)); ok {
					t.Fatalf("%d: a number that is not a square has a root", q)
				}
			}
		}
	}
}

// The same randomness yields the same messages and keys, for any number of workers.
func TestSameKeysAgain(t *testing.T) {
	var digests []round.Digest
	for _, workers := range []int{1, 3} {
		out := roundtest.Lockstep(5, func(rs round.Session) (transition, error) {
			return Start(Config{Session: rs, Scheme: small(), Threshold: 2, Source: source("run", rs.Self), Workers: workers})
		}, roundtest.Record()).OK(t)
		digests = append(digests, out.Recording.Digest(), out.Results[0].Keys.Digest())
	}
	if digests[0] != digests[2] || digests[1] != digests[3] {
		t.Error("another number of workers yields other messages")
	}
}

// The run's secrets are erased when it ends, whether or not it succeeds. The caller owns the
// returned shares.
func TestErased(t *testing.T) {
	for name, option := range map[string]roundtest.Option{
		"done":    roundtest.Link(1, 2, "nothing", roundtest.Drop),
		"stalled": roundtest.Link(1, 2, nameReport, roundtest.Drop),
	} {
		var mu sync.Mutex
		var held [][]uint64
		hooks := byzantine.On(byzantine.New(), "threshold/shares", func(o *opening) {
			mu.Lock()
			held = append(held, o.mine...)
			mu.Unlock()
		})
		var z, s share.Vec
		byzantine.On(hooks, "*lwekeys.opening", func(o *opening) {
			if o.name == "products" {
				z, s = o.z, o.s
			}
		})
		var deals []*Deal
		byzantine.On(hooks, "threshold/deal", func(d *Deal) {
			mu.Lock()
			deals = append(deals, d)
			mu.Unlock()
		})
		out := run(small(), 3, 1, roundtest.Watch(0, hooks), option)
		for _, d := range deals {
			held = append(held, d.Shares...)
		}
		if len(held) == 0 || len(z) == 0 {
			t.Fatal("the hooks were not called")
		}
		for _, row := range held {
			if slices.ContainsFunc(row, func(v uint64) bool { return v != 0 }) {
				t.Fatalf("%s: shares were not erased", name)
			}
		}
		left := slices.ContainsFunc(z, func(v uint64) bool { return v != 0 })
		if done := out.Errors[0] == nil; left != done {
			t.Errorf("%s: the share of z was not erased: %v", name, left)
		}
		if out.Errors[0] == nil {
			r := out.Results[0]
			if text := fmt.Sprintf("%v %+v %x", r.Z, r.S, r.Z); strings.ContainsAny(text, "0123456789") {
				t.Errorf("formatting reveals %s", text)
			}
			r.Wipe()
			if z[0] != 0 || s[0] != 0 || !r.Z.Empty() {
				t.Error("a wiped result has shares")
			}
		}
	}
}

// The memory estimate counts the keys and the shares of their rows twice, and is not much larger
// than that.
func TestMemoryBytes(t *testing.T) {
	for _, name := range lwe.Names() {
		s := lookup(t, name)
		keys := int64(s.N()) * int64(1+s.Switch.Digits+s.Dim*s.RotationRows()) * 8
		for _, c := range []struct{ n, t int }{{3, 1}, {5, 2}, {7, 3}} {
			got, err := MemoryBytes(s, c.n, c.t)
			if err != nil || got < 4*keys || got > 8*keys && got > 1<<30 {
				t.Errorf("%s, %d of %d: %d MB for keys of %d MB, %v", name, c.t, c.n, got>>20, keys>>20, err)
			}
		}
	}
}

func TestRefusedConfigurations(t *testing.T) {
	changed := func(change func(s *lwe.Set)) *lwe.Scheme {
		set := smallSet()
		change(set)
		return scheme(t, set)
	}
	good := func() Config {
		return Config{Session: round.Session{Parties: 3}, Scheme: small(), Threshold: 1, Source: source("refused", 0)}
	}
	for name, c := range map[string]struct {
		change func(c *Config)
		want   string
	}{
		"no scheme":        {func(c *Config) { c.Scheme = nil }, "without a scheme"},
		"no source":        {func(c *Config) { c.Source = nil }, "without a scheme or a source"},
		"no threshold":     {func(c *Config) { c.Threshold = 0 }, "honest majority"},
		"no majority":      {func(c *Config) { c.Threshold = 2 }, "honest majority"},
		"too many parties": {func(c *Config) { c.Session.Parties = 65 }, "honest majority"},
		"a small modulus":  {func(c *Config) { c.Scheme = changed(func(s *lwe.Set) { s.Q, s.Rotation.LogBase = 65537, 4 }) }, "modulus 65537 is not supported"},
		"large errors":     {func(c *Config) { c.Scheme = changed(func(s *lwe.Set) { s.SwitchVariance = 1 << 98 }) }, "are not supported"},
	} {
		config := good()
		c.change(&config)
		if _, err := Start(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
