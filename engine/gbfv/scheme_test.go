package gbfv_test

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/gbfv/gbfvtest"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/sample"
)

var seed = bytes.Repeat([]byte{7}, 32)

// schemes caches schemes, because large fields take a while.
var schemes = map[string]*gbfv.Scheme{}

func newScheme(t testing.TB, set, name string) *gbfv.Scheme {
	t.Helper()
	if s, ok := schemes[set+"/"+name]; ok {
		return s
	}
	p, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	f, err := p.Field(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(p, f)
	if err != nil {
		t.Fatal(err)
	}
	schemes[set+"/"+name] = s
	return s
}

// eachTiny runs a test for every field of every insecure set, at ring degrees up to 2^8.
func eachTiny(t *testing.T, run func(t *testing.T, s *gbfv.Scheme)) {
	for _, set := range params.Sets() {
		if !set.Insecure || set.LogN > 8 {
			continue
		}
		for _, f := range set.Fields {
			t.Run(set.Name+"/"+f.Name, func(t *testing.T) { run(t, newScheme(t, set.Name, f.Name)) })
		}
	}
}

func wantSlots(t *testing.T, f *field.Field, what string, got, want field.Vec) {
	t.Helper()
	if !f.EqualVec(got, want) {
		t.Errorf("%s: the slots are wrong", what)
	}
}

func mulVec(f *field.Field, a, b field.Vec) field.Vec {
	c := f.NewVec(a.Len())
	f.MulVec(c, a, b)
	return c
}

func TestDeltaIsRoundedQuotient(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		// P·Delta = q·1 + small: with Delta = q/P - e, P·Delta = q - P·e, so every coefficient is
		// at most (b+1)/2.
		delta := s.Q.ToBig(s.Delta())
		b := s.Spec.B
		bound := new(big.Int).Add(b, big.NewInt(2))
		n, d := s.N(), s.Slots()
		nonzero := 0
		for k := range n {
			if delta[k].Sign() != 0 {
				nonzero++
			}
			v := new(big.Int).Mul(b, delta[k])
			v.Neg(v)
			if k >= d {
				v.Add(v, delta[k-d])
			} else {
				v.Sub(v, delta[k-d+n])
			}
			v.Mod(v, s.Q.Modulus()) // q vanishes
			if w := new(big.Int).Sub(s.Q.Modulus(), v); w.Cmp(v) < 0 {
				v = w
			}
			if v.Lsh(v, 1).Cmp(bound) > 0 {
				t.Fatalf("coefficient %d of P·Delta is %v off", k, v)
			}
		}
		if nonzero > s.Spec.M {
			t.Errorf("Delta has %d coefficients, want at most %d", nonzero, s.Spec.M)
		}
	})
}

func TestEncryptAddDouble(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		k := gbfvtest.New(s, 2, 1, seed)
		f := s.Field
		x, y := k.Random(0), k.Random(1)
		a, b := k.Encrypt(x, 0), k.Encrypt(y, 1)
		wantSlots(t, f, "fresh", k.Decrypt(a), x)
		sum, want := s.NewCiphertext(), f.NewVec(s.Slots())
		s.Add(sum, a, b)
		f.AddVec(want, x, y)
		wantSlots(t, f, "sum", k.Decrypt(sum), want)
		s.Sub(sum, sum, b)
		if !sum.Equal(a) {
			t.Error("a+b-b differs from a")
		}
		s.Double(sum, a)
		f.AddVec(want, x, x)
		wantSlots(t, f, "double", k.Decrypt(sum), want)
		// X^D is b in the plaintext ring, and X^N is -1.
		copy(sum.C0.C[0], a.C0.C[0])
		sum = a.Clone()
		s.AddMonomial(sum, a, s.N()+s.Slots())
		factor := f.NewElement()
		f.SetBig(factor, new(big.Int).Sub(big.NewInt(1), s.Spec.B))
		f.ScaleVec(want, x, factor)
		wantSlots(t, f, "monomial", k.Decrypt(sum), want)
	})
}

func TestMulPlain(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		k := gbfvtest.New(s, 2, 1, seed)
		x, y := k.Random(0), k.Random(1)
		coeffs := s.Field.NewVec(s.Slots())
		s.Pack.Pack(coeffs, y)
		mu := intpoly.New(s.N(), s.Pack.DigitWords())
		s.Pack.Digits(mu, coeffs)
		ct := k.Encrypt(x, 0)
		s.MulPlain(ct, ct, mu)
		wantSlots(t, s.Field, "product", k.Decrypt(ct), mulVec(s.Field, x, y))
	})
}

