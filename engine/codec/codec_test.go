package codec

import (
	"bytes"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

var primes = []uint64{3, 17, 97, 65537, 562949953438721, 2305843009213693951}

func randomPoly(r *rand.Rand, n int) [][]uint64 {
	c := make([][]uint64, len(primes))
	for i, q := range primes {
		c[i] = make([]uint64, n)
		for k := range c[i] {
			c[i][k] = r.Uint64N(q)
		}
		c[i][0], c[i][n-1] = 0, q-1
	}
	return c
}

func zero(n int) [][]uint64 {
	c := make([][]uint64, len(primes))
	for i := range c {
		c[i] = make([]uint64, n)
	}
	return c
}

func TestPolyRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1, 2, 3, 7, 16, 65} {
		c := randomPoly(r, n)
		b := AppendPoly([]byte("before"), c, primes)[6:]
		if len(b) != PolySize(n, primes) {
			t.Fatalf("n = %d: %d bytes, PolySize returns %d", n, len(b), PolySize(n, primes))
		}
		d := zero(n)
		if err := DecodePoly(d, primes, b); err != nil {
			t.Fatal(err)
		}
		for i := range c {
			for k := range c[i] {
				if c[i][k] != d[i][k] {
					t.Fatalf("n = %d: residue %d of prime %d is %d, was %d", n, k, i, d[i][k], c[i][k])
				}
			}
		}
	}
}

func TestPolyRefuses(t *testing.T) {
	const n = 5
	good := AppendPoly(nil, randomPoly(rand.New(rand.NewPCG(3, 4)), n), primes)
	equal := zero(n)
	for i, q := range primes {
		equal[i][2] = q // fits the width of every prime here
	}
	padded := bytes.Clone(good)
	padded[1] |= 0x80 // 5 values of 2 bits leave 6 bits of padding in the second byte
	for _, c := range []struct {
		name string
		b    []byte
		want error
	}{
		{"empty", nil, ErrTruncated},
		{"short", good[:len(good)-1], ErrTruncated},
		{"long", append(bytes.Clone(good), 0), ErrTrailing},
		{"residue equal to its prime", AppendPoly(nil, equal, primes), ErrRange},
		{"padding", padded, ErrRange},
	} {
		if err := DecodePoly(zero(n), primes, c.b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
}

func TestSignedRoundTripAndBounds(t *testing.T) {
	for _, width := range []int{2, 7, 8, 15, 63, 64, 65, 70, 127, 128, 140} {
		for _, spare := range []int{0, 1} {
			signedRoundTrip(t, width, wordsFor(width)+spare)
		}
	}
}

func signedRoundTrip(t *testing.T, width, words int) {
	t.Helper()
	p := intpoly.New(9, words)
	top := new(big.Int).Lsh(big.NewInt(1), uint(width-1))
	low := new(big.Int).Neg(top)
	high := new(big.Int).Sub(top, big.NewInt(1))
	for k, v := range []*big.Int{new(big.Int), big.NewInt(1), big.NewInt(-1), low, high, new(big.Int).Add(low, big.NewInt(1)), big.NewInt(-2), high, low} {
		p.SetBig(k, v)
	}
	b, err := AppendSigned(nil, p, width)
	if err != nil {
		t.Fatal(err)
	}
	q := intpoly.New(9, p.W)
	if err := DecodeSigned(q, width, b); err != nil {
		t.Fatal(err)
	}
	for k := range p.N() {
		if p.Big(k).Cmp(q.Big(k)) != 0 {
			t.Errorf("width %d: %v became %v", width, p.Big(k), q.Big(k))
		}
	}
	for _, v := range []*big.Int{top, new(big.Int).Sub(low, big.NewInt(1))} {
		if width == 64*words {
			break // every coefficient fits
		}
		p.SetBig(3, v)
		if _, err := AppendSigned(nil, p, width); !errors.Is(err, ErrRange) {
			t.Errorf("width %d: encoded %v (%v)", width, v, err)
		}
	}
	if err := DecodeSigned(q, width, b[1:]); !errors.Is(err, ErrTruncated) {
		t.Errorf("short: %v", err)
	}
	if err := DecodeSigned(q, width, append(bytes.Clone(b), 0)); !errors.Is(err, ErrTrailing) {
		t.Errorf("long: %v", err)
	}
	if 9*width%8 != 0 {
		bad := bytes.Clone(b)
		bad[len(bad)-1] |= 0x80
		if err := DecodeSigned(q, width, bad); !errors.Is(err, ErrRange) {
			t.Errorf("width %d, padding: %v", width, err)
		}
	}
}

func FuzzDecodePoly(f *testing.F) {
	f.Add(AppendPoly(nil, randomPoly(rand.New(rand.NewPCG(5, 6)), 4), primes))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		c := zero(4)
		if DecodePoly(c, primes, b) == nil && !bytes.Equal(AppendPoly(nil, c, primes), b) {
			t.Fatal("accepted an encoding that is not canonical")
		}
	})
}

func FuzzDecodeSigned(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8, 9}, uint8(13))
	f.Add(make([]byte, 40), uint8(70))
	f.Fuzz(func(t *testing.T, b []byte, w uint8) {
		width := 2 + int(w)%150
		for _, words := range []int{wordsFor(width), 3} {
			p := intpoly.New(5, words)
			if DecodeSigned(p, width, b) != nil {
				return
			}
			if again, err := AppendSigned(nil, p, width); err != nil || !bytes.Equal(again, b) {
				t.Fatalf("accepted an encoding that is not canonical: %v", err)
			}
		}
	})
}

func BenchmarkPoly(b *testing.B) {
	q := []uint64{562949953438721}
	c := [][]uint64{make([]uint64, 16384)}
	for k := range c[0] {
		c[0][k] = uint64(k) * 0x9e3779b97f4a7c15 % q[0]
	}
	enc := AppendPoly(nil, c, q)
	b.Run("encode", func(b *testing.B) {
		b.SetBytes(int64(len(enc)))
		for range b.N {
			enc = AppendPoly(enc[:0], c, q)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.SetBytes(int64(len(enc)))
		for range b.N {
			if err := DecodePoly(c, q, enc); err != nil {
				b.Fatal(err)
			}
		}
	})
}
