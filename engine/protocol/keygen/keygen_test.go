package keygen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
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
		return Start(Config{Session: rs, Scheme: s, Dim: dim, Security: Passive, Source: source("run", rs.Self), Workers: 2})
	}, options...)
}

// joint returns the secret key, which no party knows.
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
		t.Error("the keys changed when they were stored")
	}
	public, hash, err := DecodePublic(s, list[0], list[1])
	if err != nil || hash != keys.PublicHash(s) || !public.P0.Equal(keys.Public.P0) || !public.P1.Equal(keys.Public.P1) {
		t.Errorf("the public key alone changed: %v", err)
	}
	last := len(list) - 1
	for name, c := range map[string]struct {
		frames [][]byte
		want   error
	}{
		"nothing":        {nil, codec.ErrTruncated},
		"a short seed":   {append([][]byte{list[0][1:]}, list[1:]...), nil},
		"one frame less": {list[:last], codec.ErrTruncated},
		"one frame more": {append(slices.Clone(list), []byte{0}), codec.ErrTrailing},
		"a short frame":  {append(slices.Clone(list[:last]), list[last][1:]), codec.ErrTruncated},
		"a long frame":   {append(slices.Clone(list[:last]), append(bytes.Clone(list[last]), 0)), codec.ErrTrailing},
		"a residue of q": {append(slices.Clone(list[:last]), residue(s, list[last])), codec.ErrRange},
	} {
		if _, err := Decode(s, 4, reader(c.frames)); err == nil || c.want != nil && !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	broken := errors.New("disk is broken")
	for at := range len(list) + 1 {
		next := reader(list[:at])
		_, err := Decode(s, 4, func() ([]byte, error) {
			f, err := next()
			if err == io.EOF {
				err = broken
			}
			return f, err
		})
		if !errors.Is(err, broken) {
			t.Errorf("reading fails at frame %d: %v", at, err)
		}
	}
	for _, d := range []int{-4, 0, 3, s.N()} {
		if _, err := Decode(s, d, reader(list)); err == nil {
			t.Errorf("read keys of dimension %d", d)
		}
	}
}

// residue replaces the first residue of a frame by q.
func residue(s *gbfv.Scheme, frame []byte) []byte {
	q := s.Q.Primes()[0]
	f := bytes.Clone(frame)
	for bit := range bits.Len64(q) {
		f[bit/8] = f[bit/8]&^(1<<(bit%8)) | byte(q>>bit&1)<<(bit%8)
	}
	return f
}

// The encoding consists of the seed, P0, the relinearisation key, and the rotation keys by rotation
// and digit.
func TestOrderOfFrames(t *testing.T) {
	const dim = 8
	s := testScheme(t, "insecure-6")
	k := run(s, 2, dim).OK(t).Results[0].Keys
	want := []ring.NTT{k.Public.P0}
	want = append(append(want, k.Relin.K0...), k.Relin.K1...)
	for i := 1; i < dim; i++ {
		want = append(want, k.K0[gbfv.Galois(s.N(), i, dim)]...)
	}
	if len(want)+1 != EncodedFrames(s, dim) || len(k.K0) != dim-1 || !bytes.Equal(k.Frame(s, 0), k.Seed[:]) {
		t.Fatal("wrong number of keys or wrong seed")
	}
	p, v := s.Q.NewPoly(), s.Q.NewNTT()
	for i := range want {
		if err := codec.DecodePoly(p.C, s.Q.Primes(), k.Frame(s, i+1)); err != nil {
			t.Fatal(err)
		}
		if s.Q.Forward(v, p); !v.Equal(want[i]) {
			t.Errorf("frame %d is another polynomial", i+1)
		}
	}
}

