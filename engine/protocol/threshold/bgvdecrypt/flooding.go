package bgvdecrypt

import (
	"fmt"
	"math/big"

	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// LogDistance is log2 of the allowed statistical distance between the opened values and values that
// are independent of the noise, for all decryptions together that the set permits under one key.
const LogDistance = -40

// Flooding decrypts whole ciphertexts by a quorum.
type Flooding struct {
	scheme *bgv.Scheme
	quorum int
	bound  *big.Int
	basis  *ring.Basis
}

// NewFlooding prepares decryption by a quorum of the given size. The bound E of the flood is the
// largest for which decoding works:
//
//	T (2^LogNoise + quorum E + 1) < Q_l/2 (1 - 2^-56)
//
// at the set's FloodLevel l (ring.Extender is exact there). The error wraps ErrParams if the set
// has no such level, or if this E is too small: with N coefficients and 2^LogDecryptions
// ciphertexts, the distance must be at most
//
//	N 2^LogDecryptions 2^LogNoise/(2E+1) <= 2^-40.
func NewFlooding(s *bgv.Scheme, quorum int) (*Flooding, error) {
	if s.FloodLevel < 0 || quorum < 2 || quorum > bgv.MaxParties {
		return nil, fmt.Errorf("%w: set %s supports no flooding by %d parties", ErrParams, s.Name, quorum)
	}
	f := &Flooding{scheme: s, quorum: quorum, basis: s.Level(s.FloodLevel)}
	half := new(big.Int).Sub(f.basis.Modulus(), big.NewInt(1)) // T x < Q/2 if x <= (Q-1)/2T, because Q is odd
	half.Div(half, new(big.Int).SetUint64(2*s.T))
	f.bound = new(big.Int).Sub(half, new(big.Int).Rsh(half, 56))
	f.bound.Sub(f.bound, f.noise()).Sub(f.bound, big.NewInt(1))
	f.bound.Div(f.bound, big.NewInt(int64(quorum)))
	//lodge:check bgvdecrypt/distance [drop=f.Distance().Cmp(new(big.Rat).SetFrac64(1,
	//  1<<-LogDistance)) > 0] the flooding is too small for the statistical distance
	if f.bound.Sign() <= 0 || f.Distance().Cmp(new(big.Rat).SetFrac64(1, 1<<-LogDistance)) > 0 {
		return nil, fmt.Errorf("%w: a flood of %d bits by %d parties is too small for set %s", ErrParams,
			f.bound.BitLen(), quorum, s.Name)
	}
	return f, nil
}

// noise returns the bound on the noise of ciphertexts at the level where they are flooded.
func (f *Flooding) noise() *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(f.scheme.LogNoise)) }

// Bound returns E.
func (f *Flooding) Bound() *big.Int { return new(big.Int).Set(f.bound) }

// Distance returns the statistical distance. For one coefficient, the flood plus a noise e, |e| <=
// B, has distance |e|/(2E+1) from the flood without it.
func (f *Flooding) Distance() *big.Rat {
	all := new(big.Int).Lsh(f.noise(), uint(f.scheme.LogN+f.scheme.LogDecryptions))
	width := new(big.Int).Lsh(f.bound, 1)
	return new(big.Rat).SetFrac(all, width.Add(width, big.NewInt(1)))
}

// Secret transforms a party's additive share of the key (Additive) for flooding.
func (f *Flooding) Secret(additive ring.Poly) (ring.NTT, error) {
	if len(additive.C) != f.basis.Len() {
		return ring.NTT{}, fmt.Errorf("%w: the share is modulo %d primes, want %d", ErrParams, len(additive.C), f.basis.Len())
	}
	s := f.basis.NewNTT()
	f.basis.Forward(s, additive)
	return s, nil
}

// Primes returns the number of primes of the additive share of the key.
func (f *Flooding) Primes() int { return f.basis.Len() }

