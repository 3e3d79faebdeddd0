// Package gbfv implements the generalized BFV scheme of MatriGear, sections 3 and 4: ciphertexts
// over R_q, R = Z[X]/(X^N+1), plaintexts in R modulo P = X^D-b, which is D = N/M slots of the field
// Z_p, p = b^M+1; and the homomorphic matrix product, Algorithm 1 ([Evaluator.MatMul]).
//
// A [Ciphertext] (c0, c1) of mu under s has c0 + c1·s = (q/P)·mu + error mod q. Its invariant noise
// is (P/q)·error. Where the paper is unclear or wrong, this package does the following:
//
//   - Delta is round(q/P) coefficientwise, which has M coefficients that are not 0;
//   - a product scales one operand by Q'/q, multiplies modulo qQ', divides by Q' and only then multiplies
//     by P; overflow modulo qQ' becomes a multiple of q. Every extension of a basis is centred;
//   - gadget digits are taken modulo products of DigitPrimes primes, centred, without a special modulus;
//   - in Algorithm 1 the terms a1·phi(b0) and a0·phi(b1) belong to s and phi(s), in this order.
//
// Evaluation uses integers only. A result depends only on its inputs, never on the machine or the
// number of workers, so that parties can compare hashes of evaluated ciphertexts before they
// decrypt.
//
// Secret inputs (messages, encryption randomness, key shares) are neither branched nor indexed on,
// and no copy of them outlives a call.
package gbfv

