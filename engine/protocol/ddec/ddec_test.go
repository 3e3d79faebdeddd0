package ddec

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// world has n parties' keys and a list of ciphertexts with their messages.
type world struct {
	n        int
	scheme   *gbfv.Scheme
	instance *params.Instance
	key      *gbfvtest.Key
	full     []*gbfv.Ciphertext // on basis Q
	switched []*gbfv.Ciphertext
	messages []field.Vec
}

func newWorld(t testing.TB, setName, fieldName string, n, count int) *world {
	t.Helper()
	set, err := params.Lookup(setName)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field(fieldName)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{n: n}
	if w.scheme, err = gbfv.New(set, spec); err != nil {
		t.Fatal(err)
	}
	if w.instance, err = params.Resolve(set, fieldName, params.Use{Parties: n, Dim: 1, U: 2}); err != nil {
		t.Fatal(err)
	}
	w.key = gbfvtest.New(w.scheme, n, 1, bytes.Repeat([]byte{byte(n)}, 32))
	for i := range count {
		m := w.key.Random(uint64(i))
		ct := w.key.Encrypt(m, uint64(i))
		w.messages, w.full = append(w.messages, m), append(w.full, ct)
		w.switched = append(w.switched, w.scheme.SwitchModulus(ct, w.instance.DDecPrimes))
	}
	return w
}

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("ddec test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

func (w *world) run(options ...roundtest.Option) *roundtest.Outcome[Shares] {
	return roundtest.Lockstep(w.n, func(s round.Session) (round.Transition[Shares], error) {
		return Start(Config{
			Session: s, Step: "test", Scheme: w.scheme, Instance: w.instance, Ciphertexts: w.switched,
			Secret: w.key.Shares[s.Self], Source: source("run", s.Self), Workers: 2,
		})
	}, options...)
}

// sum returns the sum of the parties' shares of ciphertext k.
func (w *world) sum(results []Shares, k int) field.Vec {
	total := w.scheme.Field.NewVec(w.scheme.Slots())
	for _, r := range results {
		w.scheme.Field.AddVec(total, total, r[k])
	}
	return total
}

func TestSharesOfMessages(t *testing.T) {
	for _, set := range []struct{ set, field string }{{"insecure-8", "p128"}, {"insecure-8-64", "p256"}} {
		for _, n := range []int{2, 3, 5} {
			for _, count := range []int{1, 2, 7} { // fewer ciphertexts than parties, and more
				w := newWorld(t, set.set, set.field, n, count)
				out := w.run(roundtest.Record())
				out.OK(t)
				for k := range count {
					if !w.scheme.Field.EqualVec(w.sum(out.Results, k), w.messages[k]) {
						t.Errorf("%s, %d parties: shares of ciphertext %d of %d do not add up to its message", set.set, n, k, count)
					}
					for p, r := range out.Results {
						if w.scheme.Field.EqualVec(r[k], w.messages[k]) {
							t.Errorf("party %d has message %d", p, k)
						}
					}
				}
				w.checkTraffic(t, out, count)
			}
		}
	}
}

// Only party k mod n receives the messages for ciphertext k.
func (w *world) checkTraffic(t *testing.T, out *roundtest.Outcome[Shares], count int) {
	t.Helper()
	size := codec.PolySize(w.scheme.N(), w.scheme.Prefix(w.instance.DDecPrimes).Primes())
	for to := range round.Party(w.n) {
		want := 0
		for k := range count {
			if k%w.n == int(to) {
				want++
			}
		}
		for from := range round.Party(w.n) {
			frames := out.Recording.Frames(from, to, "test/share")
			if from == to {
				continue
			}
			if len(frames) != want {
				t.Errorf("%d parties: party %d sends %d frames to party %d, want %d", w.n, from, len(frames), to, want)
			}
			for _, f := range frames {
				if len(f) != size {
					t.Errorf("a frame of %d bytes, want %d", len(f), size)
				}
			}
		}
	}
}

// The result is right for every phase error within its bound and all floods within theirs. Floods
// of twice the size are too large for q'. The test's ciphertext has the largest error in every
// coefficient.
func TestLargestNoise(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newWorld(t, "insecure-8", "p128", n, 1)
		s, k := w.scheme, w.instance.DDecPrimes
		b := s.Prefix(k)
		zero := s.Field.NewVec(s.Slots())
		// signs returns a polynomial of +-bound with signs that differ in every way between x_k and
		// x_{k-D}.
		signs := func(bound *big.Int, pattern int) intpoly.Poly {
			p := intpoly.New(s.N(), (bound.BitLen()+65)/64)
			for i := range s.N() {
				v := new(big.Int).Set(bound)
				if (i/s.Slots())*pattern%2 == 1 || pattern == 2 {
					v.Neg(v)
				}
				p.SetBig(i, v)
			}
			return p
		}
		for pattern := range 3 {
			c1 := b.NewPoly()
			sample.Expand(c1.C, b.Primes(), bytes.Repeat([]byte{7}, 32), "c1")
			phase, errs := b.NewPoly(), b.NewPoly()
			coeffs := s.Field.NewVec(s.Slots())
			s.Pack.Pack(coeffs, w.messages[0])
			s.ScalePlain(phase, coeffs, k)
			b.FromInt(errs, signs(w.instance.PhaseBound, pattern))
			b.Add(phase, phase, errs)
			product := b.NewPoly()
			s.Phase(product, &gbfv.Ciphertext{C0: b.NewPoly(), C1: c1}, w.key.Secret, k)
			c0 := b.NewPoly()
			b.Sub(c0, phase, product)
			decrypt := func(flood *big.Int) field.Vec {
				sum, d := b.NewPoly(), b.NewPoly()
				for p := range n {
					mask := zero
					if p == 0 {
						mask = s.Field.NewVec(s.Slots())
						s.Pack.Pack(mask, w.messages[0])
					}
					s.DecryptionShare(d, c1, w.key.Shares[p], signs(flood, pattern), mask, k)
					b.Add(sum, sum, d)
				}
				slots := s.Field.NewVec(s.Slots())
				decode(s, w.instance, slots, c0, sum)
				return slots
			}
			want := s.Field.NewVec(s.Slots())
			s.Field.AddVec(want, w.messages[0], w.messages[0])
			if got := decrypt(w.instance.FloodBound); !s.Field.EqualVec(got, want) {
				t.Errorf("%d parties, signs %d: the largest noise changes the result", n, pattern)
			}
			if got := decrypt(new(big.Int).Lsh(w.instance.FloodBound, 1)); pattern == 1 && s.Field.EqualVec(got, want) {
				t.Errorf("%d parties: floods of twice the size decrypt correctly", n)
			}
		}
	}
}

