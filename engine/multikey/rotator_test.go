package multikey

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
)

// published holds the parts of keys that are sent to a helper that computes rotations.
type published struct {
	id     KeyID
	header []byte
	first  [32]byte
	chunks [][]byte
}

func publishedOf(k *Keys) published {
	p := published{id: k.ID(), header: k.Header(), first: sha256.Sum256(k.AppendChunk(nil, 0))}
	for i := 1; i < k.s.Chunks(); i++ {
		p.chunks = append(p.chunks, k.AppendChunk(nil, i))
	}
	return p
}

func (p published) receive(r *Rotator) (*RotationKey, error) {
	list := p.chunks
	return r.Receive(p.id, p.header, p.first, 2, func() ([]byte, error) {
		if len(list) == 0 {
			return nil, io.EOF
		}
		c := list[0]
		list = list[1:]
		return c, nil
	})
}

func rotatorOf(t testing.TB, name string) *Rotator {
	t.Helper()
	set, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := NewRotator(set)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Gates have the same words if a helper computes their rotations from rotation keys and exponents
// as if they are computed locally.
func TestRotationsElsewhere(t *testing.T) {
	s := newSubject(t, cheap, 3)
	r := rotatorOf(t, cheap)
	keys := map[KeyID]*RotationKey{}
	for _, k := range s.keys[:3] {
		x, err := publishedOf(k).receive(r)
		if err != nil {
			t.Fatal(err)
		}
		keys[k.ID()] = x
	}
	calls := 0
	elsewhere := func(ctx context.Context, list []Rotation) ([]Accumulator, error) {
		calls++
		out := make([]Accumulator, len(list))
		for i, x := range list {
			a, err := s.DecodeExponents(s.AppendExponents(nil, x.Exponents))
			if err != nil {
				return nil, err
			}
			err = r.Rotate(ctx, 2, keys[x.Key], [][]uint16{a}, func(_ int, a Accumulator) (err error) {
				out[i], err = s.DecodeAccumulator(AppendAccumulator(nil, a))
				return err
			})
			if err != nil {
				return nil, err
			}
		}
		own, err := s.e.Rotate(ctx, 2, list)
		if err != nil || !slices.EqualFunc(own, out, func(a, b Accumulator) bool { return slices.Equal(a, b) }) {
			t.Errorf("accumulators differ: %v", err)
		}
		return out, nil
	}
	const gates = 40 // more rotations than are passed on together
	a, b, c := s.of(t, true, everyParty(2), 1), s.of(t, false, []int{1, 2}, 2), s.encrypt(0, true, 3)
	tasks := func() (list []Task) {
		for range gates {
			list = append(list, Task{Gate: Nand, Dst: new(Ciphertext), A: a, B: b})
		}
		return append(list, Task{Gate: Mux, Dst: new(Ciphertext), A: a, B: b, C: c})
	}
	want, got := tasks(), tasks()
	if err := s.e.Run(t.Context(), 2, want); err != nil {
		t.Fatal(err)
	}
	if err := s.e.RunWith(t.Context(), 2, got, elsewhere); err != nil {
		t.Fatal(err)
	}
	for i := range want {
		if !got[i].Dst.Equal(want[i].Dst) {
			t.Fatalf("gate %d has different words", i)
		}
	}
	if calls != 2 {
		t.Errorf("rotations were passed on %d times", calls)
	}
	if first([]*job{{bootstraps: []*bootstrap{{in: a}}}}, 1) != 1 {
		t.Error("a gate with more rotations than are passed on together is not computed")
	}
}

// Malformed rotations and malformed results of rotations are refused.
func TestRotationRefusals(t *testing.T) {
	s := newSubject(t, cheap, 2)
	good := Rotation{Key: s.secrets[0].ID(), Exponents: make([]uint16, s.Dim)}
	high := slices.Clone(good.Exponents)
	high[s.Dim-1] = uint16(2 * s.N())
	for name, c := range map[string]struct {
		r    Rotation
		want error
	}{
		"too few exponents":  {Rotation{good.Key, good.Exponents[1:]}, ErrRotation},
		"too many exponents": {Rotation{good.Key, append(slices.Clone(good.Exponents), 0)}, ErrRotation},
		"no exponents":       {Rotation{Key: good.Key}, ErrRotation},
		"an exponent of 2N":  {Rotation{good.Key, high}, ErrRotation},
		"another key":        {Rotation{KeyID{1}, good.Exponents}, ErrUnknownKey},
	} {
		if _, err := s.e.Rotate(t.Context(), 1, []Rotation{good, c.r}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.DecodeExponents(s.AppendExponents(nil, high)); !errors.Is(err, ErrRotation) {
		t.Error(err)
	}
	if _, err := s.DecodeExponents(s.AppendExponents(nil, good.Exponents[1:])); !errors.Is(err, ErrRotation) {
		t.Error(err)
	}
	if _, err := s.DecodeAccumulator(make([]byte, s.AccumulatorSize()+8)); !errors.Is(err, ErrRotation) {
		t.Error(err)
	}
	a := s.of(t, true, everyParty(2), 1)
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		rotate Rotate
		want   error
	}{
		"too few": {func(context.Context, []Rotation) ([]Accumulator, error) { return nil, nil }, ErrRotation},
		"too short": {func(_ context.Context, list []Rotation) ([]Accumulator, error) {
			return make([]Accumulator, len(list)), nil
		}, ErrRotation},
		"an error": {func(context.Context, []Rotation) ([]Accumulator, error) { return nil, broken }, broken},
	} {
		err := s.e.RunWith(t.Context(), 1, []Task{{Gate: And, Dst: new(Ciphertext), A: a, B: a}}, c.rotate)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Rotation keys that do not match their name are refused.
func TestRotationKeyRefusals(t *testing.T) {
	s := newSubject(t, cheap, 2)
	r := rotatorOf(t, cheap)
	good := publishedOf(s.keys[0])
	if _, err := good.receive(r); err != nil {
		t.Fatal(err)
	}
	with := func(f func(p *published)) published {
		p := published{good.id, bytes.Clone(good.header), good.first, slices.Clone(good.chunks)}
		f(&p)
		return p
	}
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		p    published
		want error
	}{
		"another name":           {with(func(p *published) { p.id[0]++ }), ErrKeys},
		"another first chunk":    {with(func(p *published) { p.first[0]++ }), ErrKeys},
		"another seed":           {with(func(p *published) { p.header[70]++ }), ErrKeys},
		"another owner":          {with(func(p *published) { p.header[64]++ }), ErrKeys},
		"another string":         {with(func(p *published) { p.header[33]++ }), ErrKeys},
		"another set":            {with(func(p *published) { p.header[0]++ }), ErrSet},
		"a header that is long":  {with(func(p *published) { p.header = append(p.header, 0) }), ErrKeys},
		"a header that is short": {with(func(p *published) { p.header = p.header[:40] }), ErrKeys},
		"a flipped bit":          {with(func(p *published) { p.chunks[0] = flip(p.chunks[0], 100) }), ErrKeys},
		"nothing":                {with(func(p *published) { p.chunks = nil }), codec.ErrTruncated},
		"a short chunk":          {with(func(p *published) { p.chunks[0] = p.chunks[0][1:] }), codec.ErrTruncated},
		"a long chunk":           {with(func(p *published) { p.chunks[0] = append(bytes.Clone(p.chunks[0]), 0) }), codec.ErrTrailing},
		"a chunk more":           {with(func(p *published) { p.chunks = append(p.chunks, p.chunks[0]) }), codec.ErrTrailing},
	} {
		if _, err := c.p.receive(r); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for at := range 2 {
		n := 0
		_, err := r.Receive(good.id, good.header, good.first, 1, func() ([]byte, error) {
			if n++; n > at {
				return nil, broken
			}
			return good.chunks[n-1], nil
		})
		if !errors.Is(err, broken) {
			t.Errorf("after %d chunks: %v", at, err)
		}
	}
}

// Processes on one machine have one kind of arithmetic for each set, and Rotate stops at an error
// of ended.
func TestKinds(t *testing.T) {
	known := map[[32]byte]string{}
	for _, set := range Sets() {
		r := rotatorOf(t, set.Name)
		if r.Kind() != rotatorOf(t, set.Name).Kind() {
			t.Errorf("%s: two rotators report different kinds", set.Name)
		}
		if other := known[r.Kind()]; other != "" {
			t.Errorf("%s and %s have the same kind", set.Name, other)
		}
		known[r.Kind()] = set.Name
	}
	s, r := newSubject(t, cheap, 1), rotatorOf(t, cheap)
	if s.Kind() != r.Kind() {
		t.Error("the rotator and its scheme differ in kind")
	}
	k, err := publishedOf(s.keys[0]).receive(r)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	n := 0
	err = r.Rotate(ctx, 1, k, [][]uint16{make([]uint16, s.Dim), make([]uint16, s.Dim)}, func(int, Accumulator) error {
		n++
		cancel()
		return nil
	})
	if n != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("%d rotations, and %v", n, err)
	}
}

func FuzzExponents(f *testing.F) {
	s := newSubject(f, cheap, 1)
	f.Add(make([]byte, s.ExponentsSize()))
	f.Add(bytes.Repeat([]byte{255, 1}, s.Dim))
	f.Add(bytes.Repeat([]byte{0, 2}, s.Dim))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := s.DecodeExponents(b)
		if err != nil {
			if !errors.Is(err, ErrRotation) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(s.AppendExponents(nil, list), b) {
			t.Error("another encoding")
		}
		if _, err := s.e.Rotate(t.Context(), 1, []Rotation{{s.secrets[0].ID(), list}}); err != nil {
			t.Error(err)
		}
	})
}

func FuzzAccumulator(f *testing.F) {
	s := newSubject(f, cheap, 1)
	a := s.encrypt(0, true, 9)
	f.Add(make([]byte, s.AccumulatorSize()))
	f.Add(bytes.Repeat([]byte{255}, s.AccumulatorSize()))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := s.DecodeAccumulator(b)
		if err != nil {
			if !errors.Is(err, ErrRotation) {
				t.Error(err)
			}
			return
		}
		if !bytes.Equal(AppendAccumulator(nil, x), b) {
			t.Error("another encoding")
		}
		// Every string of the right length decodes to an accumulator.
		dst := new(Ciphertext)
		err = s.e.RunWith(t.Context(), 1, []Task{{Gate: And, Dst: dst, A: a, B: a}}, func(context.Context, []Rotation) ([]Accumulator, error) {
			return []Accumulator{x}, nil
		})
		if err != nil || s.Check(dst) != nil {
			t.Error(err)
		}
	})
}

func FuzzRotationKey(f *testing.F) {
	s := newSubject(f, cheap, 1)
	r := rotatorOf(f, cheap)
	good := publishedOf(s.keys[0])
	f.Add(good.header, good.first[:], good.chunks[0])
	f.Add(good.header[1:], good.first[:], good.chunks[0][1:])
	f.Fuzz(func(t *testing.T, header, first, chunk []byte) {
		p := published{id: good.id, header: header, first: sha256.Sum256(first), chunks: [][]byte{chunk}}
		if len(first) == 32 {
			p.first = [32]byte(first)
		}
		k, err := p.receive(r)
		if err == nil && (k == nil || !bytes.Equal(header, good.header) || !bytes.Equal(chunk, good.chunks[0])) {
			t.Error("different keys have the same name")
		}
		if err != nil && !errors.Is(err, ErrKeys) && !errors.Is(err, ErrSet) {
			t.Error(err)
		}
	})
}
