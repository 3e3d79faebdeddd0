package triple

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// The ciphertext of a MAC key has the sum of all shares in every slot.
func TestMACKeys(t *testing.T) {
	for _, n := range []int{2, 3} {
		w := newNetwork(t, "insecure-8", "p128", n, 1)
		s, f := w.scheme, w.scheme.Field
		secret, alpha := s.Q.NewNTT(), f.NewElement()
		for p, m := range w.macs {
			s.Q.AddNTT(secret, secret, keygen.Lift(s, w.keys[p].Secret))
			f.Add(alpha, alpha, m.Share.At(0))
			if m.Share.Len() != 1 || !m.Ciphertext.Equal(w.macs[0].Ciphertext) {
				t.Errorf("party %d has another ciphertext, or not one share", p)
			}
		}
		got, want := f.NewVec(s.Slots()), f.NewVec(s.Slots())
		f.Fill(want, alpha)
		if s.Decrypt(got, w.macs[0].Ciphertext, secret); !f.EqualVec(got, want) {
			t.Errorf("%d parties: slots differ from the sum of the shares", n)
		}
	}
}

func TestCiphertextsAreStoredAndRead(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	frames := EncodeCiphertext(w.scheme, w.macs[0].Ciphertext)
	again, err := DecodeCiphertext(w.scheme, frames)
	if err != nil || !again.Equal(w.macs[0].Ciphertext) {
		t.Fatalf("a ciphertext changes when it is stored: %v", err)
	}
	for i := range frames {
		for name, c := range map[string]struct {
			frame []byte
			want  error
		}{
			"nothing":   {nil, codec.ErrTruncated},
			"cut short": {frames[i][1:], codec.ErrTruncated},
			"too long":  {append(bytes.Clone(frames[i]), 0), codec.ErrTrailing},
			"all ones":  {bytes.Repeat([]byte{0xff}, len(frames[i])), codec.ErrRange},
		} {
			bad := frames
			bad[i] = c.frame
			if _, err := DecodeCiphertext(w.scheme, bad); !errors.Is(err, c.want) {
				t.Errorf("%s in frame %d: %v, want %v", name, i, err, c.want)
			}
		}
	}
}

func TestAgreeOnMACKey(t *testing.T) {
	a, b, none := round.Digest{1}, round.Digest{2}, round.Digest{}
	agree := func(held []round.Digest, options ...roundtest.Option) *roundtest.Outcome[bool] {
		return roundtest.Lockstep(len(held), func(s round.Session) (round.Transition[bool], error) {
			return AgreeOnMACKey(s, held[s.Self]), nil
		}, options...)
	}
	for _, c := range []struct {
		held []round.Digest
		want bool
	}{
		{[]round.Digest{a, a}, true},
		{[]round.Digest{a, b}, false},
		{[]round.Digest{a, none}, false},
		{[]round.Digest{none, none}, false},
		{[]round.Digest{a, a, a}, true},
		{[]round.Digest{a, a, b}, false},
		{[]round.Digest{none, a, a}, false},
	} {
		out := agree(c.held).OK(t)
		for p, got := range out.Results {
			if got != c.want {
				t.Errorf("%v: party %d says %v", c.held, p, got)
			}
		}
	}
	agree([]round.Digest{a, a}, roundtest.Rewrite(1, nameMACKey, roundtest.Truncate(1))).Blamed(t, 1, round.CheckShape)
	// Were it possible, one party would use the key and the other give it up.
	agree([]round.Digest{a, a, a}, roundtest.Link(2, 0, nameMACKey, roundtest.Flip(0))).Aborted(t, 2, round.CheckEcho)
}