// A corrupted message adds an error to the sum of the shares that its sender knows. This protocol
// does not detect it; the MAC check that follows does.
func TestACorruptedShareIsAKnownError(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newWorld(t, "insecure-8", "p128", n, 3)
		s := w.scheme
		delta, coeffs := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
		if err := s.Field.Random(delta, source("error", 0).Stream("delta")); err != nil {
			t.Fatal(err)
		}
		s.Pack.Pack(coeffs, delta)
		h := byzantine.On(byzantine.New(), "test/share", func(messages []ring.Poly) {
			b := s.Prefix(w.instance.DDecPrimes)
			p := b.NewPoly()
			s.ScalePlain(p, coeffs, b.Len())
			b.Add(messages[0], messages[0], p)
		})
		out := w.run(roundtest.Cheat(round.Party(n-1), h)).OK(t)
		want := s.Field.NewVec(s.Slots())
		s.Field.AddVec(want, w.messages[0], delta)
		if !s.Field.EqualVec(w.sum(out.Results, 0), want) || h.Fired("test/share") != 1 {
			t.Errorf("%d parties: the sum of the shares is not the message plus the error", n)
		}
		for k := 1; k < 3; k++ {
			if !s.Field.EqualVec(w.sum(out.Results, k), w.messages[k]) {
				t.Errorf("%d parties: ciphertext %d changes too", n, k)
			}
		}
	}
}

