package bgvkeys

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/bgv/bgvtest"
	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func scheme(t testing.TB, name string) *bgv.Scheme {
	t.Helper()
	set, err := bgv.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := bgv.New(set)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// small returns a fast set with three digits.
func small(t testing.TB) *bgv.Scheme { return scheme(t, "insecure-B5-17") }

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("bgvkeys test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

// galois returns the automorphisms of a rotation and of the exchange of rows.
func galois(s *bgv.Scheme) []uint64 {
	list := []uint64{s.Galois(3), s.RotateRows()}
	slices.Sort(list)
	return list
}

func run(s *bgv.Scheme, n, t int, options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(n, func(rs round.Session) (transition, error) {
		return Start(Config{
			Session: rs, Scheme: s, Threshold: t, Galois: galois(s), Source: source("run", rs.Self), Workers: 2,
		})
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

// secretOf returns s as reconstructed by a quorum.
func secretOf(p *plan, results []Result, quorum []int) []*big.Int {
	out := ring.Poly{C: p.table()}
	for k, f := range p.fields {
		var shares [][]uint64
		for _, i := range quorum {
			shares = append(shares, results[i].Share.Open()[k*p.width:(k+1)*p.width])
		}
		f.Reconstruct(out.C[k], quorum, shares)
	}
	return p.scheme.Basis().ToBig(out)
}

func testPlan(t testing.TB, s *bgv.Scheme, n, threshold int) *plan {
	t.Helper()
	p, err := newPlan(&Config{Session: round.Session{Parties: n}, Scheme: s, Threshold: threshold, Galois: galois(s)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// noises returns the errors of samples, by sample, as integers.
func noises(p *plan, keys *bgv.Keys, secret []*big.Int) (list [][]*big.Int) {
	basis := p.scheme.Basis()
	coefficients, s := basis.NewPoly(), basis.NewNTT()
	basis.FromBig(coefficients, secret)
	basis.Forward(s, coefficients)
	for i, b := range keys.B {
		a, under, message, e := basis.NewNTT(), s.Clone(), basis.NewNTT(), b.Clone()
		p.scheme.Uniform(a, &keys.Seed, i)
		digit := -1
		if i > 0 {
			digit = (i - 1) % p.scheme.Digits()
			if k := (i - 1) / p.scheme.Digits(); k == 0 {
				basis.MulNTT(message, s, s)
			} else { // under s(X^(1/g)) for g = galois[k-1]
				message.Copy(s)
				turned := basis.NewPoly()
				inverse := new(big.Int).ModInverse(new(big.Int).SetUint64(p.galois[k-1]), big.NewInt(int64(2*p.width)))
				basis.Automorphism(turned, coefficients, int(inverse.Int64()))
				basis.Forward(under, turned)
			}
		}
		basis.MulAddNTT(e, a, under)
		factor := make([]uint64, basis.Len())
		for k := range factor {
			if digit >= 0 && k < len(p.scheme.Q) && p.scheme.Digit(k) == digit {
				factor[k] = p.scheme.SpecialProduct(k)
			}
		}
		basis.MulScalar(ring.Poly(message), ring.Poly(message), factor)
		basis.SubNTT(e, e, message)
		out := basis.NewPoly()
		basis.Inverse(out, e)
		list = append(list, basis.ToBig(out))
	}
	return list
}

// Every quorum has the same secret, a sum of ternary secrets; all parties have the same keys; and
// every sample decrypts to its message with an error of the expected size.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		set  string
		n, t int
	}{
		{"insecure-B5-17", 3, 1}, {"insecure-B5-17", 4, 1}, {"insecure-B5-17", 5, 2}, {"insecure-B6-31", 7, 2},
		{"insecure-B6-31", 7, 3}, {"insecure-B5-8", 3, 1},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			s := scheme(t, c.set)
			out := run(s, c.n, c.t).OK(t)
			p := testPlan(t, s, c.n, c.t)
			secret := secretOf(p, out.Results, quorums(c.n, c.t+1)[0])
			for _, q := range quorums(c.n, c.t+1) {
				if !slices.EqualFunc(secretOf(p, out.Results, q), secret, func(a, b *big.Int) bool { return a.Cmp(b) == 0 }) {
					t.Fatalf("quorum %v has another secret", q)
				}
			}
			nonzero := 0
			for _, v := range secret {
				if v.CmpAbs(big.NewInt(int64(c.n))) > 0 {
					t.Fatalf("%v in a sum of %d ternary secrets", v, c.n)
				}
				nonzero += min(1, v.BitLen())
			}
			if nonzero < p.width/4 {
				t.Errorf("%d of %d coefficients are not 0", nonzero, p.width)
			}
			for i, r := range out.Results {
				if s.KeysDigest(r.Keys) != s.KeysDigest(out.Results[0].Keys) {
					t.Fatalf("party %d has other keys", i)
				}
			}
			variance := float64(c.n) * lwe.PartyVariance(s.Variance, c.n, c.t)
			squares, count := 0.0, 0
			for i, e := range noises(p, out.Results[0].Keys, secret) {
				for _, v := range e {
					x, _ := new(big.Float).SetInt(v).Float64()
					if math.Abs(x) > 10*math.Sqrt(variance) {
						t.Fatalf("sample %d has an error of %v, with variance %g", i, v, variance)
					}
					squares += x * x
					count++
				}
			}
			if mean := squares / float64(count); math.Abs(mean/variance-1) > 8*math.Sqrt(2/float64(count)) {
				t.Errorf("errors of variance %g, want %g", mean, variance)
			}
		})
	}
}

// Users of Lattigo can compute with the keys: products and rotations, in both modes, have noise
// that permits decryption, and the right phase.
func TestKeysEvaluate(t *testing.T) {
	var cases []longtest.Case
	for _, set := range bgv.Sets() {
		everyday := set.Insecure || set.Name == bgv.Default
		cases = append(cases, longtest.Case{Name: set.Name, Everyday: everyday, Run: func(t *testing.T) {
			s := scheme(t, set.Name)
			const n = 3
			out := run(s, n, 1).OK(t)
			secret := secretOf(testPlan(t, s, n, 1), out.Results, []int{0, 2})
			for _, e := range bgvtest.NewUser(s, out.Results[1].Keys).Evaluate(t) {
				for _, level := range []int{0, max(0, s.FloodLevel)} { // the levels of decryption
					got, most := noise(s, e.Cipher, secret), s.MaxNoise(e.Cipher.Level, level, n)
					if got.Cmp(most) > 0 {
						t.Errorf("%s: noise %v, at most %v for level %d", e.Name, got, most, level)
					}
				}
				phase, message := s.Level(e.Cipher.Level).NewPoly(), make([]uint64, s.N())
				s.Level(e.Cipher.Level).FromBig(phase, bgvtest.Phase(s, e.Cipher, secret))
				s.Decode(message, e.Cipher, phase)
				if got, err := s.Slots(message); err != nil || !slices.Equal(got, e.Slots) {
					t.Errorf("%s has slots %d, want %d", e.Name, got[:4], e.Slots[:4])
				}
			}
		}})
	}
	longtest.Run(t, cases)
}

func TestConfigurations(t *testing.T) {
	s := small(t)
	good := Config{Session: round.Session{Parties: 3}, Scheme: s, Threshold: 1, Galois: galois(s), Source: source("x", 0)}
	for name, change := range map[string]func(c *Config){
		"no source":     func(c *Config) { c.Source = nil },
		"no scheme":     func(c *Config) { c.Scheme = nil },
		"no threshold":  func(c *Config) { c.Threshold = 0 },
		"two parties":   func(c *Config) { c.Session.Parties = 2 },
		"many parties":  func(c *Config) { c.Session.Parties = bgv.MaxParties + 1 },
		"no majority":   func(c *Config) { c.Session.Parties, c.Threshold = 4, 2 },
		"automorphisms": func(c *Config) { c.Galois = []uint64{4} },
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

// The broadcasts of the parties together reveal only the keys: any t shares of every opened row are
// uniform, so that they do not distinguish two runs that differ only in the secret. The test checks
// one party's shares, modulo the smallest prime.
func TestOpenedSharesAreUniform(t *testing.T) {
	s := scheme(t, "insecure-B6-31")
	out := run(s, 3, 1, roundtest.Record()).OK(t)
	p := testPlan(t, s, 3, 1)
	var counts [16]float64
	total := 0.0
	for _, frame := range out.Recording.Frames(1, 0, nameOpened) {
		for k := range p.primes {
			row := make([]uint64, p.width)
			var err error
			if frame, err = p.unpack(row, k, frame); err != nil {
				t.Fatal(err)
			}
			for _, v := range row {
				counts[v/(p.primes[k]/16+1)]++
				total++
			}
		}
	}
	chi := 0.0
	for _, c := range counts {
		chi += (c - total/16) * (c - total/16) / (total / 16)
	}
	if chi > 15+8*math.Sqrt(30) {
		t.Errorf("chi-square is %.1f: %v", chi, counts)
	}
}

// The masks of the check are a row of uniform secrets for either degree and each prime.
func TestMasksAreUniform(t *testing.T) {
	s := scheme(t, "insecure-B6-31")
	p := testPlan(t, s, 3, 1)
	c := &Config{
		Session: round.Session{Parties: 3}, Scheme: s, Threshold: 1, Galois: galois(s), Source: source("masks", 0),
	}
	d, err := newDealer(t.Context(), c, p)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uint64]bool{}
	upper, count := 0, 0
	for _, r := range p.rows(p.frames() - 1) {
		row := make([]uint64, p.width)
		d.secrets(row, p.frames()-1, r)
		for _, v := range row {
			if seen[v] || v >= p.primes[r.prime] {
				t.Fatalf("%d occurs twice in masks, or is not a residue", v)
			}
			seen[v] = true
			count++
			if v > p.primes[r.prime]/2 {
				upper++
			}
		}
	}
	if off := math.Abs(float64(upper) - float64(count)/2); off > 4*math.Sqrt(float64(count)) {
		t.Errorf("%d of %d masks are in the upper half", upper, count)
	}
}

func TestSecretsAreErased(t *testing.T) {
	s := small(t)
	p := testPlan(t, s, 3, 1)
	c := &Config{Session: round.Session{Parties: 3}, Scheme: s, Threshold: 1, Galois: galois(s), Source: source("wipe", 0)}
	q, err := newParty(c, round.Digest{})
	if err != nil {
		t.Fatal(err)
	}
	if q.dealer, err = newDealer(t.Context(), c, p); err != nil {
		t.Fatal(err)
	}
	for _, rows := range [][][]uint64{q.secret.C, q.shares[3].C, q.received[2][1], q.own[0][0]} {
		for _, r := range rows {
			for i := range r {
				r[i] = 7
			}
		}
	}
	q.Wipe()
	for _, rows := range [][][]uint64{q.secret.C, q.shares[3].C, q.received[2][1], q.own[0][0]} {
		for _, r := range rows {
			if slices.Max(r) != 0 {
				t.Error("the shares were not erased")
			}
		}
	}
	for _, e := range q.dealer.drawn {
		if slices.Max(e) != 0 || slices.Min(e) != 0 {
			t.Error("the errors were not erased")
		}
	}
}

// noise returns the largest coefficient of the noise of a ciphertext: T times the phase, centred,
// minus its remainder modulo T, divided by T.
func noise(s *bgv.Scheme, c *bgv.Ciphertext, secret []*big.Int) *big.Int {
	t, q := new(big.Int).SetUint64(s.T), s.Level(c.Level).Modulus()
	most := new(big.Int)
	for _, v := range bgvtest.Phase(s, c, secret) {
		v.Mod(v.Mul(v, t), q)
		if new(big.Int).Lsh(v, 1).Cmp(q) > 0 {
			v.Sub(v, q)
		}
		if v.Quo(v, t).CmpAbs(most) > 0 {
			most.Abs(v)
		}
	}
	return most
}
