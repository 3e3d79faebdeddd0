package popk

import (
	"bytes"
	"fmt"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// bench is one scheme, key and instance for runs of n parties.
type bench struct {
	n        int
	scheme   *gbfv.Scheme
	key      *gbfvtest.Key
	instance *params.Instance
	only     *round.Party // the single prover, or nil
}

func newBench(t testing.TB, n int) *bench { return newBenchOf(t, n, 3) }

// newFoldedBench has more ciphertexts than repetitions, so receivers accumulate combinations.
func newFoldedBench(t testing.TB, n int) *bench {
	b := newBenchOf(t, n, 20)
	if b.instance.U <= b.instance.V {
		t.Fatal("as many repetitions as ciphertexts")
	}
	return b
}

func newBenchOf(t testing.TB, n, u int) *bench {
	t.Helper()
	b := &bench{n: n, scheme: testScheme(t)}
	b.key = gbfvtest.New(b.scheme, n, 1, bytes.Repeat([]byte{3}, 32))
	var err error
	if b.instance, err = params.Resolve(b.scheme.Set, "p128", params.Use{Parties: n, Dim: 1, U: u}); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a proof; change alters the configuration of the last party.
func (b *bench) run(mac bool, change func(c *Config), options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(b.n, func(s round.Session) (round.Transition[Result], error) {
		c := Config{
			Session: s, Step: "p", Scheme: b.scheme, Instance: b.instance, Key: b.key.Public, KeyHash: round.Hash("key"),
			MACKey: mac, Only: b.only, Source: testSource(fmt.Sprint("party ", s.Self)), Workers: 2,
		}
		if change != nil && int(s.Self) == b.n-1 {
			change(&c)
		}
		return Start(c)
	}, options...)
}

func TestHonestProof(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		for _, mac := range []bool{false, true} {
			b := newBench(t, n)
			if !mac && n == 3 {
				b = newFoldedBench(t, n)
			}
			out := b.run(mac, nil).OK(t)
			f := b.scheme.Field
			for i, ct := range out.Results[0].Ciphertexts {
				sum := f.NewVec(b.scheme.Slots())
				for _, r := range out.Results {
					f.AddVec(sum, sum, r.Shares[i])
					if !r.Ciphertexts[i].Equal(ct) {
						t.Fatal("parties have different ciphertexts")
					}
				}
				if got := b.key.Decrypt(ct); !f.EqualVec(got, sum) {
					t.Errorf("%d parties, mac %v: ciphertext %d is not of the sum of the shares", n, mac, i)
				}
				for k := 1; mac && k < sum.Len(); k++ {
					if !f.Equal(sum.At(k), sum.At(0)) {
						t.Fatal("slots of a MAC key differ")
					}
				}
			}
		}
	}
}

func addTo(p intpoly.Poly, k int, v *big.Int) { p.SetBig(k, v.Add(v, p.Big(k))) }

// inside makes the last party cheat at a hook.
func inside[T any](name string, change func(b *bench, v T)) func(b *bench, culprit round.Party) []roundtest.Option {
	return func(b *bench, culprit round.Party) []roundtest.Option {
		return []roundtest.Option{roundtest.Cheat(culprit, byzantine.On(byzantine.New(), name, func(v T) { change(b, v) }))}
	}
}

// sent changes the packed ciphertexts that the cheating party sends, so that they differ from its
// statement.
func sent(change func(b *bench, frames [][]byte)) func(b *bench, culprit round.Party) []roundtest.Option {
	return inside("p/ciphertexts", func(b *bench, body *round.Body) {
		frames := framesOf(*body)
		change(b, frames)
		*body = round.FrameList(frames)
	})
}

// stated changes a bit of the cheating party's statement. A negative bit counts from the end.
func stated(hook string, bit int) func(b *bench, culprit round.Party) []roundtest.Option {
	return inside(hook, func(_ *bench, statement *[]byte) {
		all := 8 * len(*statement)
		at := (bit + all) % all
		(*statement)[at/8] ^= 1 << (at % 8)
	})
}

func framesOf(body round.Body) [][]byte {
	frames := make([][]byte, body.Frames())
	for i := range frames {
		f, err := body.Frame(i)
		if err != nil {
			panic(err)
		}
		frames[i] = bytes.Clone(f)
	}
	return frames
}

// less omits the last frame.
func less(_ *roundtest.View, frames [][]byte) [][]byte { return frames[:len(frames)-1] }

func rewritten(name string, e roundtest.Edit) func(b *bench, culprit round.Party) []roundtest.Option {
	return func(_ *bench, culprit round.Party) []roundtest.Option {
		return []roundtest.Option{roundtest.Rewrite(culprit, name, e)}
	}
}

// The cheats of the last party: the deviation, the kind of proof, and the check that blames it.
func TestCheatsAreNamed(t *testing.T) {
	set := func(p intpoly.Poly, v *big.Int, off int64) { p.SetBig(0, new(big.Int).Add(v, big.NewInt(off))) }
	answer := func(change func(b *bench, r []response)) func(b *bench, culprit round.Party) []roundtest.Option {
		return inside("p/response", change)
	}
	bit := func(frame int) func(b *bench, frames [][]byte) {
		return func(_ *bench, frames [][]byte) { frames[(frame+len(frames))%len(frames)][7] ^= 1 }
	}
	residue := func(frame int, change func(b *bench, v uint64) uint64) func(b *bench, list []*gbfv.Ciphertext) {
		return func(b *bench, list []*gbfv.Ciphertext) {
			first := part(list, (frame+2*len(list))%(2*len(list)))[0]
			first[0] = change(b, first[0])
		}
	}
	flip := func(_ *bench, v uint64) uint64 { return v ^ 1 }
	prime := func(b *bench, _ uint64) uint64 { return b.scheme.Q.Primes()[0] }
	const commit, open = "p/statement/commit", "p/statement/open"
	const copied = "a copy of another's statement and response"
	for _, c := range []struct {
		name  string
		mac   bool
		cheat func(b *bench, culprit round.Party) []roundtest.Option
		check string
	}{
		{"a MAC key that differs between slots", true, inside("p/encrypted", func(b *bench, list []*gbfv.Ciphertext) {
			delta := b.scheme.Delta()
			b.scheme.Q.AddMonomial(list[0].C0, delta, 1) // X more in the message
		}), CheckEquation},
		{"a response of a MAC key off by one", true, answer(func(b *bench, r []response) { addTo(r[43].z, b.scheme.Slots(), big.NewInt(1)) }), CheckEquation},
		{"mu_z at its bound", false, answer(func(b *bench, r []response) { set(r[0].z, b.instance.B1, 0) }), CheckBound},
		{"mu_z one above its bound", false, answer(func(b *bench, r []response) { set(r[0].z, b.instance.B1, 1) }), CheckBound},
		{"mu_z at minus its bound", false, answer(func(b *bench, r []response) { set(r[14].z, new(big.Int).Neg(b.instance.B1), 0) }), CheckBound},
		{"mu_z one below its bound", false, answer(func(b *bench, r []response) { set(r[0].z, b.instance.B1, -1) }), CheckEquation},
		{"t0 at its bound", false, answer(func(b *bench, r []response) { set(r[1].t[0], b.instance.Bt1, 0) }), CheckBound},
		{"t1 at its bound", false, answer(func(b *bench, r []response) { set(r[2].t[1], b.instance.Bt1, 0) }), CheckBound},
		{"t2 at minus its bound", false, answer(func(b *bench, r []response) { set(r[2].t[2], new(big.Int).Neg(b.instance.Bt1), 0) }), CheckBound},
		{"t one above its bound", false, answer(func(b *bench, r []response) { set(r[2].t[1], b.instance.Bt1, 1) }), CheckBound},
		{"t one below its bound", false, answer(func(b *bench, r []response) { set(r[2].t[1], b.instance.Bt1, -1) }), CheckEquation},
		{"mu_z of a MAC key at its bound", true, answer(func(b *bench, r []response) { set(r[0].z, b.instance.MACKey.B1, 0) }), CheckBound},
		{"mu_z off by one", false, answer(func(_ *bench, r []response) { addTo(r[0].z, 0, big.NewInt(1)) }), CheckEquation},
		{"t0 off by one", false, answer(func(_ *bench, r []response) { addTo(r[1].t[0], 3, big.NewInt(1)) }), CheckEquation},
		{"t1 off by one", false, answer(func(_ *bench, r []response) { addTo(r[2].t[1], 3, big.NewInt(1)) }), CheckEquation},
		{"t2 off by one", false, answer(func(_ *bench, r []response) { addTo(r[3].t[2], 3, big.NewInt(-1)) }), CheckEquation},
		{"a bit of a response", false, rewritten("p/response", roundtest.Flip(0)), CheckEquation},
		{"a bit of a ciphertext from the start", false, inside("p/encrypted", residue(0, flip)), CheckEquation},
		{"a bit of the last ciphertext from the start", false, inside("p/encrypted", residue(-1, flip)), CheckEquation},
		{"a bit of a ciphertext of a MAC key from the start", true, inside("p/encrypted", residue(0, flip)), CheckEquation},
		{"a bit of the digest of the ciphertexts from the start", false, stated(commit, 255), round.CheckCommitment},
		{"a bit of a mask from the start", false, stated(commit, 256), CheckEquation},
		{"a bit of the last mask from the start", false, stated(commit, -1), CheckEquation},
		{"a bit of the digest of the ciphertexts after the commitment", false, stated(open, 0), round.CheckCommitment},
		{"a bit of a mask after the commitment", false, stated(open, -1), round.CheckCommitment},
		{"a bit of a ciphertext after the challenge", false, sent(bit(0)), round.CheckCommitment},
		{"a bit of the last ciphertext after the challenge", false, sent(bit(-1)), round.CheckCommitment},
		{"another nonce after the commitment", false, rewritten(open, roundtest.Flip(0)), round.CheckCommitment},
		{"a residue of q in a ciphertext", false, inside("p/encrypted", residue(0, prime)), round.CheckShape},
		{"a residue of q in the last ciphertext", false, inside("p/encrypted", residue(-1, prime)), round.CheckShape},
		{copied, false, func(_ *bench, culprit round.Party) []roundtest.Option {
			var v roundtest.View
			options := []roundtest.Option{roundtest.Rushing(culprit, &v)}
			for _, name := range []string{commit, open, "p/ciphertexts", "p/response"} {
				options = append(options, roundtest.Rewrite(culprit, name, roundtest.CopyOf(0, name)))
			}
			return options
		}, round.CheckCommitment},
		{"a truncated commitment", false, rewritten(commit, roundtest.Truncate(1)), round.CheckShape},
		{"a truncated response", false, rewritten("p/response", roundtest.Truncate(1)), round.CheckShape},
		{"a response with a byte more", false, rewritten("p/response", roundtest.Extend(1)), round.CheckSize},
		{"a truncated statement", false, rewritten(open, roundtest.Truncate(1)), round.CheckCommitment},
		{"a statement with a byte more", false, rewritten(open, roundtest.Extend(1)), round.CheckSize},
		{"a statement with a frame more", false, rewritten(open, roundtest.ExtraFrame(nil)), round.CheckShape},
		{"a ciphertext less", false, rewritten("p/ciphertexts", less), round.CheckShape},
		{"a ciphertext of a MAC key less", true, rewritten("p/ciphertexts", less), round.CheckShape},
		{"a response less", false, rewritten("p/response", less), round.CheckShape},
		{"a response of a MAC key less", true, rewritten("p/response", less), round.CheckShape},
		{"one response", false, rewritten("p/response", func(_ *roundtest.View, f [][]byte) [][]byte { return f[:1] }), round.CheckShape},
		{"a truncated ciphertext", false, rewritten("p/ciphertexts", roundtest.Truncate(1)), round.CheckShape},
		{"a ciphertext with a byte more", false, rewritten("p/ciphertexts", roundtest.Extend(1)), round.CheckSize},
		{"ciphertexts with a frame more", false, rewritten("p/ciphertexts", roundtest.ExtraFrame(nil)), round.CheckShape},
		{"a response with a frame more", false, rewritten("p/response", roundtest.ExtraFrame([]byte{1})), round.CheckShape},
	} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprint(n, " parties, ", c.name), func(t *testing.T) {
				b := newBench(t, n)
				culprit := round.Party(n - 1)
				b.run(c.mac, nil, c.cheat(b, culprit)...).Blamed(t, culprit, c.check)
			})
		}
		if !c.mac {
			t.Run("folded, "+c.name, func(t *testing.T) {
				b := newFoldedBench(t, 2)
				b.run(false, nil, c.cheat(b, 1)...).Blamed(t, 1, c.check)
			})
			if c.name == copied {
				continue // only the proving party has any
			}
			t.Run("alone, "+c.name, func(t *testing.T) {
				b, culprit := newBench(t, 3), round.Party(2)
				b.only = &culprit
				b.run(false, nil, c.cheat(b, culprit)...).Blamed(t, culprit, c.check)
			})
		}
	}
}

// A proof replayed from another session does not open the commitments of this session.
func TestReplayIsRefused(t *testing.T) {
	for _, n := range []int{2, 3} {
		b, culprit := newBench(t, n), round.Party(n-1)
		first := b.run(false, nil, roundtest.Record()).OK(t)
		options := []roundtest.Option{roundtest.ID(round.Hash("a later session"))}
		for _, name := range []string{"p/statement/commit", "p/statement/open", "p/ciphertexts", "p/response"} {
			options = append(options, roundtest.Rewrite(culprit, name, roundtest.Replay(first.Recording, culprit, 0, name)))
		}
		b.run(false, nil, options...).Blamed(t, culprit, round.CheckCommitment)
	}
}

// With at least three parties, the echo check detects different statements to different parties.
func TestEquivocationIsSeen(t *testing.T) {
	for _, name := range []string{"p/statement/commit", "p/statement/open", "p/ciphertexts", "p/response"} {
		newBench(t, 3).run(false, nil, roundtest.Link(2, 0, name, roundtest.Flip(100))).Aborted(t, 2, round.CheckEcho)
	}
}
