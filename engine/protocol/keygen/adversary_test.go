package keygen

import (
	"bytes"
	"fmt"
	"math"
	"math/bits"
	"math/cmplx"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

const provedDim = 2

// long adds a value to every coefficient with which a response still fits, but is not short as a
// polynomial.
func long(v []int64) {
	for i := range v {
		v[i] += 250
	}
}

// onShare changes this party's share at the first slot of a kind.
func onShare(k kind, change func(x *sharing)) func(h byzantine.Hooks) {
	return func(h byzantine.Hooks) {
		byzantine.On(h, "keygen/share", func(x *sharing) {
			if x.at.kind == k && x.at.digit == 0 {
				change(x)
			}
		})
	}
}

func hook[T any](name string, cheat func(v T)) func(h byzantine.Hooks) {
	return func(h byzantine.Hooks) { byzantine.On(h, name, cheat) }
}

// A cheat is a deviation of the last party, and the check that blames the party for it.
type cheat struct {
	name  string
	set   func(h byzantine.Hooks)
	check string
}

func (c cheat) run(t *testing.T, s *gbfv.Scheme) {
	for _, n := range []int{2, 3} {
		t.Run(fmt.Sprint(c.name, ", ", n, " parties"), func(t *testing.T) {
			h, culprit := byzantine.New(), round.Party(n-1)
			c.set(h)
			runProved(s, n, provedDim, roundtest.Cheat(culprit, h)).Blamed(t, culprit, c.check)
			if left := h.Unfired(); len(left) > 0 {
				t.Errorf("hooks %v have not run", left)
			}
		})
	}
}

func flipped(frame []byte, bit int) { frame[bit/8] ^= 1 << (bit % 8) }

// Every deviation of a party in its shares and proofs is detected, and the party is blamed.
func TestCheatsInProofsAreNamed(t *testing.T) {
	s := testScheme(t, "insecure-6")
	q := s.Q
	p, err := s.Set.KeyProof(2, provedDim)
	if err != nil {
		t.Fatal(err)
	}
	response := codec.SignedSize(s.N(), p.Bits)
	first := Rotations(s.N(), provedDim)[0]
	last := (s.N() - 1) * bits.Len64(q.Primes()[0]-1) // the lowest bit of the last residue of the first prime
	plusOne := func(x *sharing) {
		x.share.C[0][3] = (x.share.C[0][3] + 1) % q.Primes()[0]
	}
	sent := func(change func(frames [][]byte)) func(h byzantine.Hooks) { return hook(nameProofs, change) }
	statement := func(change func(b []byte)) func(h byzantine.Hooks) {
		return hook(stepStatement+"/commit", func(b *[]byte) {
			*b = bytes.Clone(*b)
			change(*b)
		})
	}
	cheats := []cheat{
		{"wrong share of the public key", onShare(publicKey, plusOne), CheckEquation},
		{"wrong share of the rotation keys", onShare(rotation, plusOne), CheckEquation},
		{"wrong share of h0", onShare(relinH0, plusOne), CheckEquation},
		{"wrong share of h1", onShare(relinH1, plusOne), CheckEquation},
		{"wrong share of the second part", onShare(relinSecond, plusOne), CheckEquation},
		{"another secret in one rotation", anotherSecret(s, first), CheckEquation},
		{"a long secret", hook("keygen/secret", long), CheckBound},
		{"a long ephemeral secret", hook("keygen/secret/relin", long), CheckBound},
		{"wrong masks", statement(func(b []byte) { flipped(b, 8*len(b)-1) }), CheckEquation},
		{"a share that is not the statement's", statement(func(b []byte) { flipped(b, 5) }), CheckShare},
		{"challenge of another session", hook("keygen/challenge", func(f [][]byte) {
			f[0] = bytes.Clone(f[0])
			flipped(f[0], 9)
		}), CheckEquation},
		{"a bit of a response for s", sent(func(f [][]byte) { flipped(f[0], 0) }), CheckEquation},
		{"a bit of a response for u", sent(func(f [][]byte) { flipped(f[p.V-1], 8*response) }), CheckEquation},
		{"a bit of the public key's share", sent(func(f [][]byte) { flipped(f[p.V], 0) }), CheckShare},
		{"a bit of a rotation key's share", sent(func(f [][]byte) { flipped(f[p.V+1], 0) }), CheckShare},
		{"a bit far on in a rotation key's share", sent(func(f [][]byte) { flipped(f[p.V+1], last) }), CheckShare},
		{"a bit of the second part's share", sent(func(f [][]byte) { flipped(f[len(f)-1], 0) }), CheckShare},
		{"a bit of a response in the public key", sent(func(f [][]byte) { flipped(f[p.V], 8*len(f[p.V])-p.Bits) }), CheckEquation},
		{"a bit of a response in h0", sent(func(f [][]byte) { flipped(f[len(f)-3*s.GadgetDigits()], 0) }), CheckEquation},
		{"a bit of a response in h1", sent(func(f [][]byte) { flipped(f[len(f)-2*s.GadgetDigits()], 8*response) }), CheckEquation},
		{"a bit of the last response", sent(func(f [][]byte) { flipped(f[len(f)-1], 8*len(f[len(f)-1])-p.Bits) }), CheckEquation},
	}
	for _, label := range errorLabels {
		cheats = append(cheats,
			cheat{"a long error of " + label, hook("keygen/error/"+label, long), CheckBound},
			// The rest of the proof is correct. Whether such a mask hides anything is unknown.
			cheat{"a long mask of " + label, hook("keygen/mask/"+label, long), CheckBound})
	}
	for _, label := range []string{"secret", "relinearisation secret"} {
		cheats = append(cheats, cheat{"a long mask of the " + label, hook("keygen/mask/"+label, long), CheckBound})
	}
	for _, c := range cheats {
		c.run(t, s)
	}
}

// anotherSecret changes a share of one rotation key to secret s+1: -a (s+1) + phi(s+1) g_j + e. Its
// proof is for s.
func anotherSecret(s *gbfv.Scheme, g int) func(h byzantine.Hooks) {
	return func(h byzantine.Hooks) {
		var seed round.Digest
		byzantine.On(h, "keygen/party", func(p *party) { seed = p.seed })
		byzantine.On(h, "keygen/share", func(x *sharing) {
			if x.at != (slot{rotation, g, 0}) {
				return
			}
			one := make([]int64, s.N())
			one[0] = 1
			d, p := uniform(s, seed, labelRotation, uint64(g), 0), s.Q.NewPoly()
			s.Q.NegNTT(d, d)
			s.AddGadget(d, Lift(s, one), 0)
			s.Q.Inverse(p, d)
			s.Q.Add(x.share, x.share, p)
		})
	}
}

// Only the norm check detects this cheat: without it the run passes.
func TestOnlyTheNormSeesLongSecrets(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, name := range []string{"keygen/secret", "keygen/secret/relin", "keygen/error/rotation", "keygen/mask/public"} {
		h := byzantine.On(byzantine.New(), name, long)
		runProved(s, 2, 2, roundtest.Cheat(1, h), roundtest.Watch(0, byzantine.New().Skip(CheckBound))).OK(t)
	}
}

// around returns a polynomial that passes a norm test and a neighbour that does not; they differ by
// 1 in one coefficient.
func around(t *testing.T, n int, p params.KeyProof) (under, over []int64) {
	t.Helper()
	m, err := sigma.NewNorm(n, p.Bits, p.Bound)
	if err != nil {
		t.Fatal(err)
	}
	passes := func(z []int64) bool {
		small := intpoly.New(n, 1)
		intpoly.FromInt64(small, z)
		return m.Within(small)
	}
	z := make([]int64, n)
	for round := 0; ; round++ {
		for k := range z {
			last := append([]int64(nil), z...)
			if math.Cos(math.Pi*float64(k)/float64(n)) > 0 {
				z[k]++
			} else {
				z[k]--
			}
			if !passes(z) {
				return last, z
			}
		}
	}
}

func canonical(z []int64) (top float64) {
	n := len(z)
	for j := range n {
		var v complex128
		for k, c := range z {
			v += complex(float64(c), 0) * cmplx.Rect(1, math.Pi*float64((2*j+1)*k%(2*n))/float64(n))
		}
		top = max(top, cmplx.Abs(v))
	}
	return top
}

// With an error of zero the response is the mask, which the test chooses next to the bound.
func TestResponsesNextToTheBound(t *testing.T) {
	const dim = 2
	s := testScheme(t, "insecure-6")
	p, err := s.Set.KeyProof(2, dim)
	if err != nil {
		t.Fatal(err)
	}
	under, over := around(t, s.N(), p)
	if a, b := canonical(under), canonical(over); a > float64(p.Bound) || b < 0.99*float64(p.Bound) || b-a > 1.001 {
		t.Fatalf("norms %v and %v around the bound %d", a, b, p.Bound)
	}
	with := func(z []int64) roundtest.Option {
		h := byzantine.On(byzantine.New(), "keygen/error/public", func(v []int64) { clear(v) })
		return roundtest.Cheat(1, byzantine.On(h, "keygen/mask/public", func(v []int64) { copy(v, z) }))
	}
	runProved(s, 2, dim, with(under)).OK(t)
	runProved(s, 2, dim, with(over)).Blamed(t, 1, CheckBound)
}

// A party that repeats another party's proof, or a proof from another session, is blamed.
func TestCopiedProofsAreRefused(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		for _, step := range []string{stepRelin, stepStatement} {
			runProved(s, n, 2, copiesOf(culprit, step+"/commit", step+"/open")...).Blamed(t, culprit, round.CheckCommitment)
		}
		runProved(s, n, 2, copiesOf(culprit, nameProofs)...).Blamed(t, culprit, CheckShare)

		first := runProved(s, n, 2, roundtest.Record()).OK(t)
		later := roundtest.ID(round.Hash("a later session"))
		replay := func(names ...string) []roundtest.Option {
			options := []roundtest.Option{later}
			for _, name := range names {
				options = append(options, roundtest.Rewrite(culprit, name, roundtest.Replay(first.Recording, culprit, 0, name)))
			}
			return options
		}
		for _, step := range []string{stepRelin, stepStatement} {
			runProved(s, n, 2, replay(step+"/commit", step+"/open")...).Blamed(t, culprit, round.CheckCommitment)
		}
		runProved(s, n, 2, replay(nameProofs)...).Blamed(t, culprit, CheckShare)
	}
}

