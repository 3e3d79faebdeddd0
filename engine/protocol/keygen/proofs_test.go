package keygen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// proving returns a prover of party 0 of two, after its statement, and a verifier that waits for
// the proofs of party 1.
func proving(t testing.TB, s *gbfv.Scheme, dim, workers int) (*prover, *proofs) {
	t.Helper()
	ctx, seed := context.Background(), round.Hash("reference string")
	var provers [2]*prover
	var polys [2][]ring.Poly
	for i := range provers {
		c := &Config{
			Session: round.Session{ID: round.Hash("a session"), Self: round.Party(i), Parties: 2, Secrets: new(round.Secrets)},
			Scheme:  s, Dim: dim, Security: Proved, Source: source("proving", round.Party(i)), Workers: workers,
		}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		p, err := newParty(c, seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range c.relinSlots(relinH0, relinH1) {
			polys[i] = append(polys[i], p.share(at))
		}
		provers[i] = &prover{party: p}
	}
	opened := make([][]byte, 2)
	for i := range provers {
		st, err := newStatement(provers[i].party, polys[:])
		if err != nil {
			t.Fatal(err)
		}
		if provers[i], err = newProver(provers[i].party, st); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if opened[0], err = provers[0].commit(ctx); err != nil {
				t.Fatal(err)
			}
		}
	}
	v := provers[1]
	opened[1] = make([]byte, v.digestsSize())
	w, err := v.challenge(v.bound(round.Hash("a transcript")))
	if err != nil {
		t.Fatal(err)
	}
	if err := provers[0].respond(ctx, w); err != nil {
		t.Fatal(err)
	}
	v.own = make([]ring.Poly, len(v.equations))
	for i, at := range v.equations {
		if !at.opened() {
			v.own[i] = s.Q.NewPoly()
		}
	}
	return provers[0], newProofs(v, w, opened, polys[:])
}

// take passes frames to a verifier.
func (r *proofs) take(frames [][]byte, from int) error {
	for i, f := range frames {
		if err := r.Frame(context.Background(), 0, nameProofs, from+i, from+i == r.frames()-1, f); err != nil {
			return err
		}
	}
	return nil
}

// The proofs of all equations, in order, are accepted, and the sums equal the shares.
func TestProofsOfOneParty(t *testing.T) {
	s := testScheme(t, "insecure-8")
	p, v := proving(t, s, 4, 3)
	if err := v.take(p.sent, 0); err != nil || v.blame != nil {
		t.Fatalf("%v, %v", err, v.blame)
	}
	var bytes int64
	for _, f := range p.sent {
		bytes += int64(len(f))
	}
	if bytes != v.bytes() || len(p.sent) != v.frames() {
		t.Errorf("%d bytes in %d frames, want %d in %d", bytes, len(p.sent), v.bytes(), v.frames())
	}
	for i, at := range v.equations {
		if !at.opened() && !v.sums[i].Equal(p.own[i]) {
			t.Errorf("the sum of equation %d differs from the share", i)
		}
	}
}

