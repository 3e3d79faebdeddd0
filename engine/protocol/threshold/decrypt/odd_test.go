package decrypt

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// These tests have plaintexts modulo an odd number.

// oddKind returns the smallest kind for noise up to bound.
func oddKind(t testing.TB, q, p uint64, parties int, bound float64) masks.Kind {
	t.Helper()
	k, err := ExactOddKind(q, p, parties, bound)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestOddPlaintexts(t *testing.T) {
	for _, c := range []struct {
		q, p    uint64
		parties int
	}{{q20, 3, 2}, {q50, 257, 3}, {q53, 65537, 2}, {q53, 65537, 4}, {q53, 2130706433, 7}, {1<<61 - 1, 1<<45 - 1, 3}} {
		bound := float64(c.q) / float64(c.p) / 64
		k := oddKind(t, c.q, c.p, c.parties, bound)
		w := newWorld(c.q, 33, c.parties, k)
		m, e := w.messages(130), w.gaussian(130, bound/8)
		for i := range 8 { // the ends of both ranges
			m[i], e[i] = []uint64{0, 1, c.p - 1, c.p / 2}[i%4], int64(bound)-int64(i/4)*2*int64(bound)
		}
		l := w.encryptAll(m, e)
		for to := Outside; int(to) < c.parties; to++ {
			if got := w.plaintexts(t, l, to); !slices.Equal(got, m) {
				t.Errorf("modulus %d, %s, recipient %d: %v, want %v", c.q, describe(k), to, got, m)
			}
		}
	}
}

// Schemes that multiply messages by 1/p have phases of other messages, off by less than one.
func TestPhasesOfInverses(t *testing.T) {
	const p = 65537
	for _, parties := range []int{2, 4} {
		k := oddKind(t, q50, p, parties, 1<<20)
		w := newWorld(q50, 9, parties, k)
		q := new(big.Int).SetUint64(q50)
		inverse := new(big.Int).ModInverse(big.NewInt(p), q)
		scale := new(big.Int).ModInverse(q, big.NewInt(p)) // the parties open -m/Q mod p
		scale.Sub(big.NewInt(p), scale)
		var l list
		var want []uint64
		for i := range int64(200) {
			m := i * 331 % p
			c := w.encrypt(0, (1<<20)*(1-2*(i%2)))
			phase := new(big.Int).Mul(inverse, big.NewInt(m))
			c.b = phase.Add(phase, new(big.Int).SetUint64(c.b)).Mod(phase, q).Uint64()
			l = append(l, c)
			mu := new(big.Int).Mul(scale, big.NewInt(m))
			want = append(want, mu.Mod(mu, big.NewInt(p)).Uint64())
		}
		if got := w.plaintexts(t, l, Outside); !slices.Equal(got, want) {
			t.Errorf("%d parties: %v, want %v", parties, got, want)
		}
	}
}

// MaxNoise is tight: the largest noise that it allows decrypts, and the next smaller kind does not
// allow it.
func TestWorstNoiseOfOddPlaintexts(t *testing.T) {
	for _, q := range []uint64{q20, q50, q53} {
		for _, parties := range []int{2, 4, 7} {
			k := masks.OddKind(257, 5)
			worst := int64(MaxNoise(k, q, parties))
			if k := oddKind(t, q, 257, parties, float64(worst)); k.LogPhi != 5 {
				t.Errorf("%d bits of Phi suffice for noise %d", k.LogPhi, worst)
			}
			w := newWorld(q, 10, parties, k)
			var m []uint64
			var e []int64
			for i := range uint64(514) {
				m, e = append(m, i%257), append(e, worst-2*worst*int64(i/257%2))
			}
			if got := w.plaintexts(t, w.encryptAll(m, e), Outside); !slices.Equal(got, m) {
				t.Errorf("modulus %d, %d parties, noise %d: %v", q, parties, worst, got)
			}
		}
	}
	for _, bound := range []float64{float64(q50) / 256, math.Inf(1)} {
		if k, err := ExactOddKind(q50, 257, 2, bound); !errors.Is(err, ErrParams) {
			t.Errorf("%g: %v, %v", bound, k, err)
		}
	}
	odd := Params{Modulus: 1 << 50, Dimension: 8, LogP: 9, Parties: 2, Kind: masks.OddKind(257, 4)}
	if err := odd.Check(); !errors.Is(err, ErrParams) {
		t.Errorf("modulo a power of two: %v", err)
	}
}

func TestOddSwitch(t *testing.T) {
	w := newWorld(q53, 1, 2, masks.OddKind(65537, 3))
	s, err := newSwitcher(w.Params)
	if err != nil {
		t.Fatal(err)
	}
	eta, q := new(big.Int).SetUint64(w.Kind.Eta()), new(big.Int).SetUint64(q53)
	for i := range uint64(2000) {
		for _, u := range []uint64{i, q53 - 1 - i, w.random.Uint64N(q53)} {
			v := new(big.Int).Mul(eta, new(big.Int).SetUint64(u))
			v.Add(v, new(big.Int).SetUint64(q53/2)).Div(v, q).Mod(v, eta)
			if got := s.round(u); got != v.Uint64() {
				t.Fatalf("%d: %d, want %v", u, got, v)
			}
		}
	}
}

// Decryption works with masks that the protocol made, for a comparison of one bit and of many.
func TestOddMasksOfTheProtocol(t *testing.T) {
	for _, k := range []masks.Kind{masks.OddKind(65537, 3), masks.OddKind(257, 8)} {
		w := newWorld(q53, 16, 3, k)
		made := roundtest.Lockstep(3, func(s round.Session) (round.Transition[*masks.Batch], error) {
			seed := round.Hash("decrypt odd test", round.Uint(uint64(s.Self)))
			return masks.Start(masks.Config{
				Session: s, Step: "masks", Kind: k, Count: 250, Sacrifice: 8, Source: sample.NewSource(seed[:]), Workers: 2,
			})
		}).OK(t)
		m := w.messages(250)
		out := w.run(w.encryptAll(m, w.gaussian(250, 1<<20)), made.Results, 2).OK(t)
		if got := w.received(t, out, 2, 250); !slices.Equal(got, m) {
			t.Errorf("%s: %v", describe(k), got)
		}
	}
}

// The opened values and each party's answer to the recipient are uniform, whatever the noise.
func TestOpenedIsUniformForOddPlaintexts(t *testing.T) {
	const count = 20000
	k := masks.OddKind(31, 4)
	for _, noise := range []int64{-7, 0, 7} { // residues modulo Q = eta 2039 contain 1/2039 of e'
		const q = 31 * 16 * 2039 // before the switch the modulus is odd: q + 1 is about eta 2039
		w := newWorld(q+1, 1, 2, k)
		m, e := make([]uint64, count), make([]int64, count)
		for i := range m {
			m[i], e[i] = 5, noise*2039
		}
		out := w.run(w.encryptAll(m, e), w.deal(t, w.uniform(count)), 0, roundtest.Record()).OK(t)
		parts := func(from, to round.Party, name string, width int) []uint64 {
			v := make([]uint64, count)
			message := slices.Concat(out.Recording.Frames(from, to, "test/"+name)...)
			if _, err := unpack(v, message, width, round.Digest{}); err != nil {
				t.Fatal(err)
			}
			return v
		}
		what := fmt.Sprintf("noise %d: ", noise)
		uniform(t, what+"answer", parts(1, 0, "answer", k.LogEta), 31*16)
		v := parts(1, 0, "masked", 4)
		for i, x := range parts(0, 1, "masked", 4) {
			v[i] = (v[i] + x) % 16
		}
		uniform(t, what+"v", v, 16)
		// v together with the masked carry
		for i := range v {
			v[i] *= 2
		}
		for from := range round.Party(2) {
			for i, b := 0, slices.Concat(out.Recording.Frames(from, 1-from, "test/carry")...); i < count; i++ {
				v[i] ^= uint64(b[i/8]>>(i%8)) & 1
			}
		}
		uniform(t, what+"v and carry", v, 32)
	}
}

// An answer of the right length with a word that is not a residue is malformed, in the quorum and
// outside.
func TestAnswersAreResidues(t *testing.T) {
	w := newWorld(q50, 8, 3, masks.OddKind(257, 3)) // residues below 2056 in 12 bits
	l := w.encryptAll(w.messages(10), w.gaussian(10, 10))
	large := func(_ *roundtest.View, frames [][]byte) [][]byte {
		frames[0][headerSize] |= 0xff
		frames[0][headerSize+1] |= 0x0f
		return frames
	}
	named(t, w.run(l, w.deal(t, w.uniform(10)), 2, roundtest.Link(1, 2, "test/answer", large)), 2, 1, round.CheckShape)
	var answers [][]byte
	for _, r := range w.run(l, w.deal(t, w.uniform(10)), Outside).OK(t).Results {
		answers = append(answers, r.Answer)
	}
	large(nil, answers[1:2])
	if _, err := Combine(w.Params, 10, answers); !errors.Is(err, ErrAnswers) {
		t.Error(err)
	}
}

// The words of stored answers sum to the same plaintexts as the answers, for both sorts of
// plaintext modulus.
func TestSumsOfWords(t *testing.T) {
	for _, k := range []masks.Kind{masks.OddKind(257, 3), PaperKind(q50, 4)} {
		w := newWorld(q50, 8, 3, k)
		m := w.messages(40)
		var parts [][]uint64
		for _, r := range w.run(w.encryptAll(m, w.gaussian(40, 10)), w.deal(t, w.uniform(40)), Outside).OK(t).Results {
			_, words, err := Values(w.Params, 40, r.Answer)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, words)
		}
		if got, err := Sum(w.Params, parts); err != nil || !slices.Equal(got, m) {
			t.Errorf("%s: %v, %v", describe(k), got, err)
		}
		parts[1][3] += k.Eta()
		if _, err := Sum(w.Params, parts); !errors.Is(err, ErrAnswers) {
			t.Errorf("%s: a word that is not a residue: %v", describe(k), err)
		}
	}
}