func copiesOf(culprit round.Party, names ...string) []roundtest.Option {
	v := &roundtest.View{}
	options := []roundtest.Option{roundtest.Rushing(culprit, v)}
	for _, name := range names {
		options = append(options, roundtest.Rewrite(culprit, name, func(_ *roundtest.View, frames [][]byte) [][]byte {
			return v.Frames(0, culprit, name)
		}))
	}
	return options
}

// The last party waits for the others' shares of the public key and sends its chosen key minus
// their sum.
func TestARogueShareIsRefusedByItsStatement(t *testing.T) {
	s := testScheme(t, "insecure-6")
	own := s.Q.NewPoly()
	sample.Expand(own.C, s.Q.Primes(), bytes.Repeat([]byte{9}, 32), "a key of the last party's own")
	p, err := s.Set.KeyProof(2, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		v := &roundtest.View{}
		rogue := roundtest.Rewrite(culprit, nameProofs, func(_ *roundtest.View, frames [][]byte) [][]byte {
			sum, x := own.Clone(), s.Q.NewPoly()
			size := codec.PolySize(s.N(), s.Q.Primes())
			for from := range culprit {
				if err := codec.DecodePoly(x.C, s.Q.Primes(), v.Frames(from, culprit, nameProofs)[p.V][:size]); err != nil {
					panic(err)
				}
				s.Q.Sub(sum, sum, x)
			}
			copy(frames[p.V], codec.AppendPoly(nil, sum.C, s.Q.Primes()))
			return frames
		})
		runProved(s, n, 1, rogue, roundtest.Rushing(culprit, v)).Blamed(t, culprit, CheckShare)

		options := []roundtest.Option{rogue, roundtest.Rushing(culprit, v)}
		for p := range culprit {
			options = append(options, roundtest.Watch(p, byzantine.New().Skip(CheckShare).Skip(CheckEquation).Skip(CheckAgree)))
		}
		out := runProved(s, n, 1, options...)
		if out.Errors[0] != nil {
			t.Fatal(out.Errors[0])
		}
		got, want := s.Q.NewPoly(), s.Q.NewPoly()
		s.Q.Double(want, own)
		if s.Q.Inverse(got, out.Results[0].Keys.Public.P0); !got.Equal(want) {
			t.Errorf("%d parties: the experiment without proofs does not fix the key", n)
		}
		// Even without the statements of shares, their proofs reject it.
		options = []roundtest.Option{rogue, roundtest.Rushing(culprit, v)}
		for p := range culprit {
			options = append(options, roundtest.Watch(p, byzantine.New().Skip(CheckShare)))
		}
		runProved(s, n, 1, options...).Blamed(t, culprit, CheckEquation)
	}
}

