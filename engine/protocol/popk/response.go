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

// spareBits leaves space for a sign, and for the sums of responses that tests of the original
// figure compute.
const spareBits = 10

func newResponse(n int, p params.Proof) response {
	z, t := responseWords(p)
	r := response{z: intpoly.New(n, z)}
	for i := range r.t {
		r.t[i] = intpoly.New(n, t)
	}
	return r
}

// newWitness returns a zero response with the words of a message and its randomness.
func newWitness(s *gbfv.Scheme) response {
	r := response{z: intpoly.New(s.N(), s.MessageWords())}
	for i := range r.t {
		r.t[i] = intpoly.New(s.N(), 1)
	}
	return r
}

// responseWords returns the number of words of a coefficient of z and of each polynomial of t.
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

// encode packs r. It fails if a coefficient has more bits than its bound allows, which happens to
// an honest prover with negligible probability.
func (r response) encode(p params.Proof) ([]byte, error) {
	wz, wt := widths(p)
	frame, err := codec.AppendSigned(make([]byte, 0, responseSize(r.z.N(), p)), r.message(p), wz)
	for i := range r.t {
		if err != nil {
			return nil, err
		}
		frame, err = codec.AppendSigned(frame, r.t[i], wt)
	}
	return frame, err
}

// message returns the coefficients of mu_z that an encoding contains. If the message is one
// constant, these are only the coefficients of powers of X^D, so that a response cannot leave that
// subring.
func (r response) message(p params.Proof) intpoly.Poly {
	if !p.Diag {
		return r.z
	}
	z := intpoly.New(p.Terms, r.z.W)
	for i := range p.Terms {
		copy(z.Coeff(i), r.z.Coeff(i*r.z.N()/p.Terms))
	}
	return z
}

// decode unpacks a frame into r. It does not change coefficients that an encoding does not contain,
// which are 0 in a new response.
func (r response) decode(p params.Proof, frame []byte) error {
	n := r.z.N()
	wz, wt := widths(p)
	at := codec.SignedSize(p.Terms, wz)
	//lodge:check popk/response-length [swap=len(frame) != responseSize(n, p)=>len(frame) <
	//  responseSize(n, p)] [run=Fuzz|@cheats] longer responses pass
	if len(frame) != responseSize(n, p) {
		return errors.New("popk: a response has the wrong length")
	}
	z := intpoly.New(p.Terms, r.z.W)
	if !p.Diag {
		z = r.z
	}
	if err := codec.DecodeSigned(z, wz, frame[:at]); err != nil {
		return err
	}
	if p.Diag {
		for i := range p.Terms {
			//lodge:check popk/diagonal [swap=i * n / p.Terms=>i]
			//  [run=TestCheats|TestALong|TestAWitness|FuzzResponse] a MAC key can differ between
			//  slots
			copy(r.z.Coeff(i*n/p.Terms), z.Coeff(i))
		}
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

// fault returns the check that a response fails without further data, or "".
func (r response) fault(p params.Proof) string {
	//lodge:check popk/bound-of-messages [run=@cheats] long messages pass
	if !r.message(p).Within(p.B1) {
		return CheckBound
	}
	//lodge:check popk/bound-of-all-randomness [swap=r.t=>r.t[:2]] [run=@cheats] the third
	//  polynomial of the randomness can be long
	for i := range r.t {
		//lodge:check popk/bound-of-randomness [run=@cheats] long randomness passes
		if !r.t[i].Within(p.Bt1) {
			return CheckBound
		}
	}
	return ""
}
