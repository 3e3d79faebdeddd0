package popk

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
)

// Both modes give the same ciphertexts and shares, and the separate one sends no masks.
func TestModesGiveTheSame(t *testing.T) {
	for _, n := range []int{2, 3} {
		for _, mac := range []bool{false, true} {
			separate, joint := newBench(t, n), newJointBench(t, n)
			one, other := separate.run(mac, nil, roundtest.Record()).OK(t), joint.run(mac, nil, roundtest.Record()).OK(t)
			for p := range n {
				x, y := one.Results[p], other.Results[p]
				if len(x.Ciphertexts) != len(y.Ciphertexts) || len(x.Shares) != len(y.Shares) {
					t.Fatal("other numbers of ciphertexts or shares")
				}
				for i, ct := range x.Ciphertexts {
					if !ct.Equal(y.Ciphertexts[i]) || !separate.scheme.Field.EqualVec(x.Shares[i], y.Shares[i]) {
						t.Errorf("%d parties, mac %v: ciphertext or share %d of party %d depends on the mode", n, mac, i, p)
					}
				}
			}
			sizes := separate.instance.Proof
			if mac {
				sizes = separate.instance.MACKey
			}
			statement := one.Recording.Frames(0, roundtest.Any, "p/statement/open")[1:]
			if len(statement) != 2*sizes.U+1 || len(statement[2*sizes.U]) != 32*sizes.V {
				t.Errorf("%d parties, mac %v: a statement of %d frames", n, mac, len(statement))
			}
			whole := other.Recording.Frames(0, roundtest.Any, "p/statement/open")[1:]
			for i := range 2 * sizes.U {
				if !bytes.Equal(statement[i], whole[i]) {
					t.Errorf("%d parties, mac %v: frame %d depends on the mode", n, mac, i)
				}
			}
		}
	}
}

// The mode follows from the instance and the number of parties, which all agree on: proofs are checked one by one while
// that takes at most 64 ciphertexts.
func TestModeIsChosenByWhatItHolds(t *testing.T) {
	for _, c := range []struct {
		parties, u int
		mac, want  bool
	}{{2, 32, false, true}, {2, 64, false, true}, {2, 65, false, false}, {3, 32, false, true}, {3, 33, false, false}, {16, 257, true, true}} {
		config := Config{
			Session: round.Session{Parties: c.parties}, MACKey: c.mac,
			Instance: &params.Instance{Proof: params.Proof{U: c.u, V: 5}, MACKey: params.Proof{U: 1, V: 9, Diag: true}},
		}
		if got := config.separate(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// Of two cheats the first party of the roster is named, whichever repetitions are wrong, and by all honest parties alike.
func TestVerdictNamesTheFirst(t *testing.T) {
	b := newBench(t, 4)
	last := b.instance.V - 1
	wrong := func(culprit round.Party, j int) roundtest.Option {
		return roundtest.Cheat(culprit, byzantine.On(byzantine.New(), "p/responses", func(r []response) { addTo(r[j].z, 0, big.NewInt(1)) }))
	}
	for _, at := range [][2]int{{0, last}, {last, 0}} {
		out := b.run(false, nil, wrong(2, at[0]), wrong(3, at[1]))
		for p, err := range out.Errors[:2] {
			var blame *round.Blame
			if !errors.As(err, &blame) || blame.Party != 2 || blame.Check != CheckEquation {
				t.Errorf("party %d: %v", p, err)
			}
		}
	}
}

// A response opens the mask of its own repetition, and every byte of the digest counts: a shorter one would let masks
// collide, and the prover answer two challenges without a witness.
func TestOpensComparesWholeDigests(t *testing.T) {
	b := newBench(t, 2)
	sizes := b.instance.Proof
	c := Config{Session: round.Session{Parties: 2}, Scheme: b.scheme, Instance: b.instance}
	p := &prover{scheme: b.scheme, sizes: sizes, key: b.key.Public, source: testSource("opens"), workers: 2}
	if err := p.sample(context.Background()); err != nil {
		t.Fatal(err)
	}
	list := make([]*gbfv.Ciphertext, sizes.U)
	frames, err := p.encryptHashed(context.Background(), func(i int, ct *gbfv.Ciphertext) { list[i] = ct })
	if err != nil {
		t.Fatal(err)
	}
	w, err := c.challenge(round.Hash("opened"))
	if err != nil {
		t.Fatal(err)
	}
	answers, err := p.respond(context.Background(), w)
	if err != nil {
		t.Fatal(err)
	}
	digests := frames[2*sizes.U]
	for j, r := range answers {
		if !opens(b.scheme, b.key.Public, w, list, j, r, digests) {
			t.Errorf("repetition %d does not open its mask", j)
		}
		other := bytes.Clone(digests)
		for i := range other {
			if i/32 != j {
				other[i] ^= 1
			}
		}
		if !opens(b.scheme, b.key.Public, w, list, j, r, other) {
			t.Errorf("repetition %d depends on the masks of others", j)
		}
	}
	last := sizes.V - 1
	for i := range 32 {
		wrong := bytes.Clone(digests)
		wrong[32*last+i] ^= 0x80
		if opens(b.scheme, b.key.Public, w, list, last, answers[last], wrong) {
			t.Errorf("byte %d of the digest does not count", i)
		}
	}
}

// The estimate of memory grows with the ciphertexts of all parties where they are held, and is at least what is.
func TestMemoryCountsWhatIsHeld(t *testing.T) {
	set, err := params.Lookup("S14-64")
	if err != nil {
		t.Fatal(err)
	}
	ciphertext := int64(2 * set.N() * len(set.Q) * 8)
	for _, c := range []struct {
		parties, u int
		mac        bool
		held       int64 // ciphertexts
	}{{2, 32, false, 64}, {16, 4, false, 64}, {16, 4, true, 16}, {3, 33, false, 33}, {2, 257, false, 257}} {
		i, err := params.Resolve(set, "p128", params.Use{Parties: c.parties, Dim: 1, U: c.u})
		if err != nil {
			t.Fatal(err)
		}
		p := i.Proof
		if c.mac {
			p = i.MACKey
		}
		witnesses := int64(0)
		for range p.U + p.V {
			r := newResponse(set.N(), p)
			witnesses += int64(8 * (len(r.z.C) + len(r.t[0].C) + len(r.t[1].C) + len(r.t[2].C)))
		}
		if got, least := MemoryBytes(i, c.parties, c.mac), c.held*ciphertext+witnesses; got < least || got > 3*least {
			t.Errorf("%+v: %d bytes, want %d and some", c, got, least)
		}
	}
}
