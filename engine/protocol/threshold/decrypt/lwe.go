package decrypt

import (
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/lwe"
)

// NoiseBound returns the noise up to which keys of a set are opened in the exact form without
// failures. It is half of the noise that makes a ciphertext ambiguous.
func NoiseBound(s *lwe.Scheme) float64 { return float64(s.Q) / float64(4*s.P) }

// ParamsOf returns the parameters for threshold + 1 holders of keys of package lwe: for the paper's
// form, or for the exact form with the smallest Phi for NoiseBound. The error wraps ErrParams.
func ParamsOf(s *lwe.Scheme, threshold int, paper bool) (Params, error) {
	logP := bits.Len64(s.P - 1)
	p := Params{Modulus: s.Q, Dimension: s.N(), LogP: logP, Parties: threshold + 1}
	if paper {
		p.Kind = PaperKind(s.Q, logP)
		return p, p.Check()
	}
	var err error
	if p.Kind, err = ExactKind(s.Q, logP, p.Parties, NoiseBound(s)); err != nil {
		return Params{}, err
	}
	return p, p.Check()
}