// Every response is checked: adding one to a coefficient of any response is detected, by the
// equation or by the norm.
func TestEveryResponseCounts(t *testing.T) {
	s := testScheme(t, "insecure-6")
	p, v := proving(t, s, 2, 1)
	size := v.responseSize()
	change := func(frame []byte, at, k int) []byte {
		frame = bytes.Clone(frame)
		z := intpoly.New(s.N(), 1)
		if err := codec.DecodeSigned(z, v.proof.Bits, frame[at:at+size]); err != nil {
			t.Fatal(err)
		}
		z.C[k]++
		if _, err := codec.AppendSigned(frame[:at], z, v.proof.Bits); err != nil {
			t.Fatal(err)
		}
		return frame
	}
	for i, at := range v.equations {
		for rep := range v.proof.V {
			fresh := *v
			fresh.sums = slices.Clone(v.sums)
			if i+rep == 0 {
				if err := fresh.take(p.sent[:v.proof.V], 0); err != nil {
					t.Fatal(err)
				}
			}
			frame := change(p.sent[v.proof.V+i], v.shareSize(at)+rep*size, (7*i+rep)%s.N())
			err := fresh.take([][]byte{frame}, v.proof.V+i)
			var blame *round.Blame
			if err == nil && (fresh.blame == nil || fresh.blame.Check != CheckEquation) || err != nil && (!errors.As(err, &blame) || blame.Check != CheckBound) {
				t.Errorf("equation %d, repetition %d: %v, %v", i, rep, err, fresh.blame)
			}
		}
	}
	// A response for s occurs in all equations except that of h0, where it is rotated, so any of
	// them detects the change; u occurs in h0 and the last.
	for rep := range v.proof.V {
		for half := range 2 {
			_, v := p, fresh(t, s)
			heads := slices.Clone(p.sent[:v.proof.V])
			heads[rep] = change(heads[rep], half*size, rep)
			if err := v.take(heads, 0); err != nil {
				t.Fatal(err)
			}
			for i := range v.equations {
				v.blame = nil
				if err := v.take(p.sent[v.proof.V+i:][:1], v.proof.V+i); err != nil {
					t.Fatal(err)
				}
				kind := v.equations[i].kind
				in := half == 0 || kind == relinH0 || kind == relinSecond
				if (v.blame != nil) != in {
					t.Errorf("equation %d detects response %d of repetition %d: %v", i, half, rep, v.blame)
				}
			}
		}
	}
}

// fresh returns a verifier that has received nothing.
func fresh(t *testing.T, s *gbfv.Scheme) *proofs {
	_, v := proving(t, s, 2, 1)
	return v
}

// Everything that the parties agree on changes the challenge.
func TestEachFieldChangesTheChallenge(t *testing.T) {
	s := testScheme(t, "insecure-6")
	base, seen := round.Hash("transcript"), map[string]string{}
	bound := map[round.Digest]string{} // the input of the challenge's hash, for every challenge space
	for name, change := range map[string]func(st *statement, transcript *round.Digest){
		"nothing":           func(*statement, *round.Digest) {},
		"session":           func(st *statement, _ *round.Digest) { st.Session.ID[31] ^= 1 },
		"set":               func(st *statement, _ *round.Digest) { st.Scheme = testScheme(t, "insecure-8") },
		"dimension":         func(st *statement, _ *round.Digest) { st.Dim = 4 },
		"number of parties": func(st *statement, _ *round.Digest) { st.Session.Parties = 3 },
		"challenge space":   func(st *statement, _ *round.Digest) { st.proof.Challenges /= 2 },
		"repetitions":       func(st *statement, _ *round.Digest) { st.proof.V++ },
		"bound":             func(st *statement, _ *round.Digest) { st.proof.Bound++ },
		"length":            func(st *statement, _ *round.Digest) { st.proof.Bits++ },
		"transcript":        func(_ *statement, d *round.Digest) { d[0] ^= 1 },
	} {
		p, err := s.Set.KeyProof(2, 2)
		if err != nil {
			t.Fatal(err)
		}
		st := &statement{Config: &Config{Session: round.Session{ID: round.Hash("a session"), Parties: 2}, Scheme: s, Dim: 2}, proof: p}
		d := base
		change(st, &d)
		hashed := round.Hash("bound", st.bound(d)...)
		if other, ok := bound[hashed]; ok {
			t.Errorf("the input of the hash is the same for another %s and another %s", name, other)
		}
		bound[hashed] = name
		w, err := st.challenge(st.bound(d))
		if err != nil {
			t.Fatal(err)
		}
		var e []int
		for v := range p.V {
			e = append(e, w.At(v, 0))
			if e[v]%p.Stride != 0 || e[v] >= 2*s.N() {
				t.Fatalf("%s: challenge X^%d", name, e[v])
			}
		}
		if other, ok := seen[fmt.Sprint(e)]; ok {
			t.Errorf("the challenge is the same for another %s and another %s", name, other)
		}
		seen[fmt.Sprint(e)] = name
	}
}

