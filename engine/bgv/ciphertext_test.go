package bgv

import (
	"bytes"
	"errors"
	"math/big"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/engine/ring"
)

// world has a key that Lattigo made, and the objects of its users.
type world struct {
	*Scheme
	secret    *rlwe.SecretKey
	encryptor *rlwe.Encryptor
	evaluator func(scaleInvariant bool) *bgv.Evaluator
}

func newWorld(t testing.TB, name string) *world {
	t.Helper()
	set, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(set)
	if err != nil {
		t.Fatal(err)
	}
	g := rlwe.NewKeyGenerator(s.Lattigo)
	secret, public := g.GenKeyPairNew()
	keys := rlwe.NewMemEvaluationKeySet(g.GenRelinearizationKeyNew(secret), g.GenGaloisKeyNew(s.Galois(3), secret))
	return &world{s, secret, rlwe.NewEncryptor(s.Lattigo, public), func(invariant bool) *bgv.Evaluator {
		return bgv.NewEvaluator(s.Lattigo, keys, invariant)
	}}
}

// phase returns c_0 + c_1 s.
func (w *world) phase(c *Ciphertext) ring.Poly {
	basis := w.Level(c.Level)
	key, c1, sum := basis.NewPoly(), basis.NewNTT(), basis.NewPoly()
	for i := range key.C {
		copy(key.C[i], w.secret.Value.Q.Coeffs[i])
	}
	for i, q := range basis.Primes() { // from Montgomery form
		r := new(big.Int).ModInverse(new(big.Int).Lsh(big.NewInt(1), 64), new(big.Int).SetUint64(q))
		for j, v := range key.C[i] {
			x := new(big.Int).Mul(new(big.Int).SetUint64(v), r)
			key.C[i][j] = x.Mod(x, new(big.Int).SetUint64(q)).Uint64()
		}
	}
	basis.Forward(c1, c.C1)
	basis.MulNTT(c1, c1, ring.NTT(key))
	basis.Inverse(sum, c1)
	basis.Add(sum, sum, c.C0)
	return sum
}

