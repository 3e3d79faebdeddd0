package popk

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// sums folds the statements of all parties into U+V running sums; it is the sink of the openings. The
// commitments are checked when a statement is complete, and a session in which one fails is over, so that
// nothing is ever computed from the sums then.
type sums struct {
	scheme *gbfv.Scheme
	list   []*gbfv.Ciphertext
	buffer ring.Poly
}

// newSums begins with this party's statement, which becomes the sums.
func newSums(s *gbfv.Scheme, own []*gbfv.Ciphertext) *sums {
	return &sums{scheme: s, list: own, buffer: s.Q.NewPoly()}
}

func (f *sums) Frame(_ context.Context, from round.Party, index int, _ bool, frame []byte) error {
	if err := codec.DecodePoly(f.buffer.C, f.scheme.Q.Primes(), frame); err != nil {
		return round.Malformed(from, err)
	}
	p := ring.Poly{C: part(f.list, index)}
	f.scheme.Q.Add(p, p, f.buffer)
	return nil
}

// combined is comm_j + sum_i w_ji ct_i for a list of U ciphertexts and V masks.
func combined(s *gbfv.Scheme, w sigma.Challenge, list []*gbfv.Ciphertext, j int) *gbfv.Ciphertext {
	c := list[w.Witnesses()+j].Clone()
	for i := range w.Witnesses() {
		s.AddMonomial(c, list[i], w.At(j, i))
	}
	return c
}

// encryption is Enc(z; t).
func encryption(s *gbfv.Scheme, key *gbfv.PublicKey, z intpoly.Poly, t [3]intpoly.Poly) *gbfv.Ciphertext {
	c := s.NewCiphertext()
	s.EncryptWith(c, key, z, t)
	return c
}
