package bgv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/big"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	lattigo "github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/bgv"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// ErrCiphertext is returned for a ciphertext that is malformed or cannot be decrypted under a set.
var ErrCiphertext = errors.New("bgv: malformed ciphertext")

// Ciphertext is a ciphertext of degree one; [Scheme.FromLattigo] converts one of Lattigo's. The
// polynomials have the primes q_0 to q_Level, in coefficient form.
type Ciphertext struct {
	Level  int
	Scale  uint64 // in [1, T)
	C0, C1 ring.Poly
	// moved is the product modulo T of the primes that modulus switches removed; 1 if there was no
	// switch.
	moved uint64
}

// FromLattigo converts a Lattigo ciphertext of degree one. The error wraps [ErrCiphertext].
func (s *Scheme) FromLattigo(ct *rlwe.Ciphertext) (*Ciphertext, error) {
	if ct == nil || ct.MetaData == nil || len(ct.Value) != 2 {
		return nil, fmt.Errorf("%w: its degree is not one, or its metadata is missing", ErrCiphertext)
	}
	level := len(ct.Value[0].Coeffs) - 1
	if level < 0 || level > s.MaxLevel() || len(ct.Value[1].Coeffs) != level+1 || !ct.IsNTT || ct.IsMontgomery {
		return nil, fmt.Errorf("%w: level %d, NTT form %v, Montgomery form %v", ErrCiphertext, level, ct.IsNTT, ct.IsMontgomery)
	}
	scale, _ := ct.Scale.Value.Uint64()
	//lodge:check bgv/scale [drop=scale == 0] [drop=scale >= s.T] a ciphertext from Lattigo has a
	//  scale without an inverse
	if !ct.Scale.Value.IsInt() || scale == 0 || scale >= s.T {
		return nil, fmt.Errorf("%w: scale %v", ErrCiphertext, &ct.Scale.Value)
	}
	basis := s.Level(level)
	c := &Ciphertext{Level: level, Scale: scale, C0: basis.NewPoly(), C1: basis.NewPoly(), moved: 1}
	for i, to := range []ring.Poly{c.C0, c.C1} {
		for k, row := range ct.Value[i].Coeffs {
			if len(row) != s.N() {
				return nil, fmt.Errorf("%w: degree %d", ErrCiphertext, len(row))
			}
			for j, v := range row {
				//lodge:check bgv/residue a ciphertext from Lattigo has values outside its modulus
				if v >= s.Q[k] {
					return nil, fmt.Errorf("%w: a residue is not below %d", ErrCiphertext, s.Q[k])
				}
				to.C[k][j] = v
			}
		}
		basis.Inverse(to, ring.NTT(to))
	}
	return c, nil
}

// ToLattigo is the inverse of FromLattigo, for ciphertexts whose modulus was not switched. batched
// marks a message in slots.
func (s *Scheme) ToLattigo(c *Ciphertext, batched bool) *rlwe.Ciphertext {
	ct := bgv.NewCiphertext(s.Lattigo, 1, c.Level)
	ct.Scale, ct.IsBatched = s.Lattigo.NewScale(c.Scale), batched
	for i, from := range []ring.Poly{c.C0, c.C1} {
		s.Level(c.Level).Forward(ring.NTT{C: ct.Value[i].Coeffs}, from)
	}
	return ct
}

// CiphertextSize returns the size in bytes of an encoded ciphertext of the given level.
func (s *Scheme) CiphertextSize(level int) int {
	return 1 + 4 + 2*codec.PolySize(s.N(), s.Q[:level+1])
}

// EncodeCiphertext returns the level in one byte, the scale in four, least significant first, and
// the residues of C0 and C1.
func (s *Scheme) EncodeCiphertext(c *Ciphertext) []byte {
	b := append(make([]byte, 0, s.CiphertextSize(c.Level)), byte(c.Level))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.Scale))
	b = codec.AppendPoly(b, c.C0.C, s.Q[:c.Level+1])
	return codec.AppendPoly(b, c.C1.C, s.Q[:c.Level+1])
}

