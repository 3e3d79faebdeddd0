package bgvdecrypt

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/bgv/bgvtest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// Every quorum decrypts whole ciphertexts that Lattigo evaluated, in both modes.
func TestFlooding(t *testing.T) {
	for _, c := range []struct {
		set  string
		n, t int
	}{{"insecure-B5-17", 3, 1}, {"insecure-B5-17", 5, 2}, {"insecure-B6-31", 7, 3}} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			w := newWorld(t, c.set, c.n, c.t)
			var list []*bgv.Ciphertext
			var want [][]uint64
			for _, e := range w.user.Evaluate(t) {
				list, want = append(list, e.Cipher), append(want, e.Slots)
			}
			for i, quorum := range quorums(c.n, c.t+1) {
				to := round.Party(i%(c.t+2)) - 1
				for k, m := range w.flooded(t, list, to, w.flood(t, quorum, list, to)) {
					if got, err := w.Slots(m); err != nil || !slices.Equal(got, want[k]) {
						t.Fatalf("quorum %v, ciphertext %d: %v, want %v", quorum, k, got, want[k])
					}
				}
			}
		})
	}
}

// Distance bounds the distance correctly. For small floods the test counts the distance for one
// coefficient value by value. In all sets and for all quorums the distance for all decryptions is
// below 2^-40.
func TestDistance(t *testing.T) {
	for _, c := range []struct{ e, b int64 }{{1, 1}, {5, 2}, {100, 7}, {1000, 1000}} {
		worst := int64(0)
		for shift := -c.b; shift <= c.b; shift++ {
			apart := int64(0) // sum of |difference| (2E+1)
			for v := -c.e - c.b; v <= c.e+c.b; v++ {
				if inside, shifted := v >= -c.e && v <= c.e, v-shift >= -c.e && v-shift <= c.e; inside != shifted {
					apart++
				}
			}
			worst = max(worst, apart)
		}
		if worst != 2*min(c.b, 2*c.e+1) {
			t.Errorf("floods of %d, shifts of %d: %d/2/%d", c.e, c.b, worst, 2*c.e+1)
		}
	}
	for _, set := range bgv.Sets() {
		s, err := bgv.New(set)
		if err != nil {
			t.Fatal(err)
		}
		for quorum := 2; quorum <= (bgv.MaxParties-1)/2+1; quorum++ {
			f, err := NewFlooding(s, quorum)
			if set.FloodLevel < 0 {
				if !errors.Is(err, ErrParams) {
					t.Errorf("%s: %v", set.Name, err)
				}
				continue
			}
			if err != nil {
				t.Error(err)
				continue
			}
			width := new(big.Int).Add(new(big.Int).Lsh(f.Bound(), 1), big.NewInt(1))
			one := new(big.Rat).SetFrac(new(big.Int).Lsh(big.NewInt(1), uint(set.LogNoise)), width)
			all := one.Mul(one, new(big.Rat).SetInt64(int64(set.N())))
			all.Mul(all, new(big.Rat).SetInt64(1<<set.LogDecryptions))
			if all.Cmp(f.Distance()) != 0 || all.Cmp(new(big.Rat).SetFrac64(1, 1<<40)) > 0 {
				x, _ := all.Float64()
				t.Errorf("%s, %d parties: distance 2^%.1f", set.Name, quorum, math.Log2(x))
			}
			edge(t, f)
		}
	}
}

