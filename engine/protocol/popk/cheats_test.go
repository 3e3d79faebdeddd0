package popk

import (
	"bytes"
	"errors"
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
}

func newBench(t testing.TB, n int) *bench {
	t.Helper()
	b := &bench{n: n, scheme: testScheme(t)}
	b.key = gbfvtest.New(b.scheme, n, 1, bytes.Repeat([]byte{3}, 32))
	var err error
	if b.instance, err = params.Resolve(b.scheme.Set, "p128", params.Use{Parties: n, Dim: 1, U: 3}); err != nil {
		t.Fatal(err)
	}
	return b
}

// run runs a proof; change alters the configuration of the last party.
func (b *bench) run(mac bool, change func(c *Config), options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(b.n, func(s round.Session) (round.Transition[Result], error) {
		c := Config{
			Session: s, Step: "p", Scheme: b.scheme, Instance: b.instance, Key: b.key.Public, KeyHash: round.Hash("key"),
			MACKey: mac, Source: testSource(fmt.Sprint("party ", s.Self)), Workers: 2,
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

// inside gives the culprit a cheat at a hook.
func inside[T any](name string, change func(b *bench, v T)) func(b *bench, culprit round.Party) []roundtest.Option {
	return func(b *bench, culprit round.Party) []roundtest.Option {
		return []roundtest.Option{roundtest.Cheat(culprit, byzantine.On(byzantine.New(), name, func(v T) { change(b, v) }))}
	}
}

// opened changes the frames of the culprit's statement after it has committed to them.
func opened(change func(frames [][]byte)) func(b *bench, culprit round.Party) []roundtest.Option {
	return inside("p/statement/open", func(_ *bench, body *round.Body) {
		frames := make([][]byte, (*body).Frames())
		for i := range frames {
			f, err := (*body).Frame(i)
			if err != nil {
				panic(err)
			}
			frames[i] = bytes.Clone(f)
		}
		change(frames)
		*body = round.Frames(len(frames), func(i int) ([]byte, error) { return frames[i], nil })
	})
}

func rewritten(name string, e roundtest.Edit) func(b *bench, culprit round.Party) []roundtest.Option {
	return func(_ *bench, culprit round.Party) []roundtest.Option {
		return []roundtest.Option{roundtest.Rewrite(culprit, name, e)}
	}
}

// The cheats of the last party: what it does, in which kind of proof, and the check that names it.
func TestCheatsAreNamed(t *testing.T) {
	set := func(p intpoly.Poly, v *big.Int, off int64) { p.SetBig(0, new(big.Int).Add(v, big.NewInt(off))) }
	for _, c := range []struct {
		name  string
		mac   bool
		cheat func(b *bench, culprit round.Party) []roundtest.Option
		check string
	}{
		{"a MAC key that differs between slots", true, inside("p/witness", func(_ *bench, p *prover) { addTo(p.secret[0].z, 1, big.NewInt(1)) }), CheckDiagonal},
		{"mu_z at its bound", false, inside("p/responses", func(b *bench, r []response) { set(r[0].z, b.instance.B1, 0) }), CheckBound},
		{"mu_z one below its bound", false, inside("p/responses", func(b *bench, r []response) { set(r[0].z, b.instance.B1, -1) }), CheckEquation},
		{"t at its bound", false, inside("p/responses", func(b *bench, r []response) { set(r[2].t[1], b.instance.Bt1, 0) }), CheckBound},
		{"t one below its bound", false, inside("p/responses", func(b *bench, r []response) { set(r[2].t[1], b.instance.Bt1, -1) }), CheckEquation},
		{"mu_z off by one", false, inside("p/responses", func(_ *bench, r []response) { addTo(r[0].z, 0, big.NewInt(1)) }), CheckEquation},
		{"t0 off by one", false, inside("p/responses", func(_ *bench, r []response) { addTo(r[1].t[0], 3, big.NewInt(1)) }), CheckEquation},
		{"t1 off by one", false, inside("p/responses", func(_ *bench, r []response) { addTo(r[2].t[1], 3, big.NewInt(1)) }), CheckEquation},
		{"t2 off by one", false, inside("p/responses", func(_ *bench, r []response) { addTo(r[3].t[2], 3, big.NewInt(-1)) }), CheckEquation},
		{"a bit of a ciphertext after the commitment", false, opened(func(f [][]byte) { f[0][7] ^= 1 }), round.CheckCommitment},
		{"a bit of a mask after the commitment", false, opened(func(f [][]byte) { f[len(f)-1][7] ^= 1 }), round.CheckCommitment},
		{"a copy of another's statement and response", false, func(_ *bench, culprit round.Party) []roundtest.Option {
			var v roundtest.View
			options := []roundtest.Option{roundtest.Rushing(culprit, &v)}
			for _, name := range []string{"p/statement/commit", "p/statement/open", "p/response"} {
				options = append(options, roundtest.Rewrite(culprit, name, roundtest.CopyOf(0, name)))
			}
			return options
		}, round.CheckCommitment},
		{"a truncated response", false, rewritten("p/response", roundtest.Truncate(1)), round.CheckShape},
		{"a truncated statement", false, rewritten("p/statement/open", roundtest.Truncate(1)), round.CheckShape},
		{"a response with a frame too many", false, rewritten("p/response", roundtest.ExtraFrame([]byte{1})), ""},
	} {
		for _, n := range []int{2, 3} {
			t.Run(fmt.Sprint(n, " parties, ", c.name), func(t *testing.T) {
				b := newBench(t, n)
				culprit := round.Party(n - 1)
				out := b.run(c.mac, nil, c.cheat(b, culprit)...)
				if c.check != "" {
					out.Blamed(t, culprit, c.check)
					return
				}
				for p, err := range out.Errors[:n-1] {
					var blame *round.Blame
					if !errors.As(err, &blame) || blame.Party != culprit {
						t.Errorf("party %d ends with %v, want blame of %d", p, err, culprit)
					}
				}
			})
		}
	}
}

// Without commitments the copy that the figure of the paper allows passes a check of sums: the commitment is what stops it.
func TestNegationPassesACheckOfSums(t *testing.T) {
	b := newBench(t, 2)
	honest := b.run(false, nil).OK(t)
	// Party 1 sends minus what party 0 sent: the sums are zero, and zero is an encryption of zero with zero randomness.
	zero := b.scheme.NewCiphertext()
	z := newResponse(b.scheme.N(), b.instance.Proof)
	if !encryption(b.scheme, b.key.Public, z.z, z.t).Equal(zero) {
		t.Error("Enc(0; 0) is not zero: the check of sums would see the attack")
	}
	if honest.Results[0].Ciphertexts[0].Equal(zero) {
		t.Error("an honest run gives a zero ciphertext")
	}
}

// Parties that disagree on what they prove, or where, do not accept each other.
func TestDisagreementIsRefused(t *testing.T) {
	for name, change := range map[string]func(c *Config){
		"session":  func(c *Config) { c.Session.ID[0] ^= 1 },
		"key hash": func(c *Config) { c.KeyHash[0] ^= 1 },
	} {
		for _, n := range []int{2, 3} {
			out := newBench(t, n).run(false, change)
			for p, err := range out.Errors {
				if err == nil {
					t.Errorf("another %s, %d parties: party %d accepts", name, n, p)
				}
			}
		}
	}
}

// A proof that is recorded and played back in another session does not open its commitments there.
func TestReplayIsRefused(t *testing.T) {
	b := newBench(t, 2)
	first := b.run(false, nil, roundtest.Record()).OK(t)
	var options []roundtest.Option
	for _, name := range []string{"p/statement/commit", "p/statement/open", "p/response"} {
		options = append(options, roundtest.Rewrite(1, name, roundtest.Replay(first.Recording, 1, 0, name)))
	}
	options = append(options, roundtest.ID(round.Hash("a later session")))
	b.run(false, nil, options...).Blamed(t, 1, round.CheckCommitment)
}

// From three parties on, different statements to different parties are seen by the echo.
func TestEquivocationIsSeen(t *testing.T) {
	for _, name := range []string{"p/statement/commit", "p/statement/open", "p/response"} {
		newBench(t, 3).run(false, nil, roundtest.Link(2, 0, name, roundtest.Flip(100))).Aborted(t, 2, round.CheckEcho)
	}
}
