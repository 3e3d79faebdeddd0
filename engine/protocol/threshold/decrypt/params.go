package decrypt

import (
	"errors"
	"fmt"
	"math"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/protocol/threshold/masks"
)

var (
	// ErrParams is returned if a run with the given parameters cannot decrypt the ciphertexts.
	ErrParams = errors.New("decrypt: parameters do not fit")
	// ErrKind is returned if the masks have the wrong kind or the wrong number for the run.
	ErrKind = errors.New("decrypt: masks do not fit")
	// ErrCiphertext is returned if a ciphertext has the wrong dimension, or a value that is not a
	// residue modulo Q.
	ErrCiphertext = errors.New("decrypt: malformed ciphertext")
	// ErrAnswers is returned if answers are malformed, belong to different runs, or do not sum to a
	// plaintext.
	ErrAnswers = errors.New("decrypt: answers do not fit")
)

// Params are the parameters that the parties of a quorum and the recipient share.
type Params struct {
	Modulus   uint64 // Q, odd or a power of two
	Dimension int    // N
	LogP      int    // plaintexts are modulo p, which has LogP bits: 2^LogP, or the kind's odd p
	Parties   int    // n = t+1, the size of the quorum
	Kind      masks.Kind
}

// Check returns an error that wraps ErrParams if the parameters do not fit together.
func (p Params) Check() error {
	if err := p.Kind.Check(); err != nil {
		return fmt.Errorf("%w: %w", ErrParams, err)
	}
	q := bits.Len64(p.Modulus - 1)
	switch {
	case p.Modulus < 3 || p.Modulus%2 == 0 && p.Modulus&(p.Modulus-1) != 0:
		return fmt.Errorf("%w: the modulus %d is neither odd nor a power of two", ErrParams, p.Modulus)
	case p.Dimension < 1 || q > masks.MaxLogEta:
		return fmt.Errorf("%w: dimension %d modulo %d is not supported", ErrParams, p.Dimension, p.Modulus)
	case p.Parties < 2:
		return fmt.Errorf("%w: a quorum of %d parties (at least 2)", ErrParams, p.Parties)
	case p.Kind.LogP() != p.LogP:
		return fmt.Errorf("%w: the masks are for plaintexts of %d bits, the plaintexts have %d", ErrParams, p.Kind.LogP(), p.LogP)
	//lodge:check decrypt/eta the switch can be to a larger modulus
	case p.Kind.LogEta > q:
		return fmt.Errorf("%w: eta = 2^%d for a modulus of %d bits", ErrParams, p.Kind.LogEta, q)
	case p.Kind.Odd != 0 && p.Modulus%2 == 0:
		return fmt.Errorf("%w: plaintexts modulo %d, ciphertexts modulo a power of two", ErrParams, p.Kind.Odd)
	}
	return nil
}

// PaperKind returns the kind of masks for the paper's form: eta is the smallest power of two that
// is at least Q.
func PaperKind(q uint64, logP int) masks.Kind {
	eta := bits.Len64(q - 1)
	return masks.Kind{Form: masks.Paper, LogEta: eta, LogPhi: eta - logP}
}

// ExactKind returns the kind of masks for the exact form, with the smallest eta for which noise up
// to bound never fails:
//
//	2 (eta/Q)(bound + p) + n < Phi = eta/p.
//
// The error wraps ErrParams: no kind satisfies this if bound is about Q/2p or more.
func ExactKind(q uint64, logP, parties int, bound float64) (masks.Kind, error) {
	return smallest(q, parties, bound, func(phi int) masks.Kind {
		return masks.Kind{Form: masks.Exact, LogEta: phi + logP, LogPhi: phi}
	})
}

// ExactOddKind is ExactKind for an odd p. The phases are (Q m + d)/p + e with |d| < p, and the
// inequality is
//
//	2 (eta/Q)(bound + 1) + n < Phi.
func ExactOddKind(q, p uint64, parties int, bound float64) (masks.Kind, error) {
	return smallest(q, parties, bound, func(phi int) masks.Kind { return masks.OddKind(p, phi) })
}

// smallest returns the kind with the smallest Phi that tolerates noise up to bound.
func smallest(q uint64, parties int, bound float64, kind func(phi int) masks.Kind) (masks.Kind, error) {
	for phi := 1; ; phi++ {
		k := kind(phi)
		if k.Check() != nil || k.LogEta > bits.Len64(q-1) {
			break
		}
		if bound <= MaxNoise(k, q, parties) {
			return k, nil
		}
	}
	return masks.Kind{}, fmt.Errorf("%w: noise of %g modulo %d is too large for %d parties", ErrParams, bound, q, parties)
}

// MaxNoise returns the largest |e| that satisfies the inequality of ExactKind or ExactOddKind. If
// the result is negative, no noise satisfies it.
func MaxNoise(k masks.Kind, q uint64, parties int) float64 {
	phi, eta, encoding := math.Exp2(float64(k.LogPhi)), float64(k.Eta()), float64(k.P())
	if k.Odd != 0 {
		encoding = 1
	}
	n := float64(parties)
	if eta == float64(q) {
		n = 0
	}
	// 2^-40 below the bound: this makes the inequality strict and exceeds the rounding error of
	// this line
	return ((phi-n)*float64(q)/(2*eta))*(1-math.Exp2(-40)) - encoding
}

// FailureProbability returns the probability that a decryption yields a plaintext other than the
// ciphertext's, for Gaussian noise with the given variance in units of residues modulo Q. The noise
// e' after the switch has variance
//
//	sigma^2 = (eta/Q)^2 variance + n/12,
//
// where the second term accounts for the parties' roundings. The exact form fails with probability
// P[|e'| > Phi/2]. The paper's form fails more often, with probability
//
//	P[|e'| > Phi/2] + E[|e'|/Phi; |e'| < Phi/2] = erfc(x) + sqrt(2/pi) (sigma/Phi) (1 - exp(-x^2)),
//	                                              x = Phi/(sqrt(8) sigma),
//
// which is sqrt(2/pi) sigma/Phi for small noise.
func FailureProbability(k masks.Kind, q uint64, parties int, variance float64) float64 {
	phi, ratio := math.Exp2(float64(k.LogPhi)), float64(k.Eta())/float64(q)
	square := ratio * ratio * variance
	if ratio != 1 {
		square += float64(parties) / 12
	}
	sigma := math.Sqrt(square)
	if sigma == 0 {
		return 0
	}
	x := phi / (math.Sqrt(8) * sigma)
	wrong := math.Erfc(x)
	if k.Form == masks.Paper {
		wrong += math.Sqrt(2/math.Pi) * sigma / phi * -math.Expm1(-x*x)
	}
	return wrong
}
