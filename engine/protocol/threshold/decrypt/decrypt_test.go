package decrypt

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// every returns every message, four times each.
func every(logP int) (m []uint64) {
	for i := range uint64(4) << logP {
		m = append(m, i%(1<<logP))
	}
	return m
}

// The parties decrypt every message to every recipient, for moduli of all sorts and both forms.
func TestEveryMessage(t *testing.T) {
	for _, c := range []struct {
		q             uint64
		logP, parties int
		deviation     float64
	}{
		{q50, 4, 2, 1 << 20}, {q53, 4, 3, 1 << 24}, {1 << 50, 4, 2, 1 << 20}, {1 << 32, 2, 4, 1 << 8},
		{1<<58 - 27, 8, 2, 1 << 30},
		{q50, 4, 7, 1 << 20},
	} {
		for _, k := range kinds(t, c.q, c.logP, c.parties, 8*c.deviation) {
			w := newWorld(c.q, 33, c.parties, k)
			m := every(c.logP)
			l := w.encryptAll(m, w.gaussian(len(m), c.deviation))
			for to := Outside; int(to) < c.parties; to++ {
				if got := w.plaintexts(t, l, to); !slices.Equal(got, m) {
					t.Errorf("modulus %d, %s, recipient %d: %v, want %v", c.q, describe(k), to, got, m)
				}
			}
		}
	}
}

// Every quorum of the key's holders decrypts.
func TestEveryQuorum(t *testing.T) {
	for _, k := range kinds(t, q53, 4, 3, 1<<20) {
		w := newWorld(q53, 20, 3, k)
		use := w.shamir(t, 5)
		m := every(4)
		l := w.encryptAll(m, w.gaussian(len(m), 1000))
		for _, quorum := range quorums(5, 3) {
			use(quorum)
			if got := w.plaintexts(t, l, 1); !slices.Equal(got, m) {
				t.Errorf("%s, quorum %v: %v", describe(k), quorum, got)
			}
		}
	}
}

// A batch may have one ciphertext, or not fill its last word.
func TestBatches(t *testing.T) {
	for _, k := range kinds(t, q50, 4, 2, 1<<20) {
		for _, n := range []int{1, 2, 63, 64, 65, 200} {
			w := newWorld(q50, 8, 2, k)
			m := w.messages(n)
			if got := w.plaintexts(t, w.encryptAll(m, w.gaussian(n, 1000)), Outside); !slices.Equal(got, m) {
				t.Errorf("%s, %d ciphertexts: %v, want %v", describe(k), n, got, m)
			}
		}
	}
}

// Both forms work with masks that the protocol made.
func TestWithMasksOfTheProtocol(t *testing.T) {
	for _, k := range kinds(t, q53, 4, 3, 1<<20) {
		w := newWorld(q53, 16, 3, k)
		made := roundtest.Lockstep(3, func(s round.Session) (round.Transition[*masks.Batch], error) {
			seed := round.Hash("decrypt test", round.Uint(uint64(s.Self)))
			return masks.Start(masks.Config{
				Session: s, Step: "masks", Kind: k, Count: 500, Sacrifice: 8, Source: sample.NewSource(seed[:]), Workers: 2,
			})
		}).OK(t)
		for part := range 2 { // two batches of the same masks
			m := w.messages(250)
			taken := make([]*masks.Batch, 3)
			for p, b := range made.Results {
				var err error
				if taken[p], err = b.Take(250); err != nil {
					t.Fatal(err)
				}
			}
			out := w.run(w.encryptAll(m, w.gaussian(250, 1<<16)), taken, 2).OK(t)
			if got := w.received(t, out, 2, 250); !slices.Equal(got, m) {
				t.Errorf("%s, part %d: %v", describe(k), part, got)
			}
		}
	}
}

// In the exact form every noise e' in [-Phi/2, Phi/2) is removed, whatever the mask, and noise
// beyond it yields the next message. The modulus is eta, so there is no switch and e' is e.
func TestEdgesOfTheExactForm(t *testing.T) {
	for _, logPhi := range []int{1, 2, 3, 5, 6, 7} {
		k := masks.Kind{Form: masks.Exact, LogEta: logPhi + 4, LogPhi: logPhi}
		w := newWorld(1<<k.LogEta, 3, 2, k)
		half := int64(1) << (logPhi - 1)
		var m, want, rho []uint64
		var e []int64
		for noise := -half - 1; noise <= half; noise++ {
			for r := range uint64(1) << logPhi {
				message := w.random.Uint64N(16)
				m, e, rho = append(m, message), append(e, noise), append(rho, r)
				switch noise {
				case -half - 1:
					message--
				case half:
					message++
				}
				want = append(want, message%16)
			}
		}
		out := w.run(w.encryptAll(m, e), w.deal(t, rho), 0).OK(t)
		if got := w.received(t, out, 0, len(m)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", describe(k), got, want)
		}
	}
}

