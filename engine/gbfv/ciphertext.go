package gbfv

import (
	"crypto/sha256"
	"encoding/binary"

	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Ciphertext is a pair of polynomials over R_q in coefficient form, on the basis Q of its set, or
// on a prefix of Q after [Scheme.SwitchModulus].
type Ciphertext struct{ C0, C1 ring.Poly }

// NewCiphertext returns the zero ciphertext on basis Q.
func (s *Scheme) NewCiphertext() *Ciphertext {
	return &Ciphertext{C0: s.Q.NewPoly(), C1: s.Q.NewPoly()}
}

// Borrow returns a ciphertext on basis Q with arbitrary content. The caller must write it before
// reading it.
func (s *Scheme) Borrow() *Ciphertext {
	return &Ciphertext{C0: s.Q.Borrow(), C1: s.Q.Borrow()}
}

// Free frees the storage of a ciphertext for reuse. The ciphertext must not be used afterwards.
// Free accepts nil.
func (c *Ciphertext) Free() {
	if c != nil {
		c.C0.Free()
		c.C1.Free()
	}
}

// Clone returns a copy.
func (c *Ciphertext) Clone() *Ciphertext { return &Ciphertext{C0: c.C0.Clone(), C1: c.C1.Clone()} }

// Equal reports whether two ciphertexts have the same residues.
func (c *Ciphertext) Equal(o *Ciphertext) bool { return c.C0.Equal(o.C0) && c.C1.Equal(o.C1) }

// Add sets dst = a+b. dst may be an operand.
func (s *Scheme) Add(dst, a, b *Ciphertext) {
	s.Q.Add(dst.C0, a.C0, b.C0)
	s.Q.Add(dst.C1, a.C1, b.C1)
}

// Sub sets dst = a-b. dst may be an operand.
func (s *Scheme) Sub(dst, a, b *Ciphertext) {
	s.Q.Sub(dst.C0, a.C0, b.C0)
	s.Q.Sub(dst.C1, a.C1, b.C1)
}

// Double sets dst = 2a. dst may be a.
func (s *Scheme) Double(dst, a *Ciphertext) {
	s.Q.Double(dst.C0, a.C0)
	s.Q.Double(dst.C1, a.C1)
}

// AddMonomial sets dst += X^e·a for e in [0, 2N).
func (s *Scheme) AddMonomial(dst, a *Ciphertext, e int) {
	s.Q.AddMonomial(dst.C0, a.C0, e)
	s.Q.AddMonomial(dst.C1, a.C1, e)
}

// SubMonomial sets dst -= X^e·a for e in [0, 2N).
func (s *Scheme) SubMonomial(dst, a *Ciphertext, e int) {
	s.AddMonomial(dst, a, (e+s.N())%(2*s.N())) // -X^e = X^(e+N)
}

// MulPlain sets dst = mu·a for a plaintext mu, such as Digits returns. dst may be a.
func (s *Scheme) MulPlain(dst, a *Ciphertext, mu intpoly.Poly) {
	m, c, p := s.Q.BorrowNTT(), s.Q.BorrowNTT(), s.Q.Borrow()
	defer func() {
		for _, x := range []ring.NTT{m, c} { // the plaintext may be secret
			x.Zero()
			x.Free()
		}
		p.Free()
	}()
	s.Q.FromInt(p, mu)
	s.Q.Forward(m, p)
	p.Zero()
	for _, pair := range [2][2]ring.Poly{{dst.C0, a.C0}, {dst.C1, a.C1}} {
		s.Q.Forward(c, pair[1])
		s.Q.MulNTT(c, c, m)
		s.Q.Inverse(pair[0], c)
	}
}

// Hash returns SHA-256 over a list of ciphertexts: their number, N, and for each polynomial the
// number of primes and every residue, all as 64-bit little-endian integers.
func Hash(list []*Ciphertext) [32]byte {
	h := sha256.New()
	var buf []byte
	put := func(v int) { buf = binary.LittleEndian.AppendUint64(buf, uint64(v)) }
	h.Write([]byte("lodge gbfv ciphertexts"))
	put(len(list))
	for _, ct := range list {
		for _, p := range []ring.Poly{ct.C0, ct.C1} {
			put(len(p.C))
			for _, limb := range p.C {
				put(len(limb))
				for _, x := range limb {
					buf = binary.LittleEndian.AppendUint64(buf, x)
				}
				h.Write(buf)
				buf = buf[:0]
			}
		}
	}
	h.Write(buf)
	return [32]byte(h.Sum(nil))
}