// Every response has a fresh mask of the prescribed width. No nonce is the beginning of a mask's
// stream.
func TestMasks(t *testing.T) {
	const n, dim = 2, 4
	s := testScheme(t, "insecure-8")
	p, err := s.Set.KeyProof(n, dim)
	if err != nil {
		t.Fatal(err)
	}
	digits := s.GadgetDigits()
	want := map[string]int{
		"secret": 1, "relinearisation secret": 1, "public": 1, "rotation": (dim - 1) * digits,
		"relin h0": digits, "relin h1": digits, "relin second": digits,
	}
	var mu sync.Mutex
	seen, counts := map[string]string{}, map[string]int{}
	var all [][]int64
	options := []roundtest.Option{roundtest.Record()}
	for i := range round.Party(n) {
		h := byzantine.New()
		for name := range want {
			byzantine.On(h, "keygen/mask/"+name, func(v []int64) {
				mu.Lock()
				defer mu.Unlock()
				where, value := fmt.Sprintf("%s of party %d", name, i), fmt.Sprint(v)
				if other, ok := seen[value]; ok {
					t.Errorf("a mask of %s is equal to one of %s", where, other)
				}
				seen[value] = where
				counts[name]++
				all = append(all, slices.Clone(v))
			})
		}
		options = append(options, roundtest.Watch(i, h))
	}
	out := runProved(s, n, dim, options...).OK(t)
	for name, c := range want {
		if counts[name] != n*c*p.V {
			t.Errorf("%d masks of %s, want %d", counts[name], name, n*c*p.V)
		}
	}
	if got, count := width(all); math.Abs(got/p.MaskWidth-1) > 6/math.Sqrt(2*float64(count)) {
		t.Errorf("the masks have width %.3f, want %.3f", got, p.MaskWidth)
	}
	own := source("run", 0)
	first := make([]byte, 32)
	nonces := map[string]bool{}
	for _, step := range []string{stepSeed, stepRelin, stepStatement} {
		nonces[string(out.Recording.Frames(0, roundtest.Any, step+"/open")[0][:32])] = true
	}
	if len(nonces) != 3 {
		t.Error("two steps have the same nonce")
	}
	for v := range uint64(p.V) {
		for _, stream := range []*sample.Stream{own.Stream("mask secret", v), own.Stream("mask relinearisation secret", v), own.Stream("mask public", v)} {
			if _, err := stream.Read(first); err != nil || nonces[string(first)] {
				t.Error("a nonce is the beginning of the stream of a mask")
			}
		}
	}
}

// Whenever a run with proofs ends, secrets and masks are erased.
func TestEveryEndOfProvedKeyGenerationErases(t *testing.T) {
	const culprit, watched = round.Party(0), round.Party(1)
	s := testScheme(t, "insecure-6")
	for _, c := range []struct {
		name  string
		fault roundtest.Option
	}{
		{"success", nil},
		{"no h0", roundtest.Rewrite(culprit, stepRelin+"/open", roundtest.Drop)},
		{"no statement", roundtest.Rewrite(culprit, stepStatement+"/commit", roundtest.Drop)},
		{"another statement", roundtest.Rewrite(culprit, stepStatement+"/open", roundtest.Flip(3))},
		{"no proofs", roundtest.Rewrite(culprit, nameProofs, roundtest.Drop)},
		{"wrong proofs", roundtest.Rewrite(culprit, nameProofs, roundtest.Flip(0))},
		{"another hash", roundtest.Rewrite(culprit, nameAgree, roundtest.Flip(0))},
	} {
		var own *party
		var proof *prover
		var secret []int64
		h := byzantine.On(byzantine.New(), "keygen/party", func(p *party) { own, secret = p, p.secret })
		byzantine.On(h, "keygen/prover", func(p *prover) { proof = p })
		options := []roundtest.Option{roundtest.Watch(watched, h)}
		if c.fault != nil {
			options = append(options, c.fault)
		}
		out := runProved(s, 2, 1, options...)
		success := out.Errors[watched] == nil
		if success != (c.fault == nil) || own == nil {
			t.Fatalf("%s: the party returned %v", c.name, out.Errors[watched])
		}
		zero := func(v []int64) bool { return slices.Max(v) == 0 && slices.Min(v) == 0 }
		if !own.s.Equal(s.Q.NewNTT()) || !own.u.Equal(s.Q.NewNTT()) || !zero(own.ephemeral) || zero(secret) == success {
			t.Errorf("%s: secrets were not erased, or the result was", c.name)
		}
		if proof == nil {
			if c.name != "no h0" {
				t.Errorf("%s: there is no prover", c.name)
			}
			continue
		}
		for v, x := range proof.masks {
			if !x.s.Equal(s.Q.NewNTT()) || !x.u.Equal(s.Q.NewNTT()) || slices.Max(x.small.C) != 0 || slices.Max(proof.u[v].C) != 0 {
				t.Errorf("%s: mask %d was not erased", c.name, v)
			}
		}
		for i, frame := range proof.sent {
			if !proof.answered && len(frame) > 0 && slices.Max(frame) != 0 {
				t.Errorf("%s: the masks of frame %d were not erased", c.name, i)
			}
		}
	}
}