// DecodeCiphertext is the inverse of EncodeCiphertext. It accepts no other encoding, and checks the
// length before it allocates memory. The error wraps [ErrCiphertext].
func (s *Scheme) DecodeCiphertext(b []byte) (*Ciphertext, error) {
	//lodge:check bgv/length [swap=len(b) != s.CiphertextSize(int(b[0]))=>len(b) <
	//  s.CiphertextSize(int(b[0]))] a ciphertext is decoded without a limit on its size
	if len(b) < 5 || int(b[0]) > s.MaxLevel() || len(b) != s.CiphertextSize(int(b[0])) {
		return nil, fmt.Errorf("%w: wrong length, %d bytes", ErrCiphertext, len(b))
	}
	c := &Ciphertext{Level: int(b[0]), Scale: uint64(binary.LittleEndian.Uint32(b[1:])), moved: 1}
	//lodge:check bgv/encoded-scale an encoded ciphertext has a scale without an inverse
	if c.Scale == 0 || c.Scale >= s.T {
		return nil, fmt.Errorf("%w: scale %d", ErrCiphertext, c.Scale)
	}
	primes, basis := s.Q[:c.Level+1], s.Level(c.Level)
	c.C0, c.C1, b = basis.NewPoly(), basis.NewPoly(), b[5:]
	size := codec.PolySize(s.N(), primes)
	for i, p := range []ring.Poly{c.C0, c.C1} {
		if err := codec.DecodePoly(p.C, primes, b[i*size:(i+1)*size]); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCiphertext, err)
		}
	}
	return c, nil
}

// Switch returns the ciphertext at a level that is at most its own. It does not change c, and
// returns c itself if it already has the level.
func (s *Scheme) Switch(c *Ciphertext, level int) (*Ciphertext, error) {
	if level < 0 || level > c.Level {
		return nil, fmt.Errorf("%w: cannot switch from level %d to level %d", ErrCiphertext, c.Level, level)
	}
	if level == c.Level {
		return c, nil
	}
	keep, drop := s.Level(level), s.basis.Range(level+1, c.Level+1)
	to := &Ciphertext{Level: level, Scale: c.Scale, C0: keep.NewPoly(), C1: keep.NewPoly()}
	d := ring.NewDivider(keep, drop)
	d.DivRound(to.C0, c.C0, ring.Poly{C: c.C0.C[level+1:]})
	d.DivRound(to.C1, c.C1, ring.Poly{C: c.C1.C[level+1:]})
	to.moved = new(big.Int).Mod(drop.Modulus(), new(big.Int).SetUint64(s.T)).Uint64() * c.moved % s.T
	return to, nil
}

// factor returns the number by which a coefficient of T^-1 m, decoded at the ciphertext's level,
// must be multiplied modulo T to obtain the message.
func (s *Scheme) factor(c *Ciphertext) uint64 {
	t := new(big.Int).SetUint64(s.T)
	f := new(big.Int).ModInverse(new(big.Int).SetUint64(c.Scale), t)
	return f.Mul(f, new(big.Int).SetUint64(c.moved)).Mod(f, t).Uint64()
}

// Decode sets message, N coefficients below T, from a phase of the ciphertext. It overwrites the
// phase. T times the phase, centred, is m plus T times the noise.
func (s *Scheme) Decode(message []uint64, c *Ciphertext, phase ring.Poly) {
	basis := s.Level(c.Level)
	t := make([]uint64, basis.Len())
	for i := range t {
		t[i] = s.T
	}
	basis.MulScalar(phase, phase, t)
	out := ring.Poly{C: [][]uint64{message}}
	s.lift[c.Level].Extend(out, phase)
	s.plain.MulScalar(out, out, []uint64{s.factor(c)})
}

// FromMu computes the coefficients of the message from opened values of mu (see the package
// documentation, The scheme).
func (s *Scheme) FromMu(message, mu []uint64, c *Ciphertext) {
	t := new(big.Int).SetUint64(s.T)
	f := s.Level(c.Level).Modulus() // -Q_l, at the level where mu was decoded
	f.Mod(f.Neg(f), t).Mul(f, new(big.Int).SetUint64(s.factor(c))).Mod(f, t)
	s.plain.MulScalar(ring.Poly{C: [][]uint64{message}}, ring.Poly{C: [][]uint64{mu}}, []uint64{f.Uint64()})
}

// Slots returns the slots for a message's coefficients, in Lattigo's encoding.
func (s *Scheme) Slots(message []uint64) ([]uint64, error) {
	slots := make([]uint64, s.Lattigo.MaxSlots())
	err := s.encoder.DecodeRingT(lattigo.Poly{Coeffs: [][]uint64{message}}, s.Lattigo.NewScale(1), slots)
	return slots, err
}