import (
	"fmt"
	"math/big"
	"math/bits"
	"sync"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Scheme is generalized BFV for one parameter set and one field. It is immutable and safe for
// concurrent use. Keys belong to the set: every scheme of a set uses the same keys.
type Scheme struct {
	Set   *params.Set
	Spec  params.FieldSpec
	Field *field.Field
	Pack  *field.Packing

	constant *field.Packing // of the subring Z[X^D], one slot

	Q    *ring.Basis // ciphertext modulus q
	Aux  *ring.Basis // auxiliary modulus Q' of products, coprime to q
	Full *ring.Basis // Q and Aux, in this order

	delta      ring.NTT  // Delta = round(q/P)
	shortDelta ring.Poly // its M coefficients that are not 0

	minusB   []uint64      // -b modulo the primes of Q
	auxModQ  []uint64      // Q' modulo the primes of Q
	toAux    *ring.Divider // x -> round(x/q) on Full, result in Aux
	fromAux  *ring.Divider // x -> round(x/Q') on Full, result in Q
	auxToQ   *ring.Extender
	qToAux   *ring.Extender
	gadget   []digit
	prefixes []*prefix // index k-1: the first k primes of Q
}

// prefix holds what decryption modulo the first k primes of Q needs.
type prefix struct {
	once    sync.Once
	basis   *ring.Basis
	divider *ring.Divider // x -> round(q'/q·x); nil for k = len(Q)
	scale   *scaler       // mu -> q'/P·mu
	decode  *decoder      // x -> round(P/q'·x) mod P
}

// New builds the scheme of a set and one of its fields.
func New(set *params.Set, spec params.FieldSpec) (*Scheme, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	f, err := field.New(spec.B, spec.M)
	if err != nil {
		return nil, err
	}
	s := &Scheme{Set: set, Spec: spec, Field: f}
	if s.Pack, err = field.NewPacking(f, set.LogN); err != nil {
		return nil, err
	}
	if s.constant, err = field.NewPacking(f, bits.Len(uint(spec.M))-1); err != nil {
		return nil, err
	}
	if s.Q, err = ring.NewBasis(set.LogN, set.Q); err != nil {
		return nil, fmt.Errorf("gbfv: moduli of %s: %w", set.Name, err)
	}
	if s.Aux, err = ring.NewBasis(set.LogN, set.Aux); err != nil {
		return nil, fmt.Errorf("gbfv: auxiliary moduli of %s: %w", set.Name, err)
	}
	s.Full = ring.Join(s.Q, s.Aux)
	s.toAux, s.fromAux = ring.NewDivider(s.Aux, s.Q), ring.NewDivider(s.Q, s.Aux)
	s.auxToQ, s.qToAux = ring.NewExtender(s.Aux, s.Q), ring.NewExtender(s.Q, s.Aux)
	s.minusB = residues(new(big.Int).Neg(spec.B), s.Q.Primes())
	s.auxModQ = residues(s.Aux.Modulus(), s.Q.Primes())
	s.gadget = newGadget(s.Q, set.DigitPrimes)
	s.delta = s.Q.NewNTT()
	delta := s.Delta()
	s.Q.Forward(s.delta, delta)
	for _, c := range delta.C {
		var short []uint64
		for k := 0; k < s.N(); k += s.Slots() {
			short = append(short, c[k])
		}
		s.shortDelta.C = append(s.shortDelta.C, short)
	}
	for k := range set.Q {
		s.prefixes = append(s.prefixes, &prefix{basis: s.Q.Prefix(k + 1)})
	}
	return s, nil
}

// N returns the ring degree.
func (s *Scheme) N() int { return s.Q.N() }

// Slots is D, the number of field elements in a plaintext.
func (s *Scheme) Slots() int { return s.Pack.D() }

// Delta returns round(q/P): q/P = -(q/p)·(b^(M-1) + b^(M-2)·X^D + ... + X^(N-D)).
func (s *Scheme) Delta() ring.Poly {
	p, q := s.Field.Modulus(), s.Q.Modulus()
	d := s.Q.NewPoly()
	power := big.NewInt(1)
	for i := s.Spec.M - 1; i >= 0; i-- {
		c := roundQuotient(new(big.Int).Mul(q, power), p)
		for l, r := range residues(c.Neg(c), s.Q.Primes()) {
			d.C[l][i*s.Slots()] = r
		}
		power.Mul(power, s.Spec.B)
	}
	return d
}

// Prefix returns the basis of the first k primes of Q, for 1 <= k <= len(Q).
func (s *Scheme) Prefix(k int) *ring.Basis { return s.prefixes[k-1].basis }

// prefix returns the tables for the first k primes of Q.
func (s *Scheme) prefix(k int) *prefix {
	p := s.prefixes[k-1]
	p.once.Do(func() {
		if k < s.Q.Len() {
			p.divider = ring.NewDivider(p.basis, s.Q.Range(k, s.Q.Len()))
		}
		p.scale = newScaler(s, p.basis)
		p.decode = newDecoder(s.Spec, p.basis)
	})
	return p
}

// residues returns v modulo each prime, for a public v of any sign.
func residues(v *big.Int, primes []uint64) []uint64 {
	r := make([]uint64, len(primes))
	m := new(big.Int)
	for i, q := range primes {
		r[i] = m.Mod(v, m.SetUint64(q)).Uint64()
	}
	return r
}

// roundQuotient returns the integer nearest to x/y, for x >= 0 and y > 0; ties go up.
func roundQuotient(x, y *big.Int) *big.Int {
	z := new(big.Int).Lsh(x, 1)
	z.Add(z, y)
	return z.Div(z, new(big.Int).Lsh(y, 1))
}

// Serves returns an error unless the instance has this scheme's set and field and the given number
// of parties.
func (s *Scheme) Serves(i *params.Instance, parties int) error {
	switch {
	//lodge:check gbfv/serves/set [run=TestServes] an instance of another parameter set is used
	case i.Set.Hash() != s.Set.Hash():
		return fmt.Errorf("gbfv: the scheme has parameter set %s, the instance %s", s.Set.Name, i.Set.Name)
	//lodge:check gbfv/serves/field [run=TestServes] an instance of another field is used
	case i.Field.M != s.Spec.M || i.Field.B.Cmp(s.Spec.B) != 0:
		return fmt.Errorf("gbfv: the scheme has field %s, the instance %s", s.Spec.Name, i.Field.Name)
	//lodge:check gbfv/serves/parties [run=TestServes] an instance for another number of parties is
	//  used
	case i.Use.Parties != parties:
		return fmt.Errorf("gbfv: %d parties, but the instance is for %d parties", parties, i.Use.Parties)
	}
	return nil
}