func TestMalformedProofsAreBlamed(t *testing.T) {
	s := testScheme(t, "insecure-6")
	p, err := s.Set.KeyProof(2, 2)
	if err != nil {
		t.Fatal(err)
	}
	at := func(i int, change func(f []byte) []byte) roundtest.Edit {
		return func(_ *roundtest.View, list [][]byte) [][]byte {
			if i < 0 {
				i += len(list)
			}
			list[i] = change(list[i])
			return list
		}
	}
	shorter := func(f []byte) []byte { return f[1:] }
	longer := func(f []byte) []byte { return append(f, 0) }
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		for _, c := range []struct {
			what  string
			edit  roundtest.Edit
			check string
		}{
			{"a short response for secrets", at(0, shorter), round.CheckShape},
			{"a long response for secrets", at(p.V-1, longer), round.CheckShape},
			{"a short equation", at(p.V, shorter), round.CheckShape},
			{"a long equation", at(p.V, longer), round.CheckShape},
			{"a short last equation", at(-1, shorter), round.CheckShape},
			{"one byte more", roundtest.Extend(1), round.CheckSize},
			{"a residue of q", at(p.V, func(f []byte) []byte { return residue(s, f) }), round.CheckShape},
			{"one frame less", func(_ *roundtest.View, list [][]byte) [][]byte { return list[:len(list)-1] }, round.CheckShape},
			{"one frame more", roundtest.ExtraFrame(nil), round.CheckShape},
			{"frames out of order", func(_ *roundtest.View, list [][]byte) [][]byte {
				list[p.V], list[p.V+1] = list[p.V+1], list[p.V]
				return list
			}, CheckShare},
		} {
			t.Run(fmt.Sprint(c.what, ", ", n, " parties"), func(t *testing.T) {
				runProved(s, n, 2, roundtest.Rewrite(culprit, nameProofs, c.edit)).Blamed(t, culprit, c.check)
			})
		}
		for name, short := range map[string]string{stepRelin + "/open": round.CheckShape, stepStatement + "/open": round.CheckCommitment} {
			runProved(s, n, 2, roundtest.Rewrite(culprit, name, roundtest.Flip(-1))).Blamed(t, culprit, round.CheckCommitment)
			runProved(s, n, 2, roundtest.Rewrite(culprit, name, roundtest.Truncate(1))).Blamed(t, culprit, short)
			runProved(s, n, 2, roundtest.Rewrite(culprit, name, roundtest.Extend(1))).Blamed(t, culprit, round.CheckSize)
			runProved(s, n, 2, roundtest.Rewrite(culprit, name, roundtest.Drop)).Stalls(t, culprit, name)
		}
		runProved(s, n, 2, roundtest.Rewrite(culprit, nameProofs, roundtest.Drop)).Stalls(t, culprit, nameProofs)
		runProved(s, n, 2, roundtest.Rewrite(culprit, nameAgree, roundtest.Flip(9))).Aborted(t, culprit, CheckAgree)
	}
	for _, name := range []string{stepRelin + "/commit", stepRelin + "/open", stepStatement + "/commit", stepStatement + "/open", nameProofs, nameAgree} {
		t.Run("two versions of "+name, func(t *testing.T) {
			runProved(s, 3, 1, roundtest.Link(2, 0, name, roundtest.Flip(0))).Aborted(t, 2, round.CheckEcho)
		})
	}
}