func TestMalformedSharesAreBlamed(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newWorld(t, "insecure-8", "p128", n, 2*n)
		culprit := round.Party(n - 1)
		primes := w.scheme.Prefix(w.instance.DDecPrimes).Primes()
		size := codec.PolySize(w.scheme.N(), primes)
		for _, c := range []struct {
			name  string
			edit  roundtest.Edit
			check string
		}{
			{"a residue of q", edited(0, residue(primes[0])), round.CheckShape},
			{"a residue of q in the last frame", edited(1, residue(primes[0])), round.CheckShape},
			{"all ones", edited(0, func(f []byte) []byte { return bytes.Repeat([]byte{0xff}, len(f)) }), round.CheckShape},
			{"cut short", roundtest.Truncate(1), round.CheckShape},
			{"one byte more", edited(0, func(f []byte) []byte { return append(f, 0) }), round.CheckShape},
			{"one byte more in the last frame", roundtest.Extend(1), round.CheckSize},
			{"an empty frame", edited(0, func([]byte) []byte { return nil }), round.CheckShape},
			{"one frame more", roundtest.ExtraFrame(nil), round.CheckShape},
			{"one full frame more", roundtest.ExtraFrame(make([]byte, size)), round.CheckShape},
			{"one frame less", func(_ *roundtest.View, frames [][]byte) [][]byte { return frames[:1] }, round.CheckShape},
		} {
			t.Run(fmt.Sprint(c.name, ", ", n, " parties"), func(t *testing.T) {
				out := w.run(roundtest.Cheat(culprit, byzantine.New()), roundtest.Link(culprit, 0, "test/share", c.edit))
				var blame *round.Blame
				if !errors.As(out.Errors[0], &blame) || blame.Party != culprit || blame.Check != c.check {
					t.Errorf("the combiner returned %v, want blame of party %d for %s", out.Errors[0], culprit, c.check)
				}
			})
		}
		var stalled *roundtest.Stalled
		if err := w.run(roundtest.Link(culprit, 0, "test/share", roundtest.Drop)).Errors[0]; !errors.As(err, &stalled) || stalled.Missing[0].From != culprit {
			t.Errorf("%d parties: without a share the combiner returned %v", n, err)
		}
	}
}

func edited(index int, change func([]byte) []byte) roundtest.Edit {
	return func(_ *roundtest.View, frames [][]byte) [][]byte {
		frames[index] = change(frames[index])
		return frames
	}
}

// residue replaces the first residue by q.
func residue(q uint64) func([]byte) []byte {
	return func(f []byte) []byte {
		width := new(big.Int).SetUint64(q).BitLen()
		for bit := range width {
			f[bit/8] = f[bit/8]&^(1<<(bit%8)) | byte(q>>bit&1)<<(bit%8)
		}
		return f
	}
}

func TestStartRefuses(t *testing.T) {
	w := newWorld(t, "insecure-8", "p128", 2, 1)
	good := Config{Session: round.Session{Parties: 2}, Scheme: w.scheme, Instance: w.instance, Ciphertexts: w.switched, Source: source("x", 0)}
	for name, change := range map[string]func(c *Config){
		"scheme":       func(c *Config) { c.Scheme = nil },
		"instance":     func(c *Config) { c.Instance = nil },
		"source":       func(c *Config) { c.Source = nil },
		"ciphertexts":  func(c *Config) { c.Ciphertexts = nil },
		"more parties": func(c *Config) { c.Session.Parties = 3 },
	} {
		c := good
		change(&c)
		if _, err := Start(c); err == nil {
			t.Errorf("accepted a configuration without %s", name)
		}
	}
}