func TestPlans(t *testing.T) {
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	const slots = 64 // of p128
	for _, c := range []struct {
		kind   Kind
		shape  Shape
		dim    int
		count  int
		keyDim int
		want   Plan // without instance; Count 0 is a refusal
	}{
		// A mask and three check triples take four slots; squares make a triple of two.
		{Scalar, Shape{}, 0, 1, 1, Plan{Dim: 1, Blocks: 1, Count: slots - 4}},
		{Scalar, Shape{}, 0, slots - 4, 1, Plan{Dim: 1, Blocks: 1, Count: slots - 4}},
		{Scalar, Shape{}, 0, slots - 3, 1, Plan{Dim: 1, Blocks: 2, Count: 2*slots - 4}},
		{Scalar, Shape{}, 0, 1 << 30, 1, Plan{Dim: 1, Blocks: MaxBlocks, Count: MaxBlocks*slots - 4}},
		{Inverse, Shape{}, 0, slots, 1, Plan{Dim: 1, Blocks: 2, Count: 2*slots - 4}},
		{Square, Shape{}, 0, slots - 7, 1, Plan{Dim: 1, Blocks: 1, Count: slots - 7}},
		{Bit, Shape{}, 0, slots - 6, 1, Plan{Dim: 1, Blocks: 2, Count: 2*slots - 7}},
		{Random, Shape{}, 0, slots - 3, 1, Plan{Dim: 1, Blocks: 1, Count: slots - 3}},
		{Scalar, Shape{}, 0, 0, 1, Plan{}},
		{Matrix, Shape{4, 4, 4}, 0, 1, 16, Plan{Dim: 4, Count: slots / 4}},
		{Matrix, Shape{5, 3, 2}, 0, 1, 16, Plan{Dim: 1, Count: slots}},
		{Matrix, Shape{40, 40, 40}, 0, 1, 16, Plan{Dim: 16, Count: slots / 16}}, // no keys for more
		{Matrix, Shape{40, 3, 2}, 0, 1, 16, Plan{Dim: 2, Count: slots / 2}},
		{Matrix, Shape{1, 1, 1}, 0, 1, 16, Plan{Dim: 1, Count: slots}},
		{Matrix, Shape{4, 4, 4}, 2, 1, 16, Plan{Dim: 2, Count: slots / 2}},
		{Matrix, Shape{4, 4, 4}, 3, 1, 16, Plan{}},
		{Matrix, Shape{4, 4, 4}, -2, 1, 16, Plan{}},
		{Matrix, Shape{4, 4, 4}, 32, 1, 16, Plan{}},
		{Matrix, Shape{4, 4, 4}, 128, 1, 128, Plan{}}, // more than there are slots
		{Matrix, Shape{0, 4, 4}, 0, 1, 16, Plan{}},
		{Matrix, Shape{4, -1, 4}, 0, 1, 16, Plan{}},
		{Matrix, Shape{4, 4, 1<<14 + 1}, 0, 1, 16, Plan{}},
		{Matrix, Shape{1 << 14, 1 << 14, 1 << 14}, 1, 1, 16, Plan{}},
		{Input, Shape{}, 0, slots, 1, Plan{Dim: 1, Blocks: 1, Count: slots}},
		{0, Shape{}, 0, 1, 16, Plan{}},
		{Input + 1, Shape{}, 0, 1, 16, Plan{}},
	} {
		p, err := NewPlan(set, "p128", 3, c.kind, matrices(c.shape), c.dim, c.count, c.keyDim)
		if c.want.Count == 0 {
			if err == nil {
				t.Errorf("kind %d, shape %v, dimension %d: accepted", c.kind, c.shape, c.dim)
			}
			continue
		}
		if err != nil {
			t.Errorf("shape %v: %v", c.shape, err)
			continue
		}
		again, err := NewPlan(set, "p128", 3, c.kind, matrices(c.shape), c.dim, c.count, c.keyDim)
		if err != nil || again.Instance.Hash() != p.Instance.Hash() {
			t.Errorf("shape %v: a second plan is another", c.shape)
		}
		if p.Dim != c.want.Dim || p.Blocks != c.want.Blocks || p.Count != c.want.Count || p.MemoryBytes(1) <= 0 || p.MemoryBytes(64) <= p.MemoryBytes(1) {
			t.Errorf("kind %d, shape %v, dimension %d, count %d: %+v", c.kind, c.shape, c.dim, c.count, p)
		}
	}
	if _, err := NewPlan(set, "p3", 3, Scalar, matrices(Shape{}), 0, 1, 1); err == nil {
		t.Error("an unknown field was accepted")
	}
}

