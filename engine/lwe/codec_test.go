package lwe_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/lwe"
)

func randomRing(s *lwe.Scheme, r *rand.Rand) *lwe.Ring {
	c := s.NewRing()
	for _, v := range [][]uint64{c.A, c.B} {
		for i := range v {
			v[i] = r.Uint64N(s.Q)
		}
	}
	return c
}

func TestCodec(t *testing.T) {
	eachScheme(t, func(t *testing.T, s *lwe.Scheme) {
		r := rand.New(rand.NewPCG(2, 2))
		ring := randomRing(s, r)
		one := s.NewLWE()
		s.Extract(one, ring, 3)
		one.A[0], ring.A[0] = s.Q-1, s.Q-1
		a, b := s.AppendLWE(nil, one), s.AppendRing([]byte("x"), ring)[1:]
		if len(a) != s.LWESize() || len(b) != s.RingSize() {
			t.Errorf("%d and %d bytes, want %d and %d", len(a), len(b), s.LWESize(), s.RingSize())
		}
		one2, ring2 := s.NewLWE(), s.NewRing()
		if err := errors.Join(s.DecodeLWE(one2, a), s.DecodeRing(ring2, b)); err != nil {
			t.Fatal(err)
		}
		if !one.Equal(one2) || !ring.Equal(ring2) {
			t.Error("decoding gives another ciphertext")
		}
		for name, c := range map[string]struct {
			change func(b []byte) []byte
			want   error
		}{
			"empty":    {func([]byte) []byte { return nil }, codec.ErrTruncated},
			"short":    {func(b []byte) []byte { return b[:len(b)-1] }, codec.ErrTruncated},
			"long":     {func(b []byte) []byte { return append(b, 0) }, codec.ErrTrailing},
			"residues": {func(b []byte) []byte { return bytes.Repeat([]byte{0xff}, len(b)) }, codec.ErrRange},
		} {
			if err := s.DecodeLWE(one2, c.change(bytes.Clone(a))); !errors.Is(err, c.want) {
				t.Errorf("%s LWE ciphertext: %v", name, err)
			}
			if err := s.DecodeRing(ring2, c.change(bytes.Clone(b))); !errors.Is(err, c.want) {
				t.Errorf("%s ring ciphertext: %v", name, err)
			}
		}
		padded := bytes.Clone(a)
		padded[len(padded)-1] |= 0x80
		if err := s.DecodeLWE(one2, padded); !errors.Is(err, codec.ErrRange) {
			t.Errorf("padding that is not zero: %v", err)
		}
	})
}

func FuzzLWE(f *testing.F) {
	s := newScheme(f, tiny[1])
	r := rand.New(rand.NewPCG(3, 3))
	c := s.NewLWE()
	s.Extract(c, randomRing(s, r), 0)
	f.Add(s.AppendLWE(nil, c))
	f.Add(make([]byte, s.LWESize()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := s.NewLWE()
		if s.DecodeLWE(c, b) != nil {
			return
		}
		if err := s.Check(c); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(s.AppendLWE(nil, c), b) {
			t.Error("a second encoding")
		}
	})
}

func FuzzRing(f *testing.F) {
	s := newScheme(f, tiny[1])
	f.Add(s.AppendRing(nil, randomRing(s, rand.New(rand.NewPCG(4, 4)))))
	f.Add(make([]byte, s.RingSize()))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := s.NewRing()
		if s.DecodeRing(c, b) != nil {
			return
		}
		if err := s.CheckRing(c); err != nil {
			t.Error(err)
		}
		if !bytes.Equal(s.AppendRing(nil, c), b) {
			t.Error("a second encoding")
		}
	})
}