// Keys of dimension d rotate by steps of every smaller dimension, and are the same as keys made
// only for that dimension.
func TestDimensions(t *testing.T) {
	s := testScheme(t, "insecure-8")
	results := map[int][]Result{}
	for _, dim := range []int{1, 4, 16} {
		results[dim] = run(s, 2, dim).OK(t).Results
		keys := results[dim][0].Keys
		if n := len(keys.K0); n != dim-1 || keys.Dim != dim {
			t.Errorf("%d rotation keys of dimension %d", n, dim)
		}
		if keys.Digest(s, 1) != keys.Digest(s, 3) {
			t.Error("the digest depends on the number of workers")
		}
	}
	table, few := results[16][0].Keys.Keys(s), results[4][0].Keys.Keys(s)
	secret := joint(s, results[16])
	a, want, got := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
	if err := s.Field.Random(a, source("slots", 0).Stream("a")); err != nil {
		t.Fatal(err)
	}
	ct := encrypt(t, s, results[16][0].Keys.Public, a, "a")
	e := gbfv.NewEvaluator(s, table)
	for _, dim := range []int{2, 4, 8, 16} {
		for i := 1; i < dim; i++ {
			rotated, err := e.Rotate(ct, i, dim)
			if err != nil {
				t.Fatal(err)
			}
			for k := range s.Slots() {
				copy(want.At(k), a.At((k+i*s.Slots()/dim)%s.Slots()))
			}
			if s.Decrypt(got, rotated, secret); !s.Field.EqualVec(got, want) {
				t.Errorf("rotation %d of dimension %d is wrong", i, dim)
			}
			key, err := few.Rotation(i, dim)
			if (err == nil) != (dim <= 4 || i%(dim/4) == 0) {
				t.Errorf("keys of dimension 4 for rotation %d of %d: %v", i, dim, err)
			}
			if err != nil && !errors.Is(err, gbfv.ErrNoKey) {
				t.Error(err)
			}
			if err == nil {
				long, _ := table.Rotation(i, dim)
				// The runs have the same randomness and reference string, so they have the same
				// keys.
				if !key.K0[0].Equal(long.K0[0]) || !key.K1[0].Equal(long.K1[0]) {
					t.Errorf("rotation key %d of %d depends on the dimension of the run", i, dim)
				}
			}
		}
	}
	if _, err := results[1][0].Keys.Keys(s).Rotation(1, 2); !errors.Is(err, gbfv.ErrNoKey) {
		t.Errorf("a rotation without keys: %v", err)
	}
}

// Decode returns an error, or keys whose encoding is its input.
func FuzzDecode(f *testing.F) {
	const dim = 2
	s := testScheme(f, "insecure-6")
	results := run(s, 2, dim).Results
	size := codec.PolySize(s.N(), s.Q.Primes())
	var seed []byte
	for _, frame := range frames(s, results[0].Keys) {
		seed = append(seed, frame...)
	}
	f.Add(seed)
	f.Add(seed[:len(seed)-1])
	f.Add(append(bytes.Clone(seed), make([]byte, size)...))
	f.Fuzz(func(t *testing.T, data []byte) {
		var list [][]byte
		for rest, n := data, 32; len(rest) > 0; n = size {
			n = min(n, len(rest))
			list, rest = append(list, rest[:n]), rest[n:]
		}
		k, err := Decode(s, dim, reader(list))
		if err != nil {
			return
		}
		if again := bytes.Join(frames(s, k), nil); !bytes.Equal(again, data) {
			t.Error("accepted another encoding")
		}
	})
}

// A public key is the unique encoding of its decoded form, or is rejected.
func FuzzDecodePublic(f *testing.F) {
	s := testScheme(f, "insecure-6")
	list := frames(s, run(s, 2, 1).Results[0].Keys)
	f.Add(list[0], list[1])
	f.Add(list[0][1:], list[1])
	f.Add(list[0], list[1][1:])
	f.Add(list[0], append(bytes.Clone(list[1]), 0))
	f.Add(list[0], residue(s, list[1]))
	f.Fuzz(func(t *testing.T, seed, frame []byte) {
		key, _, err := DecodePublic(s, seed, frame)
		if err != nil {
			return
		}
		p := s.Q.NewPoly()
		s.Q.Inverse(p, key.P0)
		if again := codec.AppendPoly(nil, p.C, s.Q.Primes()); len(seed) != 32 || !bytes.Equal(again, frame) {
			t.Error("accepted another encoding")
		}
	})
}