func TestStartRefuses(t *testing.T) {
	w := newNetwork(t, "insecure-8", "p128", 2, 1)
	k := w.keys[0]
	good := Config{
		Session: round.Session{Parties: 2}, Plan: w.plan(t, Scalar, Shape{}, 0, 1), Scheme: w.scheme, Keys: k.Keys.Keys(w.scheme),
		Public: k.Keys.Public, Secret: keygen.Lift(w.scheme, k.Secret), MAC: w.macs[0], Source: seed("x", 0), Workers: 1,
	}
	if _, err := Start(good); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(c *Config){
		"plan":                func(c *Config) { c.Plan = nil },
		"scheme":              func(c *Config) { c.Scheme = nil },
		"keys":                func(c *Config) { c.Keys = nil },
		"public key":          func(c *Config) { c.Public = nil },
		"MAC key":             func(c *Config) { c.MAC = MACKey{} },
		"source":              func(c *Config) { c.Source = nil },
		"size of the MAC key": func(c *Config) { c.MAC.Share = w.scheme.Field.NewVec(2) },
		"parties":             func(c *Config) { c.Session.Parties = 3 },
		"owner of triples": func(c *Config) {
			p := *c.Plan
			p.Owner = 1
			c.Plan = &p
		},
		"owner before the first": func(c *Config) { c.Plan = w.inputs(t, -1, 1) },
		"owner after the last":   func(c *Config) { c.Plan = w.inputs(t, 2, 1) },
	} {
		c := good
		change(&c)
		if _, err := Start(c); err == nil {
			t.Errorf("a configuration with a wrong %s was accepted", name)
		}
	}
}

// Cheats of a peer on a MAC key, and the checks that detect them. (Package popk tests cheats inside
// the proof.)
func TestCheatsInAMACKey(t *testing.T) {
	for _, n := range []int{2, 3} {
		w, culprit := newNetwork(t, "insecure-8", "p128", n, 1), round.Party(n-1)
		instance, err := MACKeyInstance(w.set, w.field, n)
		if err != nil {
			t.Fatal(err)
		}
		run := func(options ...roundtest.Option) *roundtest.Outcome[MACKey] {
			return roundtest.Lockstep(n, func(s round.Session) (round.Transition[MACKey], error) {
				k := w.keys[s.Self].Keys
				return StartMACKey(MACKeyConfig{
					Session: s, Scheme: w.scheme, Instance: instance, Public: k.Public, KeyHash: k.PublicHash(w.scheme), Source: seed("cheat", s.Self), Workers: 2,
				})
			}, options...)
		}
		run().OK(t)
		copies := []roundtest.Option{roundtest.Rushing(culprit, &roundtest.View{})}
		for _, name := range []string{"mackey/statement/commit", "mackey/statement/open", "mackey/ciphertexts", "mackey/response"} {
			copies = append(copies, roundtest.Rewrite(culprit, name, roundtest.CopyOf(0, name)))
		}
		run(copies...).Blamed(t, culprit, round.CheckCommitment)
		h := byzantine.On(byzantine.New(), "mackey/challenge", func(fields [][]byte) { fields[0] = make([]byte, 32) })
		run(roundtest.Cheat(culprit, h)).Blamed(t, culprit, popk.CheckEquation)
		run(roundtest.Rewrite(culprit, "mackey/response", roundtest.Flip(0))).Blamed(t, culprit, popk.CheckEquation)
		if n > 2 {
			run(roundtest.Link(culprit, 0, "mackey/statement/open", roundtest.Flip(0))).Aborted(t, culprit, round.CheckEcho)
		}
	}
}
