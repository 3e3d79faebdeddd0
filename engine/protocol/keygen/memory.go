package keygen

import (
	"github.com/lodge-mpc/lodge/engine/gbfv"
)

// MemoryBytes estimates the memory of a run at one party, in bytes: the sums of the shares, the
// packed messages that it sends and, with proofs, the masks and responses for secrets of every
// party. It doubles this sum to account for garbage that has not been collected yet.
func MemoryBytes(s *gbfv.Scheme, parties, dim, workers int, security string) (int64, error) {
	c := &Config{Scheme: s, Dim: dim}
	if err := checkDim(s, dim); err != nil {
		return 0, err
	}
	poly := int64(s.N()) * int64(len(s.Set.Q)) * 8
	if security != Proved {
		return 2 * int64(EncodedFrames(s, dim)+2*s.GadgetDigits()) * poly, nil
	}
	proof, err := s.Set.KeyProof(parties, dim)
	if err != nil {
		return 0, err
	}
	st := &statement{Config: c, proof: proof, equations: c.proved()}
	polys := len(st.equations) + 2*parties*(proof.V+s.GadgetDigits()) + 6*workers
	return 2 * (int64(polys)*poly + st.bytes()), nil
}