// A peer's share of a key is added unchanged to the sum of its slot, or the peer is blamed.
func FuzzShare(f *testing.F) {
	s := testScheme(f, "insecure-6")
	valid := frames(s, run(s, 2, 1).Results[0].Keys)[1]
	for _, data := range [][]byte{valid, valid[1:], append(bytes.Clone(valid), 0), residue(s, valid), nil} {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		sums := &folded{scheme: s, sum: []ring.Poly{s.Q.NewPoly()}, buffer: s.Q.NewPoly()}
		err := sums.Frame(context.Background(), 1, 0, false, data)
		var blame *round.Blame
		switch again := codec.AppendPoly(nil, sums.sum[0].C, s.Q.Primes()); {
		case err != nil && (!errors.As(err, &blame) || blame.Party != 1 || blame.Check != round.CheckShape):
			t.Errorf("got %v", err)
		case err == nil && !bytes.Equal(again, data):
			t.Error("accepted another encoding")
		}
	})
}

func TestMalformedKeyMessagesAreBlamed(t *testing.T) {
	s := testScheme(t, "insecure-6")
	at := func(i int, change func(f []byte) []byte) roundtest.Edit {
		return func(_ *roundtest.View, list [][]byte) [][]byte {
			if i < 0 {
				i += len(list)
			}
			list[i] = change(list[i])
			return list
		}
	}
	q := func(f []byte) []byte { return residue(s, f) }
	longer := func(f []byte) []byte { return append(f, 0) }
	for _, n := range []int{2, 3} {
		culprit := round.Party(n - 1)
		for _, name := range []string{stepFirst + "/open", stepSecond + "/open"} {
			for _, c := range []struct {
				what  string
				edit  roundtest.Edit
				check string
			}{
				{"a residue of q", at(1, q), round.CheckShape},
				{"a residue of q at the end", at(-1, q), round.CheckShape},
				{"cut short", roundtest.Truncate(1), round.CheckShape},
				{"one byte more", at(1, longer), round.CheckShape},
				{"one byte more at the end", roundtest.Extend(1), round.CheckSize},
				{"a short nonce", at(0, func(f []byte) []byte { return f[1:] }), round.CheckShape},
				{"one frame less", func(_ *roundtest.View, list [][]byte) [][]byte { return list[:len(list)-1] }, round.CheckShape},
				{"one frame more", roundtest.ExtraFrame(nil), round.CheckShape},
				{"another polynomial", at(-1, func(f []byte) []byte { return make([]byte, len(f)) }), round.CheckCommitment},
				{"another nonce", roundtest.Flip(0), round.CheckCommitment},
			} {
				t.Run(fmt.Sprint(name, ": ", c.what, ", ", n, " parties"), func(t *testing.T) {
					run(s, n, 2, roundtest.Rewrite(culprit, name, c.edit)).Blamed(t, culprit, c.check)
				})
			}
			run(s, n, 2, roundtest.Rewrite(culprit, name, roundtest.Drop)).Stalls(t, culprit, name)
		}
		run(s, n, 2, roundtest.Rewrite(culprit, stepSeed+"/open", roundtest.Flip(-1))).Blamed(t, culprit, round.CheckCommitment)
		run(s, n, 2, roundtest.Rewrite(culprit, nameAgree, roundtest.Flip(9))).Aborted(t, culprit, CheckAgree)
		run(s, n, 2, roundtest.Rewrite(culprit, nameAgree, roundtest.Truncate(1))).Aborted(t, culprit, CheckAgree)
	}
	for _, name := range []string{
		stepSeed + "/commit", stepSeed + "/open", stepFirst + "/commit", stepFirst + "/open",
		stepSecond + "/commit", stepSecond + "/open", nameAgree,
	} {
		t.Run("two versions of "+name, func(t *testing.T) {
			run(s, 3, 1, roundtest.Link(2, 0, name, roundtest.Flip(40))).Aborted(t, 2, round.CheckEcho)
		})
	}
}

func TestStartRefusesDimensions(t *testing.T) {
	s := testScheme(t, "insecure-6")
	for _, dim := range []int{-1, 0, 3, s.N()} {
		for _, security := range []string{Passive, Proved} {
			if _, err := Start(Config{Session: round.Session{Parties: 2}, Scheme: s, Dim: dim, Security: security, Source: source("x", 0)}); err == nil {
				t.Errorf("accepted %s rotation keys of dimension %d", security, dim)
			}
		}
	}
}