// edge fails the test unless the largest sum of noise and floods decodes, for either sign and every
// message, and a sum that is larger by 2^-50 does not.
func edge(t *testing.T, f *Flooding) {
	t.Helper()
	s, basis := f.scheme, f.basis
	plain := new(big.Int).SetUint64(s.T)
	inverse := new(big.Int).ModInverse(plain, basis.Modulus())
	most := new(big.Int).Mul(f.Bound(), big.NewInt(int64(f.quorum)))
	most.Add(most, new(big.Int).Lsh(big.NewInt(1), uint(s.LogNoise)))
	for beyond, fits := range map[uint]bool{0: true, 50: false} {
		e := new(big.Int).Set(most)
		if beyond > 0 {
			e.Add(e, new(big.Int).Rsh(e, beyond))
		}
		want, got, v := make([]uint64, s.N()), make([]uint64, s.N()), make([]*big.Int, s.N())
		for k := range v {
			want[k] = uint64(k/2) * 12345 % s.T
			if k < 4 {
				want[k] = uint64(k/2) * (s.T - 1)
			}
			v[k] = new(big.Int).Mul(inverse, new(big.Int).SetUint64(want[k]))
			if k%2 == 0 {
				v[k].Add(v[k], e)
			} else {
				v[k].Sub(v[k], e)
			}
		}
		phase := basis.NewPoly()
		basis.FromBig(phase, v)
		c, err := s.DecodeCiphertext(zeroCiphertext(s))
		if err != nil {
			t.Fatal(err)
		}
		if s.Decode(got, c, phase); slices.Equal(got, want) != fits {
			t.Errorf("%s, %d parties: a sum beyond the bound by 2^-%d decodes: %v", s.Name, f.quorum, beyond, !fits)
		}
	}
}

// zeroCiphertext returns an encryption of zero at the level of flooding, of scale 1.
func zeroCiphertext(s *bgv.Scheme) []byte {
	b := make([]byte, s.CiphertextSize(s.FloodLevel))
	b[0], b[1] = byte(s.FloodLevel), 1
	return b
}

// NewFlooding returns an error where the flood would be too small.
func TestFloodingIsRefused(t *testing.T) {
	set, _ := bgv.Lookup("insecure-B5-17")
	set.LogDecryptions = 40
	s, err := bgv.New(set)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := NewFlooding(s, 2); !errors.Is(err, ErrParams) { // needs 5 + 40 + 12 + 40 bits, and the flood has 92
		t.Errorf("too many decryptions: %v", err)
	}
	set.LogDecryptions, set.LogNoise = 20, 30
	if s, err = bgv.New(set); err != nil {
		t.Fatal(err)
	}
	if _, err := NewFlooding(s, 2); !errors.Is(err, ErrParams) {
		t.Errorf("too much noise: %v", err)
	}
	for _, quorum := range []int{0, 1, 17} {
		if _, err := NewFlooding(s, quorum); !errors.Is(err, ErrParams) {
			t.Errorf("%d parties: %v", quorum, err)
		}
	}
}

// flat applies a chi-square test with 16 classes to numbers in [0, 1).
func flat(t *testing.T, what string, values []float64) {
	t.Helper()
	var counts [16]float64
	for _, v := range values {
		counts[int(v*16)]++
	}
	want, chi := float64(len(values))/16, 0.0
	for _, c := range counts {
		chi += (c - want) * (c - want) / want
	}
	if chi > 15+8*math.Sqrt(30) {
		t.Errorf("%s: chi-square is %.1f: %v", what, chi, counts)
	}
}

func fraction(v, of *big.Int) float64 {
	x, _ := new(big.Rat).SetFrac(v, of).Float64()
	return min(x, math.Nextafter(1, 0))
}

