package keygen

import (
	"bytes"
	"fmt"
	"io"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

func testScheme(t testing.TB, name string) *gbfv.Scheme {
	t.Helper()
	set, err := params.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := set.Field("p128")
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(set, spec)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func source(label string, p round.Party) *sample.Source {
	d := round.Hash("keygen test", []byte(label), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

func run(s *gbfv.Scheme, n, dim int, options ...roundtest.Option) *roundtest.Outcome[Result] {
	return roundtest.Lockstep(n, func(rs round.Session) (round.Transition[Result], error) {
		return Start(Config{Session: rs, Scheme: s, Dim: dim, Source: source("run", rs.Self), Workers: 2})
	}, options...)
}

// joint is the secret key that nobody has.
func joint(s *gbfv.Scheme, results []Result) ring.NTT {
	sum := s.Q.NewNTT()
	for _, r := range results {
		s.Q.AddNTT(sum, sum, Lift(s, r.Secret))
	}
	return sum
}

// encrypt encrypts slots under the public key, with errors of the set's width.
func encrypt(t testing.TB, s *gbfv.Scheme, key *gbfv.PublicKey, slots field.Vec, label string) *gbfv.Ciphertext {
	t.Helper()
	g, err := sample.NewGaussian(s.Set.ErrorWidth)
	if err != nil {
		t.Fatal(err)
	}
	coeffs := s.Field.NewVec(s.Slots())
	s.Pack.Pack(coeffs, slots)
	mu := intpoly.New(s.N(), s.Pack.DigitWords())
	s.Pack.Digits(mu, coeffs)
	var r [3]intpoly.Poly
	for i := range r {
		v := make([]int64, s.N())
		g.Sample(v, source(label, 0).Stream("r", uint64(i)))
		r[i] = intpoly.New(s.N(), 1)
		intpoly.FromInt64(r[i], v)
	}
	ct := s.NewCiphertext()
	s.EncryptWith(ct, key, mu, r)
	return ct
}

func TestKeysWork(t *testing.T) {
	for _, set := range []string{"insecure-8", "insecure-8-64"} { // Gaussian and ternary secrets
		for _, n := range []int{2, 3, 5} {
			t.Run(fmt.Sprint(set, " ", n), func(t *testing.T) {
				const dim = 8
				s := testScheme(t, set)
				out := run(s, n, dim).OK(t)
				secret, keys := joint(s, out.Results), out.Results[0].Keys
				for _, r := range out.Results {
					if r.Keys.Digest(s, 2) != keys.Digest(s, 2) {
						t.Fatal("parties have different keys")
					}
				}
				f := s.Field
				a, b := f.NewVec(s.Slots()), f.NewVec(s.Slots())
				for _, v := range []field.Vec{a, b} {
					if err := f.Random(v, source("slots", round.Party(v.W[0])).Stream("v", uint64(len(v.W)))); err != nil {
						t.Fatal(err)
					}
				}
				f.MulVec(b, b, a)
				cta, ctb := encrypt(t, s, keys.Public, a, "a"), encrypt(t, s, keys.Public, b, "b")
				got, want := f.NewVec(s.Slots()), f.NewVec(s.Slots())
				if s.Decrypt(got, cta, secret); !f.EqualVec(got, a) {
					t.Fatal("the public key does not belong to the secret")
				}
				e := gbfv.NewEvaluator(s, keys.Keys(s))
				f.MulVec(want, a, b)
				if s.Decrypt(got, e.Mul(e.Left(cta), e.Right(ctb)), secret); !f.EqualVec(got, want) {
					t.Error("the relinearisation key is wrong")
				}
				for i := 1; i < dim; i++ {
					rotated, err := e.Rotate(cta, i, dim)
					if err != nil {
						t.Fatal(err)
					}
					for k := range s.Slots() {
						copy(want.At(k), a.At((k+i*s.Slots()/dim)%s.Slots()))
					}
					if s.Decrypt(got, rotated, secret); !f.EqualVec(got, want) {
						t.Errorf("rotation key %d is wrong", i)
					}
				}
			})
		}
	}
}

func frames(s *gbfv.Scheme, k *PublicKeys) (list [][]byte) {
	for i := range EncodedFrames(s, k.Dim) {
		list = append(list, bytes.Clone(k.Frame(s, i)))
	}
	return list
}

func reader(list [][]byte) func() ([]byte, error) {
	return func() ([]byte, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		f := list[0]
		list = list[1:]
		return f, nil
	}
}

func TestKeysAreStoredAndRead(t *testing.T) {
	s := testScheme(t, "insecure-6")
	keys := run(s, 2, 4).OK(t).Results[0].Keys
	list := frames(s, keys)
	again, err := Decode(s, 4, reader(list))
	if err != nil {
		t.Fatal(err)
	}
	if again.Digest(s, 1) != keys.Digest(s, 1) || again.PublicHash(s) != keys.PublicHash(s) || !again.Public.P1.Equal(keys.Public.P1) {
		t.Error("keys change when they are stored")
	}
	public, hash, err := DecodePublic(s, list[0], list[1])
	if err != nil || hash != keys.PublicHash(s) || !public.P0.Equal(keys.Public.P0) || !public.P1.Equal(keys.Public.P1) {
		t.Errorf("the public key alone changes: %v", err)
	}
	for name, bad := range map[string][][]byte{
		"nothing":        nil,
		"a short seed":   append([][]byte{list[0][1:]}, list[1:]...),
		"a frame less":   list[:len(list)-1],
		"a frame more":   append(slices.Clone(list), []byte{0}),
		"a short frame":  append(slices.Clone(list[:len(list)-1]), list[len(list)-1][1:]),
		"a residue of q": append(slices.Clone(list[:len(list)-1]), bytes.Repeat([]byte{0xff}, len(list[1]))),
	} {
		if _, err := Decode(s, 4, reader(bad)); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
}

// The last party waits for the others' shares and opens minus their sum plus a public key of its own.
func rogue(s *gbfv.Scheme, n int, own ring.Poly) (byzantine.Hooks, *roundtest.View) {
	v := &roundtest.View{}
	h := byzantine.On(byzantine.New(), stepFirst+"/open", func(b *round.Body) {
		list := make([][]byte, (*b).Frames())
		for i := range list {
			list[i], _ = (*b).Frame(i)
		}
		sum, p := own.Clone(), s.Q.NewPoly()
		for from := range round.Party(n - 1) {
			if err := codec.DecodePoly(p.C, s.Q.Primes(), v.Frames(from, round.Party(n-1), stepFirst+"/open")[1]); err != nil {
				panic(err)
			}
			s.Q.Sub(sum, sum, p)
		}
		list[0] = codec.AppendPoly(nil, sum.C, s.Q.Primes())
		*b = round.Frames(len(list), func(i int) ([]byte, error) { return list[i], nil })
	})
	return h, v
}

func TestARogueKeyShareIsRefused(t *testing.T) {
	s := testScheme(t, "insecure-6")
	own := s.Q.NewPoly()
	sample.Expand(own.C, s.Q.Primes(), bytes.Repeat([]byte{9}, 32), "a key of the last party's own")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		h, v := rogue(s, n, own)
		run(s, n, 1, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)).Blamed(t, culprit, round.CheckCommitment)

		// Without the commitment it succeeds: the joint public key is the one that the last party chose. (The culprit of this
		// test computes its own keys from its honest share, so the comparison of keys is off too.)
		h, v = rogue(s, n, own)
		options := []roundtest.Option{roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)}
		for p := range culprit {
			options = append(options, roundtest.Watch(p, byzantine.New().Skip(round.CheckCommitment).Skip(CheckAgree)))
		}
		out := run(s, n, 1, options...)
		got := s.Q.NewPoly()
		if out.Errors[0] != nil {
			t.Fatal(out.Errors[0])
		}
		if s.Q.Inverse(got, out.Results[0].Keys.Public.P0); !got.Equal(own) {
			t.Errorf("%d parties: the experiment without commitments does not fix the key", n)
		}
	}
}

// The first part of the relinearisation key: the last party makes the sum of all h0 a constant K and the sum of all h1
// zero. The second part of an honest party is then K s + e, which gives s by division: the commitment is what stops it.
func TestARushingPeerInTheRelinearisationKeyIsRefused(t *testing.T) {
	const n, culprit = 2, round.Party(1)
	s := testScheme(t, "insecure-6")
	k := new(big.Int).Rsh(s.Q.Modulus(), 30)
	constant := s.Q.NewPoly()
	coefficients := make([]*big.Int, s.N())
	for i := range coefficients {
		coefficients[i] = new(big.Int)
	}
	coefficients[0].Set(k)
	s.Q.FromBig(constant, coefficients)
	attack := func() (byzantine.Hooks, *roundtest.View) {
		v := &roundtest.View{}
		return byzantine.On(byzantine.New(), stepFirst+"/open", func(b *round.Body) {
			list := make([][]byte, (*b).Frames())
			digits := s.GadgetDigits()
			for i := range list {
				list[i], _ = (*b).Frame(i)
				target := s.Q.NewPoly()
				switch {
				case i >= 1 && i < 1+digits: // h0 follows the public key
					target = constant.Clone()
				case i < 1:
					continue
				}
				p := s.Q.NewPoly()
				if err := codec.DecodePoly(p.C, s.Q.Primes(), v.Frames(0, culprit, stepFirst+"/open")[i+1]); err != nil {
					panic(err)
				}
				s.Q.Sub(target, target, p)
				list[i] = codec.AppendPoly(nil, target.C, s.Q.Primes())
			}
			*b = round.Frames(len(list), func(i int) ([]byte, error) { return list[i], nil })
		}), v
	}
	h, v := attack()
	run(s, n, 1, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v)).Blamed(t, culprit, round.CheckCommitment)

	h, v = attack()
	var secret []int64
	watch := byzantine.On(byzantine.New().Skip(round.CheckCommitment), "keygen/party", func(p *party) { secret = p.secret })
	out := run(s, n, 1, roundtest.Cheat(culprit, h), roundtest.Rushing(culprit, v), roundtest.Watch(0, watch), roundtest.Record())
	second := out.Recording.Frames(0, culprit, stepSecond+"/open")
	p := s.Q.NewPoly()
	if err := codec.DecodePoly(p.C, s.Q.Primes(), second[1]); err != nil {
		t.Fatal(err)
	}
	half := new(big.Int).Rsh(k, 1)
	for i, c := range s.Q.ToBig(p) {
		c.Add(c, half)
		if got := c.Div(c, k).Int64(); got != secret[i] {
			t.Fatalf("coefficient %d of the secret is %d, the experiment without commitments finds %d", i, secret[i], got)
		}
	}
}

func TestMalformedKeyMessagesAreBlamed(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		for _, name := range []string{stepFirst + "/open", stepSecond + "/open"} {
			run(s, n, 1, roundtest.Rewrite(culprit, name, roundtest.Truncate(1))).Blamed(t, culprit, round.CheckShape)
		}
		run(s, n, 1, roundtest.Rewrite(culprit, nameAgree, roundtest.Flip(9))).Aborted(t, culprit, CheckAgree)
	}
	for _, name := range []string{stepFirst + "/commit", stepFirst + "/open", stepSecond + "/open"} {
		run(s, 3, 1, roundtest.Link(2, 0, name, roundtest.Flip(40))).Aborted(t, 2, round.CheckEcho)
	}
}

func TestStartRefusesDimensions(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, dim := range []int{-1, 0, 3, s.N()} {
		if _, err := Start(Config{Session: round.Session{Parties: 2}, Scheme: s, Dim: dim, Source: source("x", 0)}); err == nil {
			t.Errorf("rotation keys of dimension %d were accepted", dim)
		}
	}
}
