package popk

import (
	"errors"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/params"
)

// response is (mu_z, t) of one repetition; mu_z and t may also be witnesses or masks.
type response struct {
	z intpoly.Poly
	t [3]intpoly.Poly
}

// spareBits is room for a sign, and for the sums of responses that the tests make as the figure does.
const spareBits = 10

func newResponse(n int, p params.Proof) response {
	z, t := responseWords(p)
	r := response{z: intpoly.New(n, z)}
	for i := range r.t {
		r.t[i] = intpoly.New(n, t)
	}
	return r
}

// newWitness is zero, with as many words as a message and its randomness take.
func newWitness(s *gbfv.Scheme) response {
	r := response{z: intpoly.New(s.N(), s.MessageWords())}
	for i := range r.t {
		r.t[i] = intpoly.New(s.N(), 1)
	}
	return r
}

// responseWords is how many words the coefficients of z and of each polynomial of t have.
func responseWords(p params.Proof) (z, t int) {
	words := func(bits int) int { return (bits + spareBits + 63) / 64 }
	return words(p.B1.BitLen()), words(p.Bt1.BitLen())
}

func (r response) wipe() {
	r.z.Wipe()
	for i := range r.t {
		r.t[i].Wipe()
	}
}

// encode packs r. It fails when a coefficient has more bits than its bound allows, which an honest prover's
// has with negligible probability.
func (r response) encode(p params.Proof) ([]byte, error) {
	wz, wt := widths(p)
	frame, err := codec.AppendSigned(make([]byte, 0, responseSize(r.z.N(), p)), r.z, wz)
	for i := range r.t {
		if err != nil {
			return nil, err
		}
		frame, err = codec.AppendSigned(frame, r.t[i], wt)
	}
	return frame, err
}

// decode unpacks a frame into r.
func (r response) decode(p params.Proof, frame []byte) error {
	n := r.z.N()
	wz, wt := widths(p)
	at := codec.SignedSize(n, wz)
	if len(frame) != responseSize(n, p) {
		return errors.New("popk: a response has the wrong length")
	}
	if err := codec.DecodeSigned(r.z, wz, frame[:at]); err != nil {
		return err
	}
	for i := range r.t {
		next := at + codec.SignedSize(n, wt)
		if err := codec.DecodeSigned(r.t[i], wt, frame[at:next]); err != nil {
			return err
		}
		at = next
	}
	return nil
}

// fault names the check that a response fails on its own, or is empty.
func (r response) fault(s *gbfv.Scheme, p params.Proof) string {
	if !r.z.Within(p.B1) {
		return CheckBound
	}
	for i := range r.t {
		if !r.t[i].Within(p.Bt1) {
			return CheckBound
		}
	}
	if p.Diag && !onMultiples(r.z, s.Slots()) {
		return CheckDiagonal
	}
	return ""
}

// onMultiples reports whether z is in Z[X^d]: no coefficient but at multiples of d. z is public.
func onMultiples(z intpoly.Poly, d int) bool {
	for k := range z.N() {
		if k%d == 0 {
			continue
		}
		for _, w := range z.Coeff(k) {
			if w != 0 {
				return false
			}
		}
	}
	return true
}