// A frame of proofs is the unique encoding of its contents, or its sender is blamed.
func FuzzProofs(f *testing.F) {
	s := testScheme(f, "insecure-6")
	p, v := proving(f, s, 1, 1)
	if err := v.take(p.sent[:v.proof.V], 0); err != nil {
		f.Fatal(err)
	}
	for _, i := range []int{0, v.proof.V, v.proof.V + 1, v.proof.V + 3*s.GadgetDigits()} {
		frame := p.sent[i]
		f.Add(uint16(i), frame)
		f.Add(uint16(i), frame[1:])
		f.Add(uint16(i), append(bytes.Clone(frame), 0))
		f.Add(uint16(i), residue(s, append(bytes.Clone(frame), make([]byte, 16)...))[:len(frame)])
	}
	f.Fuzz(func(t *testing.T, index uint16, data []byte) {
		i := int(index) % v.frames()
		v.blame = nil
		heads := v.peers[0].responses
		err := v.Frame(context.Background(), 0, nameProofs, i, i == v.frames()-1, data)
		v.peers[0].responses = heads
		var blame *round.Blame
		switch {
		case err != nil && (!errors.As(err, &blame) || blame.Party != 0 || blame.Check != round.CheckShape && blame.Check != CheckBound):
			t.Errorf("got %v", err)
		case err == nil && i < v.proof.V && len(data) != v.headSize():
			t.Error("accepted a head of another size")
		case err == nil && i >= v.proof.V && v.blame == nil && !bytes.Equal(data, p.sent[i]):
			t.Error("accepted another proof")
		}
	})
}

// BenchmarkEquation measures one equation, with all repetitions, at the sizes of the default set.
func BenchmarkEquation(b *testing.B) {
	s := testScheme(b, "S14-32")
	p, v := proving(b, s, 2, 1)
	i := slices.IndexFunc(v.equations, func(at slot) bool { return at.kind == rotation })
	if err := v.take(p.sent[:v.proof.V], 0); err != nil {
		b.Fatal(err)
	}
	at, ctx := v.equations[i], context.Background()
	b.Run("prove", func(b *testing.B) {
		b.SetBytes(int64(v.frameSize(at)))
		for b.Loop() {
			frame := codec.AppendPoly(p.sent[v.proof.V+i][:0], p.share(at).C, s.Q.Primes())
			shareDigest(frame)
			_, frame, err := p.maskErrors(at, frame)
			if err != nil {
				b.Fatal(err)
			}
			p.sent[v.proof.V+i] = frame
			if err := p.answer(v.challenge, i); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("verify", func(b *testing.B) {
		b.SetBytes(int64(v.frameSize(at)))
		for b.Loop() {
			if err := v.takeEquation(ctx, 0, i, p.sent[v.proof.V+i]); err != nil || v.blame != nil {
				b.Fatal(err, v.blame)
			}
		}
	})
}
