package masks

import (
	"fmt"
	"math/bits"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("masks test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

func lockstep(n int, k Kind, count, sacrifice int, options ...roundtest.Option) *roundtest.Outcome[*Batch] {
	return roundtest.Lockstep(n, func(s round.Session) (round.Transition[*Batch], error) {
		return Start(Config{
			Session: s, Step: "test", Kind: k, Count: count, Sacrifice: sacrifice,
			Source: source(fmt.Sprint(k, n), s.Self), Workers: 2,
		})
	}, options...)
}

// spent returns the values of all parties.
func spent(t testing.TB, batches []*Batch) []*Values {
	t.Helper()
	values := make([]*Values, len(batches))
	for p, b := range batches {
		v, err := b.Spend()
		if err != nil {
			t.Fatal(err)
		}
		values[p] = v
	}
	return values
}

// total returns the sum of the parties' words at i, residues modulo m.
func total(values []*Values, m uint64, i int, of func(*Values) []uint64) (sum uint64) {
	for _, v := range values {
		if of(v)[i] >= m {
			panic("not a residue")
		}
		sum = (sum + of(v)[i]) % m
	}
	return sum
}

func parity(values []*Values, i int, of func(*Values) []uint64) (sum uint64) {
	for _, v := range values {
		sum ^= bit(of(v), i)
	}
	return sum
}

// check verifies record i and returns r or rho.
func check(t *testing.T, k Kind, values []*Values, i int) uint64 {
	t.Helper()
	r := total(values, k.Eta(), i, func(v *Values) []uint64 { return v.R })
	if k.Form == Paper {
		half := uint64(1) << (k.LogPhi - 1)
		if r >= half && r < 1<<k.LogEta-half {
			t.Fatalf("%v: record %d has r = %d", k, i, r)
		}
		return (r + half) % (1 << k.LogEta) // r + Phi/2, in [0, Phi)
	}
	if r>>k.LogPhi != 0 {
		t.Fatalf("%v: record %d has rho = %d", k, i, r)
	}
	bits := make([]uint64, k.LogPhi)
	for b := range bits {
		bits[b] = parity(values, i, func(v *Values) []uint64 { return v.Bits[b] })
		if bits[b] != r>>b&1 {
			t.Fatalf("%v: record %d has a wrong bit %d of rho = %d", k, i, b, r)
		}
	}
	for g := range k.Products() {
		if parity(values, i, func(v *Values) []uint64 { return v.Products[g] }) != bits[2*g]&bits[2*g+1] {
			t.Fatalf("%v: product %d of record %d is wrong", k, g, i)
		}
	}
	for j := range k.Triples() {
		var x [3]uint64
		for c := range x {
			x[c] = parity(values, i, func(v *Values) []uint64 { return v.Triples[j][c] })
		}
		if x[2] != x[0]&x[1] {
			t.Fatalf("%v: triple %d of record %d is wrong", k, j, i)
		}
	}
	d := total(values, k.P(), i, func(v *Values) []uint64 { return v.D })
	low := parity(values, i, func(v *Values) []uint64 { return v.Parity })
	if d > 1 || low != d {
		t.Fatalf("%v: record %d has d = %d, and %d over bits", k, i, d, low)
	}
	return r
}

func TestRecords(t *testing.T) {
	parties := map[Kind][]int{
		paperKind(53, 49): {2, 3, 4}, paperKind(50, 46): {2}, paperKind(12, 8): {3}, paperKind(3, 1): {2},
		exactKind(10, 6): {2, 3, 4}, exactKind(11, 7): {2}, exactKind(13, 9): {3}, exactKind(6, 2): {3}, exactKind(4, 1): {2},
		OddKind(3, 1): {2}, OddKind(257, 4): {3}, OddKind(65537, 6): {2, 3, 4}, OddKind(2130706433, 7): {3},
		OddKind(1<<57-13, 4): {3},
	}
	for k, list := range parties {
		for _, n := range list {
			count, sacrifice := 100, 7
			if n == 2 {
				count, sacrifice = 1, 0
			}
			out := lockstep(n, k, count, sacrifice).OK(t)
			for p, b := range out.Results {
				if b.Kind() != k || b.Count() != count || b.ID() != out.Results[0].ID() || b.First() != 0 {
					t.Errorf("party %d has %d records of %v", p, b.Count(), b.Kind())
				}
			}
			values := spent(t, out.Results)
			for i := range count {
				check(t, k, values, i)
			}
		}
	}
}

func TestSevenParties(t *testing.T) {
	for _, k := range []Kind{paperKind(53, 49), exactKind(10, 6), OddKind(65537, 3)} {
		values := spent(t, lockstep(7, k, 30, 5).OK(t).Results)
		for i := range 30 {
			check(t, k, values, i)
		}
	}
}

// Masks are uniform, and so is every party's part: each value of r + Phi/2 or rho, of a share
// modulo 64 and of the bits of a triple occurs as often as the others.
func TestUniform(t *testing.T) {
	const count = 20000
	for _, k := range []Kind{paperKind(10, 6), exactKind(10, 6), OddKind(65537, 6)} {
		values := spent(t, lockstep(2, k, count, 0).OK(t).Results)
		var masks, low, high, triples [64]int
		for i := range count {
			masks[check(t, k, values, i)]++
			low[values[1].R[i]%64]++
			high[values[0].R[i]*64/k.Eta()]++
			if k.Form == Exact {
				at := uint64(0)
				a, b := values[0], values[1]
				for _, plane := range [][]uint64{
					a.Triples[0][0], a.Triples[0][1], a.Triples[0][2], b.Triples[1][2], a.Products[0], b.Products[2],
				} {
					at = at<<1 | bit(plane, i)
				}
				triples[at]++
			}
		}
		uniform(t, "mask", masks[:])
		uniform(t, "share", low[:])
		uniform(t, "upper share", high[:])
		if k.Form == Exact {
			uniform(t, "triple", triples[:])
		}
	}
}

// uniform applies a chi-square test with 64 classes: 63 degrees of freedom, mean 63, standard
// deviation 11.2.
func uniform(t *testing.T, what string, counts []int) {
	t.Helper()
	n := 0
	for _, c := range counts {
		n += c
	}
	want := float64(n) / float64(len(counts))
	chi := 0.0
	for _, c := range counts {
		chi += (float64(c) - want) * (float64(c) - want) / want
	}
	if chi > 63+7*11.2 || chi < 63-5*11.2 {
		t.Errorf("%s: chi-square is %.1f: %v", what, chi, counts)
	}
}

// Runs share nothing: neither the ID of their records nor, with other randomness, their bits.
func TestRunsDiffer(t *testing.T) {
	k := exactKind(10, 6)
	a := lockstep(2, k, 640, 0).OK(t)
	b := lockstep(2, k, 640, 0, roundtest.ID(round.Hash("another session"))).OK(t)
	if a.Results[0].ID() == b.Results[0].ID() {
		t.Error("records of two sessions have the same ID")
	}
	va, vb := spent(t, a.Results), spent(t, b.Results)
	same := 0
	for i := range 640 {
		if va[0].R[i] == vb[0].R[i] { // same bits, but other transfers
			same++
		}
	}
	if same > 20 {
		t.Errorf("%d of 640 shares are equal to those of another session", same)
	}
}

func TestConfigurations(t *testing.T) {
	s := round.Session{Self: 0, Parties: 2}
	good := Config{Session: s, Step: "test", Kind: exactKind(10, 6), Count: 1, Source: source("x", 0)}
	for name, change := range map[string]func(*Config){
		"no source":          func(c *Config) { c.Source = nil },
		"no records":         func(c *Config) { c.Count = 0 },
		"negative sacrifice": func(c *Config) { c.Sacrifice = -1 },
		"too many":           func(c *Config) { c.Count = MaxCount(c.Kind) + 1 },
		"huge count":         func(c *Config) { c.Count = 1 << 62 },
		"too many to open":   func(c *Config) { c.Sacrifice = MaxCount(c.Kind) },
		"invalid kind":       func(c *Config) { c.Kind.LogPhi = 0 },
		"overflow both":      func(c *Config) { c.Count, c.Sacrifice = 1<<63-1, 1<<63-1 },
	} {
		c := good
		change(&c)
		if _, err := Start(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := Start(good); err != nil {
		t.Error(err)
	}
}

// choose picks records uniformly and none twice.
func TestChoose(t *testing.T) {
	var counts [64]int
	for trial := range 4000 {
		var seen uint64
		for _, i := range choose(round.Hash("coin", round.Uint(uint64(trial))), 64, 5) {
			seen |= 1 << i
			counts[i]++
		}
		if bits.OnesCount64(seen) != 5 {
			t.Fatal("an index was chosen twice")
		}
	}
	uniform(t, "chosen", counts[:])
}