// The exact form decrypts every message with the largest noise of the stated bound, of either sign,
// at moduli that need a switch.
func TestWorstNoiseOfTheExactForm(t *testing.T) {
	for _, q := range []uint64{q20, q50, q53} {
		for _, parties := range []int{2, 4, 7} {
			for _, logPhi := range []int{4, 6} {
				k := masks.Kind{Form: masks.Exact, LogEta: logPhi + 4, LogPhi: logPhi}
				worst := int64(MaxNoise(k, q, parties))
				if worst < 1 {
					t.Fatalf("no noise is allowed for %d parties", parties)
				}
				w := newWorld(q, 10, parties, k)
				var m []uint64
				var e []int64
				for i := range uint64(512) {
					m, e = append(m, i%16), append(e, worst-2*worst*int64(i/16%2))
				}
				if got := w.plaintexts(t, w.encryptAll(m, e), Outside); !slices.Equal(got, m) {
					t.Errorf("modulus %d, %d parties, %s, noise %d: %v", q, parties, describe(k), worst, got)
				}
			}
		}
	}
}

// In the paper's form masks at the ends of the interval, which are sums with the sign extended,
// work. One step beyond the interval the plaintext is off by one in the direction of the noise.
func TestEdgesOfThePaperForm(t *testing.T) {
	k := masks.Kind{Form: masks.Paper, LogEta: 12, LogPhi: 8}
	w := newWorld(1<<12, 3, 3, k)
	const least, most = 1<<12 - 128, 127 // -Phi/2 modulo eta, Phi/2 - 1
	var m, want, r []uint64
	var e []int64
	for _, c := range []struct {
		mask  uint64
		noise int64
		off   uint64
	}{
		{least, 0, 0}, {least, 1, 0}, {least, 127, 0}, {least, -1, 15}, {least, -100, 15}, {most, 0, 0}, {most, -1, 0},
		{most, -128, 0}, {most, 1, 1}, {most, 100, 1}, {0, 127, 0}, {0, -128, 0}, {1<<12 - 1, -127, 0},
		{1<<12 - 1, -128, 15}, {1, 127, 1},
	} {
		for message := range uint64(16) {
			m, e, r, want = append(m, message), append(e, c.noise), append(r, c.mask), append(want, (message+c.off)%16)
		}
	}
	out := w.run(w.encryptAll(m, e), w.deal(t, r), 2).OK(t)
	if got := w.received(t, out, 2, len(m)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// With deliberately large noise, the paper's form fails as often as predicted and in the direction
// of the noise. The exact form with the same Phi does not fail.
func TestFailuresOfThePaperForm(t *testing.T) {
	const count = 20000
	for _, c := range []struct {
		q         uint64
		deviation float64
		logPhi    int
	}{{1 << 20, 20, 16}, {1 << 14, 20, 10}, {1 << 10, 4, 6}, {q20, 1000, 16}, {q53, 1 << 40, 49}} {
		k := PaperKind(c.q, 4)
		if k.LogPhi != c.logPhi && c.q != q20 {
			t.Fatalf("%v", k)
		}
		w := newWorld(c.q, 4, 2, k)
		m, e := w.messages(count), w.gaussian(count, c.deviation)
		l := w.encryptAll(m, e)
		failed, wrong := 0, 0
		for i, got := range w.plaintexts(t, l, Outside) {
			if got == m[i] {
				continue
			}
			failed++
			if up := (got-m[i])%16 == 1; up != (e[i] > 0) || !up && (m[i]-got)%16 != 1 {
				wrong++
			}
		}
		want := count * FailureProbability(k, c.q, 2, c.deviation*c.deviation)
		if math.Abs(float64(failed)-want) > 6*math.Sqrt(want)+1 {
			t.Errorf("modulus %d: %d failures, predicted %.1f", c.q, failed, want)
		}
		if wrong > failed/50+1 { // the roundings may change the sign of a small noise
			t.Errorf("modulus %d: %d of %d failures are in the other direction", c.q, wrong, failed)
		}
		if k.LogPhi > 16 {
			continue
		}
		w.Kind.Form = masks.Exact
		if got := w.plaintexts(t, l, Outside); !slices.Equal(got, m) {
			t.Errorf("modulus %d: the exact form fails", c.q)
		}
	}
	// Ajax gives 2^-30.27, for noise with standard deviation 2^19.05 at its parameters.
	if p := math.Log2(FailureProbability(PaperKind(q53, 4), q53, 2, math.Exp2(2*19.055))); math.Abs(p+30.27) > 0.01 {
		t.Errorf("2^%.3f", p)
	}
	if p := FailureProbability(PaperKind(1<<50, 4), 1<<50, 2, 0); p != 0 {
		t.Error(p)
	}
	// With this noise the plaintext is random.
	if p := FailureProbability(PaperKind(q20, 4), q20, 2, math.Exp2(60)); p < 0.99 || p > 1 {
		t.Error(p)
	}
}

func TestMasksAreSpent(t *testing.T) {
	for _, k := range kinds(t, q50, 4, 2, 1<<20) {
		w := newWorld(q50, 8, 2, k)
		m := w.messages(10)
		l := w.encryptAll(m, w.gaussian(10, 10))
		batches := w.deal(t, w.uniform(10))
		w.run(l, batches, 0).OK(t)
		for p, err := range w.run(l, batches, 0).Errors {
			if !errors.Is(err, masks.ErrSpent) {
				t.Errorf("party %d used masks twice: %v", p, err)
			}
		}
		// A failed run has spent its masks too.
		bad := slices.Clone(l)
		bad[3].b = q50
		batches = w.deal(t, w.uniform(10))
		for p, err := range w.run(bad, batches, 0).Errors {
			if !errors.Is(err, ErrCiphertext) {
				t.Errorf("party %d: %v", p, err)
			}
		}
		for _, err := range w.run(l, batches, 0).Errors {
			if !errors.Is(err, masks.ErrSpent) {
				t.Error(err)
			}
		}
	}
}

func TestConfigurationsAreRefused(t *testing.T) {
	k := PaperKind(q50, 4)
	w := newWorld(q50, 8, 2, k)
	l := w.encryptAll(w.messages(10), w.gaussian(10, 10))
	other := newWorld(q50, 8, 2, masks.Kind{Form: masks.Paper, LogEta: 49, LogPhi: 45})
	form := newWorld(q50, 8, 2, masks.Kind{Form: masks.Exact, LogEta: 10, LogPhi: 6})
	for _, c := range []struct {
		name   string
		want   error
		change func(*Config)
	}{
		{"another eta", ErrKind, func(c *Config) { c.Masks = other.deal(t, other.uniform(10))[0] }},
		{"another form", ErrKind, func(c *Config) { c.Masks = form.deal(t, form.uniform(10))[0] }},
		{"too few masks", ErrKind, func(c *Config) { c.Masks = w.deal(t, w.uniform(9))[0] }},
		{"too many masks", ErrKind, func(c *Config) { c.Masks = w.deal(t, w.uniform(11))[0] }},
		{"a longer key", ErrParams, func(c *Config) { c.Secret = make([]uint64, 9) }},
		{"another quorum", ErrParams, func(c *Config) { c.Session.Parties = 3 }},
		{"no such recipient", ErrParams, func(c *Config) { c.Recipient = 2 }},
		{"no recipient", ErrParams, func(c *Config) { c.Recipient = -2 }},
		{"invalid parameters", ErrParams, func(c *Config) { c.Params.LogP = 3 }},
		{"no masks", nil, func(c *Config) { c.Masks = nil }},
		{"no ciphertexts", nil, func(c *Config) { c.Ciphertexts = list{} }},
	} {
		batch := w.deal(t, w.uniform(10))[0]
		cfg := Config{
			Session: round.Session{Parties: 2}, Step: "test", Params: w.Params, Ciphertexts: l,
			Secret: w.shares[0], Masks: batch,
		}
		c.change(&cfg)
		before := 0
		if cfg.Masks != nil {
			before = cfg.Masks.Count()
		}
		if _, err := Start(cfg); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if cfg.Masks != nil && cfg.Masks.Count() != before {
			t.Errorf("%s: the masks are spent", c.name)
		}
	}
	short := slices.Clone(l)
	short[7].a = short[7].a[1:]
	for _, err := range w.run(short, w.deal(t, w.uniform(10)), 0).Errors {
		if !errors.Is(err, ErrCiphertext) || !strings.Contains(err.Error(), "ciphertext 7") {
			t.Error(err)
		}
	}
}

func TestResultsAreNotShown(t *testing.T) {
	r := &Result{Messages: []uint64{3, 4}, Answer: []byte{5}}
	if s := fmt.Sprintf("%v %+v %x %s", r, r, r, r); strings.ContainsAny(s, "345") {
		t.Error(s)
	}
	r.Wipe()
	if slices.Max(r.Messages) != 0 || !bytes.Equal(r.Answer, []byte{0}) {
		t.Error("the result was not erased")
	}
}