// A single answer is uniform modulo Q, even to an observer that knows the party's share of the key,
// because it contains shares of zero. The answers of a quorum together are the phase plus a flood
// from each party, uniform in [-E, E] and fresh for every ciphertext and run.
func TestAnswersAreFlooded(t *testing.T) {
	w := newWorld(t, "insecure-B6-31", 5, 2)
	quorum, f := []int{0, 2, 3}, w.flooding(t)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	list := []*bgv.Ciphertext{ct, ct, ct, ct} // a caller must not repeat a ciphertext
	low, err := f.lower(ct)
	if err != nil {
		t.Fatal(err)
	}
	q := f.basis.Modulus()
	var alone, sums []float64
	seen := map[string]bool{}
	for range 3 {
		answers := answersOf(t, f, w.flood(t, quorum, list, Outside))
		keys := w.additive(t, quorum, f.Primes())
		phase := bgvtest.Phase(w.Scheme, low, w.secret)
		for k := range list {
			total := low.C0.Clone()
			for p := range answers {
				key, c1, rest := f.basis.NewNTT(), f.basis.NewNTT(), f.basis.NewPoly()
				f.basis.Forward(key, keys[p])
				f.basis.Forward(c1, low.C1)
				f.basis.MulNTT(c1, c1, key)
				f.basis.Inverse(rest, c1)
				f.basis.Sub(rest, answers[p][k], rest)
				for _, v := range f.basis.ToBig(rest) {
					alone = append(alone, fraction(v.Mod(v, q), q))
				}
				f.basis.Add(total, total, answers[p][k])
			}
			for i, v := range f.basis.ToBig(total) {
				v.Sub(v, phase[i])
				v.Add(v, new(big.Int).Mul(f.Bound(), big.NewInt(3)))
				if seen[v.String()] || v.Sign() < 0 {
					t.Fatalf("the same sum of floods twice, or one larger than 3 E")
				}
				seen[v.String()] = true
				sums = append(sums, fraction(v, new(big.Int).Mul(f.Bound(), big.NewInt(6))))
			}
		}
	}
	flat(t, "answers minus the share of the key", alone)
	// The sum of three floods, uniform in an interval of length 2E each, has variance 3 (2E)^2/12 =
	// E^2. With 6E as the unit this is 1/36.
	mean, square := 0.0, 0.0
	for _, v := range sums {
		mean += v / float64(len(sums))
		square += (v - 0.5) * (v - 0.5) / float64(len(sums))
	}
	if n := float64(len(sums)); math.Abs(mean-0.5) > 5*math.Sqrt(1.0/36/n) || math.Abs(square*36-1) > 5*math.Sqrt(2/n) {
		t.Errorf("sums of floods have mean %.4f and variance %.4f/36", mean, square*36)
	}
}

// Each party's share without the shares of zero has a flood of this package's distribution.
func TestFloodIsUniform(t *testing.T) {
	w := newWorld(t, "insecure-B6-31", 3, 1)
	f := w.flooding(t)
	var values []float64
	width := new(big.Int).Lsh(f.Bound(), 1)
	for k := range 40 {
		d := f.share(f.basis.NewPoly(), f.basis.NewNTT(), source("flood", 0).Stream("flood", uint64(k)))
		for _, v := range f.basis.ToBig(d) {
			if v.CmpAbs(f.Bound()) > 0 {
				t.Fatal("a flood is larger than the bound")
			}
			values = append(values, fraction(v.Add(v, f.Bound()), width))
		}
	}
	flat(t, "floods", values)
}

// Faults of messages and of configurations.

func named(t *testing.T, out *roundtest.Outcome[*Result], by, culprit round.Party, check string) {
	t.Helper()
	var blame *round.Blame
	if !errors.As(out.Errors[by], &blame) || blame.Party != culprit || blame.Check != check {
		t.Errorf("party %d returned %v, want blame of party %d for %s", by, out.Errors[by], culprit, check)
	}
}

func TestMalformedMessagesAreBlamed(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	var list []*bgv.Ciphertext
	for _, e := range w.user.Evaluate(t)[:2] {
		list = append(list, e.Cipher)
	}
	ones := func(_ *roundtest.View, frames [][]byte) [][]byte {
		for i := range 8 {
			frames[1][headerSize+i] = 0xff
		}
		return frames
	}
	for _, c := range []struct {
		from, to round.Party
		name     string
		edit     roundtest.Edit
		check    string
	}{
		{0, 1, "seed", roundtest.Truncate(1), round.CheckShape},
		{0, 1, "seed", roundtest.Extend(1), round.CheckSize},
		{1, 0, "seed", roundtest.Truncate(1), round.CheckShape},
		{1, 0, "seed", roundtest.Extend(1), round.CheckSize},
		{1, 0, "seed", roundtest.Flip(9), CheckAgreement},
		{0, 1, "answer", roundtest.Truncate(1), round.CheckShape},
		{0, 1, "answer", roundtest.Extend(1), round.CheckSize},
		{0, 1, "answer", roundtest.ExtraFrame(nil), round.CheckShape},
		{0, 1, "answer", func(_ *roundtest.View, f [][]byte) [][]byte { return f[:1] }, round.CheckShape},
		{0, 1, "answer", ones, round.CheckShape},
		{0, 1, "answer", roundtest.Flip(3), CheckAgreement},
		{0, 1, "answer", func(_ *roundtest.View, f [][]byte) [][]byte { return [][]byte{f[1], f[0]} }, CheckAgreement},
	} {
		out := w.flood(t, []int{0, 2}, list, 1, roundtest.Link(c.from, c.to, "test/"+c.name, c.edit))
		named(t, out, c.to, c.from, c.check)
	}
	var stalled *roundtest.Stalled
	out := w.flood(t, []int{0, 2}, list, 1, roundtest.Link(0, 1, "test/answer", roundtest.Drop))
	if !errors.As(out.Errors[1], &stalled) || stalled.Missing[0].From != 0 {
		t.Errorf("without answers: %v", out.Errors[1])
	}
}

