package popk

import (
	"bytes"
	"context"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
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

// packed encodes a ciphertext as two frames.
func packed(s *gbfv.Scheme, ct *gbfv.Ciphertext) (c0, c1 []byte) {
	primes := s.Q.Primes()
	size := codec.PolySize(s.N(), primes)
	return codec.AppendPoly(make([]byte, 0, size), ct.C0.C, primes), codec.AppendPoly(make([]byte, 0, size), ct.C1.C, primes)
}

// maskDigest stands for a mask that is not sent: the verifier computes the mask that a response is for, as
// Enc(z; t) - sum_i w_i ct_i, and its digest must be the same.
func maskDigest(s *gbfv.Scheme, mask *gbfv.Ciphertext) round.Digest {
	c0, c1 := packed(s, mask)
	return round.Hash("lodge popk mask", c0, c1)
}

// digestsSize is the length of the frame with the digests of the masks.
func digestsSize(p params.Proof) int { return p.V * len(round.Digest{}) }

// opens reports whether a response to repetition j opens its mask, whose digest is the j-th of digests: whether
// Enc(z; t) - sum_i w_ji ct_i has this digest.
func opens(s *gbfv.Scheme, key *gbfv.PublicKey, w sigma.Challenge, list []*gbfv.Ciphertext, j int, r response, digests []byte) bool {
	mask := encryption(s, key, r.z, r.t)
	defer mask.Free()
	for i := range w.Witnesses() {
		s.SubMonomial(mask, list[i], w.At(j, i))
	}
	d := maskDigest(s, mask)
	return bytes.Equal(d[:], digests[j*len(d):(j+1)*len(d)])
}

// encryption is Enc(z; t).
func encryption(s *gbfv.Scheme, key *gbfv.PublicKey, z intpoly.Poly, t [3]intpoly.Poly) *gbfv.Ciphertext {
	c := s.Borrow()
	s.EncryptWith(c, key, z, t)
	return c
}
