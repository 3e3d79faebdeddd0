package multikey

import (
	"crypto/sha256"
	"errors"

	"github.com/sp301415/tfhe-go/math/poly"
	"github.com/sp301415/tfhe-go/tfhe"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Errors that callers can cause. Every error of this package wraps one of these errors, or one of
// package [codec]'s.
var (
	ErrCiphertext = errors.New("multikey: malformed ciphertext")
	ErrKeys       = errors.New("multikey: malformed keys")
	ErrSecret     = errors.New("multikey: malformed secret key")
	ErrSet        = errors.New("multikey: made for another parameter set")
	ErrCRS        = errors.New("multikey: made for another common reference string")
	ErrOwner      = errors.New("multikey: the keys belong to another party")
	ErrUnknownKey = errors.New("multikey: missing key")
	ErrParties    = errors.New("multikey: too many parties in one ciphertext")
	ErrGate       = errors.New("multikey: unknown gate")
	ErrRotation   = errors.New("multikey: malformed rotation")
)

// SeedSize is the size in bytes of public seeds: of the common reference string, and of the masks
// of keys and ciphertexts.
const SeedSize = 32

// StandardSeed returns the standard seed of the common reference string: SHA-256 of a sentence.
// Parties that do not trust it can toss a coin instead. A party that chooses the string freely
// could know a trapdoor.
func StandardSeed() [SeedSize]byte {
	return sha256.Sum256([]byte("Lodge multi-key TFHE: the common reference string, version 1"))
}

// Scheme is a [Set] with a common reference string, prepared for computation. It is immutable and
// may be shared.
type Scheme struct {
	*Set
	hash                  [32]byte
	crs                   [32]byte                // digest of the string
	string                [][]uint64              // a_j
	rotation, lev, uni    gadget                  // in the library's form
	transform             *poly.Evaluator[uint64] // each goroutine has a copy
	lweErrors, ringErrors *lwe.Errors
}

type gadget = tfhe.GadgetParameters[uint64]

func (g Gadget) compile() gadget {
	return tfhe.GadgetParametersLiteral[uint64]{Base: 1 << g.LogBase, Level: g.Digits}.Compile()
}

// New prepares a valid set with the common reference string of a public seed: [StandardSeed] or the
// result of a coin toss.
func New(set *Set, seed [SeedSize]byte) (*Scheme, error) {
	if err := set.Validate(); err != nil {
		return nil, err
	}
	own := *set
	s := &Scheme{
		Set: &own, hash: own.Hash(), rotation: own.Rotation.compile(), lev: own.Lev.compile(), uni: own.Uni.compile(),
		transform: poly.NewEvaluator[uint64](own.N()), string: make([][]uint64, own.Uni.Digits),
	}
	h := sha256.New()
	h.Write([]byte("lodge multikey common reference string 1"))
	h.Write(s.hash[:])
	for j := range s.string {
		s.string[j] = make([]uint64, s.N())
		sample.ExpandWords(s.string[j], seed[:], "multikey common reference string", uint64(j))
		h.Write(appendWords(nil, s.string[j]))
	}
	h.Sum(s.crs[:0])
	var err error
	if s.lweErrors, err = errorsOf(own.LWE, lweBits); err != nil {
		return nil, err
	}
	s.ringErrors, err = errorsOf(own.Ring, ringBits)
	return s, err
}

func errorsOf(deviation float64, bits int) (*lwe.Errors, error) {
	d := deviation * float64(uint64(1)<<(bits-1)) * 2
	return lwe.NewErrors(d * d)
}

// CRS returns the digest of the common reference string and the set: SHA-256 of a tag, the set's
// hash, and the words.
func (s *Scheme) CRS() [32]byte { return s.crs }