// Parties with different ciphertexts or recipients do not answer.
func TestDisagreement(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	f := w.flooding(t)
	var list []*bgv.Ciphertext
	for _, e := range w.user.Evaluate(t) {
		list = append(list, e.Cipher)
	}
	same := slices.Clone(list[:2])
	other := *list[1]
	other.C0 = other.C0.Clone()
	other.C0.C[0][5] ^= 1
	key := f.basis.NewNTT()
	for name, change := range map[string]func(c *FloodingConfig){
		"another ciphertext":  func(c *FloodingConfig) { c.Ciphertexts = []*bgv.Ciphertext{same[0], &other} },
		"another order":       func(c *FloodingConfig) { c.Ciphertexts = []*bgv.Ciphertext{same[1], same[0]} },
		"one ciphertext less": func(c *FloodingConfig) { c.Ciphertexts = list[:3] },
		"recipient":           func(c *FloodingConfig) { c.Recipient = 0 },
		"flood": func(c *FloodingConfig) {
			g := *f
			g.bound = new(big.Int).Sub(f.bound, big.NewInt(1))
			c.Flooding = &g
		},
	} {
		out := roundtest.Lockstep(2, func(s round.Session) (round.Transition[*Result], error) {
			c := FloodingConfig{
				Session: s, Step: "test", Flooding: f, Ciphertexts: same, Secret: key, Recipient: 1, Source: source(name, s.Self),
			}
			if s.Self == 0 {
				change(&c)
			}
			return StartFlooding(c)
		})
		named(t, out, 1, 0, CheckAgreement)
		named(t, out, 0, 1, CheckAgreement)
	}
}

func TestConfigurationsAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	f := w.flooding(t)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	low, err := w.Switch(ct, 0)
	if err != nil {
		t.Fatal(err)
	}
	good := FloodingConfig{
		Session: round.Session{Parties: 2}, Step: "test", Flooding: f, Ciphertexts: []*bgv.Ciphertext{ct},
		Secret: f.basis.NewNTT(), Recipient: 1, Source: source("x", 0),
	}
	for name, change := range map[string]func(c *FloodingConfig){
		"no parameters":     func(c *FloodingConfig) { c.Flooding = nil },
		"no source":         func(c *FloodingConfig) { c.Source = nil },
		"no ciphertexts":    func(c *FloodingConfig) { c.Ciphertexts = nil },
		"another quorum":    func(c *FloodingConfig) { c.Session.Parties = 3 },
		"a key too short":   func(c *FloodingConfig) { c.Secret = w.Level(0).NewNTT() },
		"no recipient":      func(c *FloodingConfig) { c.Recipient = -2 },
		"no such recipient": func(c *FloodingConfig) { c.Recipient = 2 },
		"a low level":       func(c *FloodingConfig) { c.Ciphertexts = []*bgv.Ciphertext{ct, low} },
	} {
		c := good
		change(&c)
		if _, err := StartFlooding(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := StartFlooding(good); err != nil {
		t.Error(err)
	}
	if _, err := f.Secret(w.Level(0).NewPoly()); !errors.Is(err, ErrParams) {
		t.Error(err)
	}
	if _, err := f.Key(low); !errors.Is(err, ErrParams) {
		t.Error(err)
	}
}

// A Key depends only on c_1 after the switch, which determines the answers.
func TestKey(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	f := w.flooding(t)
	ct, err := w.FromLattigo(w.user.Encrypt(t, w.user.Values(5)))
	if err != nil {
		t.Fatal(err)
	}
	key := func(change func(c *bgv.Ciphertext)) round.Digest {
		c := *ct
		c.C0, c.C1 = ct.C0.Clone(), ct.C1.Clone()
		change(&c)
		d, err := f.Key(&c)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	same := key(func(*bgv.Ciphertext) {})
	low, err := w.Switch(ct, f.scheme.FloodLevel)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := f.Key(low); err != nil || d != same {
		t.Error("a ciphertext that was switched before has another key")
	}
	if key(func(c *bgv.Ciphertext) { c.C0.C[0][3] ^= 1; c.Scale = 7 }) != same {
		t.Error("the key depends on c_0 and the scale")
	}
	if key(func(c *bgv.Ciphertext) { c.C1.C[0][3] ^= 1 }) == same {
		t.Error("the key does not depend on c_1")
	}
}

func TestCombineFlooding(t *testing.T) {
	w := newWorld(t, "insecure-B5-17", 3, 1)
	f := w.flooding(t)
	list := []*bgv.Ciphertext{}
	for _, e := range w.user.Evaluate(t)[:2] {
		list = append(list, e.Cipher)
	}
	out := w.flood(t, []int{1, 2}, list, Outside).OK(t)
	answers := func() [][]byte {
		return [][]byte{slices.Clone(out.Results[0].Answers[0]), slices.Clone(out.Results[1].Answers[0])}
	}
	good, err := f.CombineFlooding(list[0], 0, answers())
	if err != nil || !slices.Equal(good, w.message(list[0])) {
		t.Fatal(err)
	}
	for name, change := range map[string]func(a [][]byte) [][]byte{
		"one answer missing":  func(a [][]byte) [][]byte { return a[:1] },
		"one answer too many": func(a [][]byte) [][]byte { return append(a, a[0]) },
		"short":               func(a [][]byte) [][]byte { a[1] = a[1][1:]; return a },
		"nothing":             func(a [][]byte) [][]byte { a[0] = nil; return a },
		"long":                func(a [][]byte) [][]byte { a[1] = append(a[1], 0); return a },
		"another run":         func(a [][]byte) [][]byte { a[1][0] ^= 1; return a },
		"another ciphertext":  func(a [][]byte) [][]byte { a[1] = out.Results[1].Answers[1]; return a },
		"residue": func(a [][]byte) [][]byte {
			for i := range 8 {
				a[0][headerSize+i] = 0xff
			}
			return a
		},
	} {
		if _, err := f.CombineFlooding(list[0], 0, change(answers())); !errors.Is(err, ErrAnswers) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzCombineFlooding(f *testing.F) {
	w := newWorld(f, "insecure-B5-17", 3, 1)
	ct, err := w.FromLattigo(w.user.Encrypt(f, w.user.Values(5)))
	if err != nil {
		f.Fatal(err)
	}
	flood := w.flooding(f)
	out := w.flood(f, []int{1, 2}, []*bgv.Ciphertext{ct}, Outside).OK(f)
	f.Add(out.Results[0].Answers[0], out.Results[1].Answers[0])
	f.Fuzz(func(t *testing.T, a, b []byte) {
		m, err := flood.CombineFlooding(ct, 0, [][]byte{a, b})
		if err == nil && (len(m) != w.N() || slices.Max(m) >= w.T) || err != nil && !errors.Is(err, ErrAnswers) {
			t.Fatalf("%v, %v", m, err)
		}
	})
}

func TestResultsAreErasedAndNotShown(t *testing.T) {
	r := &Result{Messages: [][]uint64{{3, 4}}, Answers: [][]byte{{5}}}
	if s := fmt.Sprintf("%v %+v %x %s", r, r, r, r); strings.ContainsAny(s, "345") {
		t.Error(s)
	}
	r.Wipe()
	if slices.Max(r.Messages[0]) != 0 || r.Answers[0][0] != 0 {
		t.Error("the result was not erased")
	}
}