// Key identifies the part of a ciphertext that determines the parties' answers, apart from their
// shares: c_1 after the modulus switch. The count of decryptions must treat ciphertexts with the
// same Key as one ciphertext, whatever else differs.
func (f *Flooding) Key(c *bgv.Ciphertext) (round.Digest, error) {
	low, err := f.lower(c)
	if err != nil {
		return round.Digest{}, err
	}
	set := f.scheme.Hash()
	//lodge:check bgvdecrypt/key [swap=low.C1=>low.C0] ciphertexts that share their flood have
	//  several places in the ledger
	return round.Hash("lodge bgv flooded ciphertext", set[:], codec.AppendPoly(nil, low.C1.C, f.basis.Primes())), nil
}

// lower switches a ciphertext to the level where it is flooded.
func (f *Flooding) lower(c *bgv.Ciphertext) (*bgv.Ciphertext, error) {
	//lodge:check bgvdecrypt/level ciphertexts are flooded at a level without enough modulus
	if c.Level < f.scheme.FloodLevel {
		return nil, fmt.Errorf("%w: the ciphertext has level %d, flooding needs at least %d", ErrParams, c.Level, f.scheme.FloodLevel)
	}
	return f.scheme.Switch(c, f.scheme.FloodLevel)
}

// AnswerSize returns the size in bytes of a party's answer for a ciphertext.
func (f *Flooding) AnswerSize() int {
	return headerSize + codec.PolySize(f.scheme.N(), f.basis.Primes())
}

// share returns c_1 s_i + e for a fresh flood e, without shares of zero.
func (f *Flooding) share(c1 ring.Poly, secret ring.NTT, flood *sample.Stream) ring.Poly {
	e := intpoly.New(f.scheme.N(), (f.bound.BitLen()+1+64)/64)
	//lodge:check bgvdecrypt/flood answers reveal the noise
	sample.Flood(e, f.bound, flood)
	defer e.Wipe()
	product, d := f.basis.NewNTT(), f.basis.NewPoly()
	f.basis.Forward(product, c1)
	f.basis.MulNTT(product, product, secret)
	f.basis.Inverse(ring.Poly(product), product)
	f.basis.FromInt(d, e)
	f.basis.Add(d, d, ring.Poly(product))
	product.Zero()
	return d
}

// CombineFlooding returns to a recipient outside the quorum the N coefficients of the message of
// ciphertext k of a run, from the answers of all parties of the quorum for this ciphertext. The
// error wraps ErrAnswers or ErrParams.
func (f *Flooding) CombineFlooding(c *bgv.Ciphertext, k int, answers [][]byte) ([]uint64, error) {
	if len(answers) != f.quorum {
		return nil, fmt.Errorf("%w: %d answers from a quorum of %d", ErrAnswers, len(answers), f.quorum)
	}
	low, err := f.lower(c)
	if err != nil {
		return nil, err
	}
	sum, part := low.C0.Clone(), f.basis.NewPoly()
	for i, a := range answers {
		//lodge:check bgvdecrypt/combine [drop=string(a[:headerSize]) !=
		//  string(answers[0][:headerSize])] the recipient combines answers of different runs
		if len(a) != f.AnswerSize() || string(a[:headerSize]) != string(answers[0][:headerSize]) {
			return nil, fmt.Errorf("%w: answer %d to ciphertext %d has the wrong length or belongs to another run", ErrAnswers, i, k)
		}
		//lodge:check bgvdecrypt/combine-residues the recipient accepts answers with several
		//  encodings
		if err := codec.DecodePoly(part.C, f.basis.Primes(), a[headerSize:]); err != nil {
			return nil, fmt.Errorf("%w: answer %d: %w", ErrAnswers, i, err)
		}
		f.basis.Add(sum, sum, part)
	}
	message := make([]uint64, f.scheme.N())
	f.scheme.Decode(message, low, sum)
	return message, nil
}