// encrypt encrypts values in slots.
func (w *world) encrypt(t testing.TB, values []uint64) *rlwe.Ciphertext {
	t.Helper()
	pt := bgv.NewPlaintext(w.Lattigo, w.MaxLevel())
	if err := w.encoder.Encode(values, pt); err != nil {
		t.Fatal(err)
	}
	ct, err := w.encryptor.EncryptNew(pt)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

func (w *world) values(offset uint64) []uint64 {
	v := make([]uint64, w.Lattigo.MaxSlots())
	for i := range v {
		v[i] = (uint64(i)*uint64(i)*77777 + offset) % w.T
	}
	return v
}

// evaluated returns ciphertexts that Lattigo evaluated, in both modes, and their slots.
func (w *world) evaluated(t testing.TB) (list []*rlwe.Ciphertext, want [][]uint64) {
	t.Helper()
	a, b := w.values(3), w.values(w.T-5)
	half := len(a) / 2
	for _, invariant := range []bool{false, true} {
		eval := w.evaluator(invariant)
		fresh := w.encrypt(t, a)
		product, err := eval.MulRelinNew(fresh, w.encrypt(t, b))
		if err != nil {
			t.Fatal(err)
		}
		if !invariant {
			if err := eval.Rescale(product, product); err != nil {
				t.Fatal(err)
			}
		}
		turned, err := eval.RotateColumnsNew(product, 3)
		if err != nil {
			t.Fatal(err)
		}
		p, r := make([]uint64, len(a)), make([]uint64, len(a))
		for i := range p {
			p[i] = a[i] * b[i] % w.T
		}
		for i := range half {
			r[i], r[half+i] = p[(i+3)%half], p[half+(i+3)%half]
		}
		list, want = append(list, fresh, product, turned), append(want, a, p, r)
	}
	return list, want
}

// Ciphertexts that Lattigo evaluated decode at every level, from the phase and from mu.
func TestDecode(t *testing.T) {
	for _, set := range Sets() {
		if !set.Insecure && testing.Short() {
			continue
		}
		w := newWorld(t, set.Name)
		list, want := w.evaluated(t)
		for i, ct := range list {
			c, err := w.FromLattigo(ct)
			if err != nil {
				t.Fatal(err)
			}
			for level := c.Level; level >= 0; level-- {
				low, err := w.Switch(c, level)
				if err != nil {
					t.Fatal(err)
				}
				again, err := w.Switch(low, level/2)
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range []*Ciphertext{low, again} {
					phase, message, mu := w.phase(x), make([]uint64, w.N()), make([]uint64, w.N())
					for k, v := range w.Level(x.Level).ToBig(phase) { // round(T v/Q) mod T
						v.Lsh(v, 1).Mul(v, new(big.Int).SetUint64(w.T)).Add(v, w.Level(x.Level).Modulus())
						v.Div(v, new(big.Int).Lsh(w.Level(x.Level).Modulus(), 1)).Mod(v, new(big.Int).SetUint64(w.T))
						mu[k] = v.Uint64()
					}
					w.Decode(message, x, phase)
					slots, err := w.Slots(message)
					if err != nil || !slices.Equal(slots, want[i]) {
						t.Fatalf("%s: ciphertext %d at level %d has slots %d, want %d", set.Name, i, x.Level, slots[:5], want[i][:5])
					}
					if w.FromMu(mu, mu, x); !slices.Equal(mu, message) {
						t.Fatalf("%s: ciphertext %d at level %d: mu yields another message", set.Name, i, x.Level)
					}
				}
			}
		}
	}
}

func TestLattigoRoundTrip(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	list, _ := w.evaluated(t)
	for _, ct := range list {
		c, err := w.FromLattigo(ct)
		if err != nil {
			t.Fatal(err)
		}
		if back := w.ToLattigo(c, true); !back.Equal(ct) {
			t.Error("the ciphertext changed when it was converted to Lattigo and back")
		}
		b := w.EncodeCiphertext(c)
		d, err := w.DecodeCiphertext(b)
		if err != nil || !bytes.Equal(w.EncodeCiphertext(d), b) || !w.ToLattigo(d, true).Equal(ct) {
			t.Errorf("the ciphertext changed when it was encoded and decoded: %v", err)
		}
	}
}

func TestCiphertextsAreRefused(t *testing.T) {
	w := newWorld(t, "insecure-B5-17")
	fresh := w.encrypt(t, w.values(1))
	for name, change := range map[string]func(ct *rlwe.Ciphertext){
		"no metadata":   func(ct *rlwe.Ciphertext) { ct.MetaData = nil },
		"degree":        func(ct *rlwe.Ciphertext) { ct.Value = append(ct.Value, ct.Value[0]) },
		"coefficients":  func(ct *rlwe.Ciphertext) { ct.IsNTT = false },
		"montgomery":    func(ct *rlwe.Ciphertext) { ct.IsMontgomery = true },
		"no scale":      func(ct *rlwe.Ciphertext) { ct.Scale = rlwe.NewScale(0) },
		"large scale":   func(ct *rlwe.Ciphertext) { ct.Scale = rlwe.NewScale(w.T) },
		"half a scale":  func(ct *rlwe.Ciphertext) { ct.Scale = rlwe.NewScale(1.5) },
		"levels":        func(ct *rlwe.Ciphertext) { ct.Value[1].Coeffs = ct.Value[1].Coeffs[:2] },
		"no level":      func(ct *rlwe.Ciphertext) { ct.Value[0].Coeffs, ct.Value[1].Coeffs = nil, nil },
		"short":         func(ct *rlwe.Ciphertext) { ct.Value[1].Coeffs[1] = ct.Value[1].Coeffs[1][1:] },
		"residue":       func(ct *rlwe.Ciphertext) { ct.Value[0].Coeffs[2][31] = w.Q[2] },
		"large residue": func(ct *rlwe.Ciphertext) { ct.Value[0].Coeffs[0][0] = 1 << 63 },
	} {
		ct := fresh.CopyNew()
		change(ct)
		if _, err := w.FromLattigo(ct); !errors.Is(err, ErrCiphertext) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := w.FromLattigo(nil); !errors.Is(err, ErrCiphertext) {
		t.Error(err)
	}
	c, err := w.FromLattigo(fresh)
	if err != nil {
		t.Fatal(err)
	}
	for _, level := range []int{-1, 3} {
		if _, err := w.Switch(c, level); !errors.Is(err, ErrCiphertext) {
			t.Errorf("level %d: %v", level, err)
		}
	}
	good := w.EncodeCiphertext(c)
	for name, b := range map[string][]byte{
		"nothing": nil, "head": good[:5], "short": good[:len(good)-1], "long": append(slices.Clone(good), 0),
		"level": edited(good, 0, 3), "lower level": edited(good, 0, 1), "scale 0": edited(good, 1, 0),
		"scale": edited(good, 4, 1), "residue": edited(edited(good, 5, 0xff), 11, 0xff),
	} {
		if name == "residue" {
			b = slices.Clone(good)
			for i := range 7 {
				b[5+i] = 0xff
			}
		}
		if _, err := w.DecodeCiphertext(b); !errors.Is(err, ErrCiphertext) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func edited(b []byte, at int, v byte) []byte {
	b = slices.Clone(b)
	b[at] = v
	return b
}

// Any input that decodes is encoded again to the same bytes.
func FuzzDecode(f *testing.F) {
	w := newWorld(f, "insecure-B5-8")
	c, err := w.FromLattigo(w.encrypt(f, w.values(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(w.EncodeCiphertext(c), false)
	k := w.keysOf(f, 3, 9)
	f.Add(w.KeysHeader(k), true)
	f.Fuzz(func(t *testing.T, b []byte, keys bool) {
		if keys {
			seed, galois, err := w.parseHeader(b)
			if err == nil && !bytes.Equal(w.KeysHeader(&Keys{Seed: seed, Galois: galois}), b) || err != nil && !errors.Is(err, ErrKeys) {
				t.Fatal(err)
			}
			return
		}
		c, err := w.DecodeCiphertext(b)
		if err == nil && !bytes.Equal(w.EncodeCiphertext(c), b) || err != nil && !errors.Is(err, ErrCiphertext) {
			t.Fatal(err)
		}
	})
}

// The noise after a switch is the original noise, divided, plus at most R.
func TestSwitchNoise(t *testing.T) {
	w := newWorld(t, "insecure-B6-31")
	c, err := w.FromLattigo(w.encrypt(t, w.values(9)))
	if err != nil {
		t.Fatal(err)
	}
	for level := w.MaxLevel() - 1; level >= 0; level-- {
		low, err := w.Switch(c, level)
		if err != nil {
			t.Fatal(err)
		}
		from, to := w.Level(c.Level).Modulus(), w.Level(level).Modulus()
		high := w.Level(c.Level).ToBig(w.phase(c))
		for k, v := range w.Level(level).ToBig(w.phase(low)) { // |v - high to/from| from <= R from, modulo to
			v.Mul(v, from).Sub(v, high[k].Mul(high[k], to))
			whole := new(big.Int).Mul(from, to)
			v.Mod(v, whole)
			if v.Cmp(new(big.Int).Rsh(whole, 1)) > 0 {
				v.Sub(v, whole)
			}
			bound := new(big.Int).Mul(from, big.NewInt(int64(w.Rounding(1))+1))
			if v.CmpAbs(bound) > 0 {
				t.Fatalf("level %d: coefficient %d is off by %v of %v", level, k, v, from)
			}
		}
		if most := w.MaxNoise(c.Level, level, MaxParties); most.BitLen() < from.BitLen()-to.BitLen()+w.LogNoise-3 {
			t.Errorf("the largest noise at level %d is %v", c.Level, most)
		}
	}
}