// TestEncryptWithIsLinear checks the linearity on which the proof of plaintext knowledge relies.
func TestEncryptWithIsLinear(t *testing.T) {
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		k := gbfvtest.New(s, 2, 1, seed)
		g, err := sample.NewGaussian(1000)
		if err != nil {
			t.Fatal(err)
		}
		stream := sample.NewSource(seed).Stream("linear")
		w := s.MessageWords()
		var mu, sum intpoly.Poly
		var r, rSum [3]intpoly.Poly
		want := s.NewCiphertext()
		sum = intpoly.New(s.N(), w+1)
		for i := range rSum {
			rSum[i] = intpoly.New(s.N(), 1)
		}
		for e := range 3 {
			mu = intpoly.New(s.N(), w)
			coeffs := s.Field.NewVec(s.Slots())
			if err := s.Field.Random(coeffs, stream); err != nil {
				t.Fatal(err)
			}
			s.RandPack(mu, coeffs, g, stream)
			v := make([]int64, s.N())
			for i := range r {
				r[i] = intpoly.New(s.N(), 1)
				g.Sample(v, stream)
				intpoly.FromInt64(r[i], v)
			}
			ct := s.NewCiphertext()
			s.EncryptWith(ct, k.Public, mu, r)
			shift := e * (s.N() - 3)
			s.AddMonomial(want, ct, shift)
			intpoly.AddMonomial(sum, mu, shift)
			for i := range r {
				intpoly.AddMonomial(rSum[i], r[i], shift)
			}
		}
		got := s.NewCiphertext()
		s.EncryptWith(got, k.Public, sum, rSum)
		if !got.Equal(want) {
			t.Error("encryption of the combination differs from the combination of encryptions")
		}
	})
}

func TestRandPack(t *testing.T) {
	const width = 30
	g, err := sample.NewGaussian(width)
	if err != nil {
		t.Fatal(err)
	}
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		stream := sample.NewSource(seed).Stream("randpack")
		bound := new(big.Int).Add(s.Spec.B, big.NewInt(1))
		bound.Mul(bound, big.NewInt(6*width))
		coeffs, back := s.Field.NewVec(s.Slots()), s.Field.NewVec(s.Slots())
		if err := s.Field.Random(coeffs, stream); err != nil {
			t.Fatal(err)
		}
		mu := intpoly.New(s.N(), s.MessageWords())
		s.RandPack(mu, coeffs, g, stream)
		s.Pack.Reduce(back, mu)
		wantSlots(t, s.Field, "message", back, coeffs)
		if !mu.Within(bound) {
			t.Error("the message is too large")
		}

		alpha := coeffs.At(0)
		s.RandPackDiag(mu, alpha, g, stream)
		for k := range s.N() {
			if k%s.Slots() != 0 && mu.Big(k).Sign() != 0 {
				t.Fatalf("coefficient %d of a diagonal message is not 0", k)
			}
		}
		s.Pack.Reduce(back, mu)
		slots := s.Field.NewVec(s.Slots())
		s.Pack.Unpack(slots, back)
		for i := range slots.Len() {
			if !s.Field.Equal(slots.At(i), alpha) {
				t.Fatalf("slot %d of a diagonal message differs", i)
			}
		}
		if !mu.Within(bound) {
			t.Error("the diagonal message is too large")
		}
	})
}

// EncryptDiagWith encrypts a message of the subring as EncryptWith does, and ignores coefficients
// outside the subring.
func TestEncryptDiag(t *testing.T) {
	g, err := sample.NewGaussian(20)
	if err != nil {
		t.Fatal(err)
	}
	eachTiny(t, func(t *testing.T, s *gbfv.Scheme) {
		k := gbfvtest.New(s, 2, 1, seed)
		stream := sample.NewSource(seed).Stream("encrypt diag")
		mu := intpoly.New(s.N(), s.MessageWords()+1)
		s.RandPackDiag(mu, k.Random(1).At(0), g, stream)
		var r [3]intpoly.Poly
		z := make([]int64, s.N())
		for i := range r {
			g.Sample(z, stream)
			r[i] = intpoly.New(s.N(), 1)
			intpoly.FromInt64(r[i], z)
		}
		want, got := s.NewCiphertext(), s.NewCiphertext()
		s.EncryptWith(want, k.Public, mu, r)
		s.EncryptDiagWith(got, k.Public, mu, r)
		if !got.Equal(want) {
			t.Error("another ciphertext")
		}
		mu.SetBig(1, big.NewInt(7))
		mu.SetBig(s.N()-1, big.NewInt(-7))
		if s.EncryptDiagWith(got, k.Public, mu, r); !got.Equal(want) {
			t.Error("a coefficient outside the subring changes the ciphertext")
		}
	})
}