// client returns the parties' answers to a client that requests the first ciphertext.
func (w *world) client() (messages [][]byte) {
	for p := range w.n {
		messages = append(messages, ClientShare(w.scheme, w.instance, w.full[0], w.key.Shares[p], source("client", round.Party(p))))
	}
	return messages
}

// Ciphertexts that differ only in bits that the modulus switch drops have the same place in the
// ledger, because their answers would be floods of the same phase. Other ciphertexts have different
// places.
func TestClientKey(t *testing.T) {
	w := newWorld(t, "insecure-8", "p128", 2, 2)
	s := w.scheme
	if w.instance.DDecPrimes == len(s.Q.Primes()) {
		t.Fatal("the modulus switch drops no prime")
	}
	key := func(change func(ct *gbfv.Ciphertext)) round.Digest {
		ct := w.full[0].Clone()
		change(ct)
		return ClientKey(s, w.instance, ct)
	}
	same := key(func(*gbfv.Ciphertext) {})
	plus := func(i, k int) func(ct *gbfv.Ciphertext) {
		return func(ct *gbfv.Ciphertext) {
			for l, q := range s.Q.Primes() {
				ct.C1.C[l][i] = (ct.C1.C[l][i] + uint64(k)) % q
			}
		}
	}
	for i := range s.N() {
		if key(plus(i, 1)) != same {
			t.Errorf("adding one to coefficient %d changes the place", i)
		}
	}
	for name, change := range map[string]func(ct *gbfv.Ciphertext){
		"another residue":    func(ct *gbfv.Ciphertext) { ct.C1.C[0][3] = (ct.C1.C[0][3] + 1) % s.Q.Primes()[0] },
		"another ciphertext": func(ct *gbfv.Ciphertext) { *ct = *w.full[1] },
	} {
		if key(change) == same {
			t.Errorf("%s has the same place", name)
		}
	}
	if key(func(ct *gbfv.Ciphertext) { ct.C0 = w.full[1].C0 }) != same {
		t.Error("the place depends on c0, although an answer does not")
	}
}

func TestClient(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newWorld(t, "insecure-8", "p128", n, 1)
		messages := w.client()
		got, err := Combine(w.scheme, w.instance, w.full[0], messages)
		if err != nil || !w.scheme.Field.EqualVec(got, w.messages[0]) {
			t.Fatalf("%d parties: wrong message, %v", n, err)
		}
		for p, again := range w.client() {
			if !bytes.Equal(again, messages[p]) {
				t.Error("a party's message depends on more than its inputs")
			}
		}

		wrong := bytes.Clone(messages[n-1])
		wrong[0] ^= 1 // one residue of one coefficient
		got, err = Combine(w.scheme, w.instance, w.full[0], append(messages[:n-1:n-1], wrong))
		if err != nil || w.scheme.Field.EqualVec(got, w.messages[0]) {
			t.Errorf("%d parties: a wrong share does not change the message, %v", n, err)
		}
		got, err = Combine(w.scheme, w.instance, w.full[0], append(messages[:n-1:n-1], messages[0]))
		if err != nil || w.scheme.Field.EqualVec(got, w.messages[0]) {
			t.Errorf("%d parties: using one share twice yields the message, %v", n, err)
		}
		if _, err = Combine(w.scheme, w.instance, w.full[0], messages[:n-1]); err == nil {
			t.Errorf("%d parties: got a result without the last share", n)
		}
		q := w.scheme.Q.Primes()[0]
		for name, bad := range map[string][]byte{
			"nothing":        nil,
			"cut short":      messages[n-1][:len(messages[n-1])-1],
			"one byte more":  append(bytes.Clone(messages[n-1]), 0),
			"a residue of q": residue(q)(bytes.Clone(messages[n-1])),
		} {
			_, err := Combine(w.scheme, w.instance, w.full[0], append(messages[:n-1:n-1], bad))
			var blame *round.Blame
			if !errors.As(err, &blame) || blame.Party != round.Party(n-1) || blame.Check != round.CheckShape {
				t.Errorf("%s: %v, want blame of the last party", name, err)
			}
		}
	}
}
