package linear

import (
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/intpoly"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sigma"
)

// With a set that has proofs, the owner of the key proves that its key and its inputs are well
// formed. So the bound on the noise, and with it the flood, also holds for an owner that does not
// follow the protocol. It knows short s, e and v_i with
//
//	b   = -a s + e           of the key
//	b_i = -a_i s + v_i/T     of each input, v_i being its message modulo T
//
// All of these are linear. The prover applies them to masks, hashes the results with all public
// values, and multiplies its secrets by the monomials that the hash determines, one for each of V
// repetitions, the same in all equations:
//
//	z = y + X^w s, and so on.
//
// The verifier applies the equations to the responses, subtracts X^w times the key or the input,
// and must get the same hash. As 2/(X^w - X^w') is a polynomial, two answers to different monomials
// yield a short S = 2 s with short 2 (b + a s) and 2 (b_i + a_i s), all under the same S. So the
// evaluating party doubles its ciphertexts before it floods them (finish), and initially multiplies
// by its entries divided by 2 modulo T: the owner decrypts as always.
//
// Secrets, the errors of the key and v_i/T are discrete Gaussians, the last on the coset of the
// message; so are masks, with uniform messages. As in key generation
// (docs/security/key-generation.md), secrets are, given these responses, no easier than secrets of
// a Gaussian half as wide. A key proves only one list of inputs, since more responses reveal more.

// ProofSizes holds the sizes of the proofs with which owners show that their keys and inputs are
// well formed.
type ProofSizes struct {
	SecretWidth float64 // of the secret, of the error of the key, and of inputs divided by T
	MaskWidth   float64
	Bound       int64 // of the canonical norm of responses, those of inputs divided by T and rounded
}

// proofBits is the number of bits of a coefficient of a response, including the sign; for inputs,
// of the response divided by T.
const proofBits = 10

// soundness is log2 of the minimal number of challenges: 128 bits, and two for the loss in a proof
// of many equations.
const soundness = 130

// repetitions returns V. Each repetition has 2N challenges.
func (s *Set) repetitions() int { return (soundness + s.LogN) / (s.LogN + 1) }

// HasProof reports whether inputs under keys of the set are proved to be well formed.
func (s *Set) HasProof() bool { return s.Proof != nil }

// beta returns the value for an error of 2^-128 in the smoothing of Z^2N, as in key generation.
func (s *Set) beta() float64 { return math.Sqrt((math.Log(2*float64(s.N())) + 128*math.Ln2) / math.Pi) }

// honest returns the width of responses.
func (p *ProofSizes) honest() float64 { return math.Hypot(p.SecretWidth, p.MaskWidth) }

// checkProof returns a description of sizes with which responses would reveal too much or be
// refused, or an empty string.
func (s *Set) checkProof() string {
	p := s.Proof
	switch {
	case p == nil:
		return ""
	//lodge:check linear/proof-sizes [drop=!(p.SecretWidth >= 2*math.Sqrt2*s.beta())] the mask of a
	//  secret is too narrow to hide it
	//lodge:check linear/proof-masks [drop=!(p.MaskWidth >=
	//  2*math.Sqrt(2*float64(s.repetitions()))*s.beta())] the mask of a response is too narrow to
	//  hide it
	case !(p.SecretWidth >= 2*math.Sqrt2*s.beta()) || !(p.MaskWidth >= 2*math.Sqrt(2*float64(s.repetitions()))*s.beta()):
		return fmt.Sprintf("secrets of width %v under masks of width %v reveal too much", p.SecretWidth, p.MaskWidth)
	case 6*p.honest() >= 1<<(proofBits-1) || float64(p.Bound) < 3.96*math.Sqrt(float64(s.N()))*p.honest():
		return fmt.Sprintf("responses of width %v may exceed the bound of %d", p.honest(), p.Bound)
	}
	return ""
}

// ProofFrames returns the number of frames in the proof of the given number of inputs, 0 for a set
// without proofs: the challenge with the responses of the secret, those of the error of the key,
// and those of each input.
func (s *Set) ProofFrames(count int) int {
	if s.Proof == nil {
		return 0
	}
	return 2 + count
}

// ProofFrameSize returns the size in bytes of frame i.
func (s *Set) ProofFrameSize(i int) int {
	switch i {
	case 0:
		return sha256.Size + s.repetitions()*codec.SignedSize(s.N(), proofBits)
	case 1:
		return s.repetitions() * codec.SignedSize(s.N(), proofBits)
	}
	return s.repetitions() * codec.SignedSize(s.N(), s.inputBits())
}

// inputBits returns the number of bits of a coefficient of an input's response.
func (s *Set) inputBits() int { return proofBits + bits.Len64(s.T) }

// InputsSize returns the size in bytes of the given number of inputs, including header and proof.
func (s *Scheme) InputsSize(count int) int {
	size := InputsHeaderSize + count*s.CiphertextSize()
	for i := range min(2, s.ProofFrames(count)) {
		size += s.ProofFrameSize(i)
	}
	if s.HasProof() {
		size += count * s.ProofFrameSize(2)
	}
	return size
}

// ProofMemory returns the approximate memory in bytes for checking a proof, in addition to the
// inputs.
func (s *Set) ProofMemory() int {
	if !s.HasProof() {
		return 0
	}
	poly, v := 8*s.N()*len(s.Q), s.repetitions()
	return (2*v+8)*poly + (v+2)*8*s.N() + 2*s.ProofFrameSize(2)
}

// image sets dst to x - a z, or to x/T - a z.
func (s *Scheme) image(dst, a, z ring.NTT, x intpoly.Poly, divided bool) {
	p := s.basis.Borrow()
	s.basis.FromInt(p, x)
	if divided {
		s.basis.MulScalar(p, p, s.scale)
	}
	s.basis.Forward(dst, p)
	s.basis.MulNTT(ring.NTT(p), a, z)
	s.basis.SubNTT(dst, dst, ring.NTT(p))
	wipe(p)
}

// transform returns the evaluation form of small coefficients.
func (s *Scheme) transform(x intpoly.Poly) ring.NTT {
	p := s.basis.NewPoly()
	s.basis.FromSmall(p, x)
	s.basis.Forward(ring.NTT(p), p)
	return ring.NTT(p)
}

// imagesDigest returns a hash of the images of an equation, one for each repetition. The images are
// not sent.
func (s *Scheme) imagesDigest(image func(v int, dst ring.NTT)) (sum [sha256.Size]byte) {
	h, dst := sha256.New(), s.basis.BorrowNTT()
	var room []byte
	for v := range s.repetitions() {
		image(v, dst)
		room = codec.AppendPoly(room[:0], dst.C, s.Q)
		h.Write(room)
	}
	wipe(ring.Poly(dst))
	h.Sum(sum[:0])
	return sum
}

// transcript holds the values that determine a challenge: the set, the key, the inputs, and the
// images of all equations.
type transcript struct {
	seed        [SeedSize]byte
	ciphertexts [][sha256.Size]byte
	images      [][sha256.Size]byte // of the key, and of each input
}

func newTranscript(count int) *transcript {
	return &transcript{ciphertexts: make([][sha256.Size]byte, count), images: make([][sha256.Size]byte, 1+count)}
}

// digest returns the challenge in the form in which it is sent.
func (t *transcript) digest(p *PublicKey) (sum [sha256.Size]byte) {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	for _, b := range [][]byte{[]byte("lodge linear proof 1"), p.scheme.hash[:], p.digest[:], t.seed[:]} {
		field(b)
	}
	for _, list := range [][][sha256.Size]byte{t.ciphertexts, t.images} {
		field(binary.BigEndian.AppendUint64(nil, uint64(len(list))))
		for _, d := range list {
			field(d[:])
		}
	}
	h.Sum(sum[:0])
	return sum
}

// monomials expands a challenge.
func (s *Set) monomials(digest [sha256.Size]byte) sigma.Challenge {
	xof := sha3.NewSHAKE256()
	_, _ = xof.Write([]byte("lodge linear challenge"))
	_, _ = xof.Write(digest[:])
	c, err := sigma.NewChallenge(xof, s.repetitions(), 1, 1, 2*s.N())
	if err != nil {
		panic(err) // N is at most 2^15
	}
	return c
}

// verification is the state of a proof while it is received.
type verification struct {
	*transcript
	key       *PublicKey
	challenge [sha256.Size]byte
	turns     []ring.NTT // X^w by repetition
	secrets   []ring.NTT // responses of the secret by repetition
	seen      []bool     // by frame
}

// PutProof accepts a frame of the proof. Each frame must be sent once, the first one before the
// others and that of an input after the input. The error wraps [ErrProof] and names the failed
// check; Verified reports whether the whole proof holds.
func (in *Inputs) PutProof(i int, frame []byte) error {
	v := in.proof
	if v == nil {
		return fmt.Errorf("%w: no proof is expected: set %s has no proofs, or the inputs are the caller's own", ErrProof, in.scheme.Name)
	}
	s := in.scheme
	switch {
	//lodge:check linear/proof-order [drop=v.seen[i]] one response is accepted twice
	case i < 0 || i >= len(v.seen) || v.seen[i] || i > 0 && !v.seen[0]:
		return fmt.Errorf("%w: frame %d of %d out of order", ErrProof, i, len(v.seen))
	//lodge:check linear/proof-input a proof is verified before its inputs have arrived
	case i > 1 && in.b[i-2].C == nil:
		return fmt.Errorf("%w: of input %d, which has not been received", ErrProof, i-2)
	//lodge:check linear/proof-length [swap=len(frame) != s.ProofFrameSize(i)=>len(frame) <
	//  s.ProofFrameSize(i)] a longer proof frame passes
	case len(frame) != s.ProofFrameSize(i):
		return fmt.Errorf("%w: frame %d has %d bytes, want %d", ErrProof, i, len(frame), s.ProofFrameSize(i))
	}
	switch i {
	case 0:
		v.challenge, v.secrets, v.turns = [sha256.Size]byte(frame), nil, nil // a refused frame must leave no state behind
		c := s.monomials(v.challenge)
		err := s.responses(frame[sha256.Size:], proofBits, func(r int, z intpoly.Poly) {
			v.secrets = append(v.secrets, s.transform(z))
			turn := intpoly.New(s.N(), 1)
			one := intpoly.New(s.N(), 1)
			one.C[0] = 1
			intpoly.AddMonomial(turn, one, c.At(r, 0))
			v.turns = append(v.turns, s.transform(turn))
		})
		if err != nil {
			return fmt.Errorf("%w: of the secret: %w", ErrProof, err)
		}
	case 1:
		if err := v.equation(0, v.key.b[0], v.key.a[0], frame, proofBits); err != nil {
			return fmt.Errorf("%w: of the error of the key: %w", ErrProof, err)
		}
	default:
		a := s.expand(&in.seed, "linear input", uint64(i-2))
		defer a.Free()
		if err := v.equation(i-1, in.b[i-2], a, frame, s.inputBits()); err != nil {
			return fmt.Errorf("%w: of input %d: %w", ErrProof, i-2, err)
		}
	}
	v.seen[i] = true
	return nil
}

// equation recomputes the images of the masks of equation i, of the sample (b, a).
func (v *verification) equation(i int, b, a ring.NTT, frame []byte, width int) error {
	s := v.key.scheme
	list := make([]intpoly.Poly, 0, s.repetitions())
	if err := s.responses(frame, width, func(_ int, z intpoly.Poly) { list = append(list, z.Clone()) }); err != nil {
		return err
	}
	turned := s.basis.BorrowNTT()
	defer turned.Free()
	v.images[i] = s.imagesDigest(func(r int, dst ring.NTT) {
		s.image(dst, a, v.secrets[r], list[r], width != proofBits)
		s.basis.MulNTT(turned, v.turns[r], b)
		//lodge:check linear/proof-turned a proof passes for another key or other inputs
		s.basis.SubNTT(dst, dst, turned)
	})
	return nil
}

// responses decodes the responses of one equation, and returns an error if one is too long.
func (s *Scheme) responses(frame []byte, width int, take func(r int, z intpoly.Poly)) error {
	z, short := intpoly.New(s.N(), 1), intpoly.New(s.N(), 1)
	size := codec.SignedSize(s.N(), width)
	for r := range s.repetitions() {
		if err := codec.DecodeSigned(z, width, frame[r*size:(r+1)*size]); err != nil {
			return err
		}
		copy(short.C, z.C)
		//lodge:check linear/proof-divided [swap=width != proofBits=>width == proofBits] long inputs
		//  pass if their message is chosen well
		if width != proofBits {
			s.divided(short)
		}
		//lodge:check linear/proof-norm long witnesses pass
		if !s.norm.Within(short) {
			return fmt.Errorf("response %d is longer than %d", r, s.Proof.Bound)
		}
		take(r, z)
	}
	return nil
}

// divided divides coefficients by T, which is odd, and rounds. It is only for public values.
func (s *Set) divided(z intpoly.Poly) {
	t := int64(s.T)
	for k, c := range z.C {
		x := int64(c) + (t-1)/2
		q := x / t
		if x%t < 0 {
			q--
		}
		z.C[k] = uint64(q)
	}
}

// verified returns an error unless the inputs have a valid proof. The error wraps [ErrProof].
func (in *Inputs) verified() error {
	v := in.proof
	switch {
	case !in.scheme.HasProof():
		return nil
	//lodge:check linear/proof-nobody inputs are used without a proof
	case v == nil:
		return fmt.Errorf("%w: the inputs have no proof state", ErrProof)
	}
	for i, seen := range v.seen {
		//lodge:check linear/proof-missing [redundant=the hash covers all equations, and a missing
		//  one counts as zeros] an incomplete proof passes
		if !seen {
			return fmt.Errorf("%w: frame %d of %d is missing", ErrProof, i, len(v.seen))
		}
	}
	//lodge:check linear/proof-challenge a prover chooses its own challenge
	if v.digest(v.key) != v.challenge {
		return fmt.Errorf("%w: the responses are not to this key, these inputs and this challenge", ErrProof)
	}
	return nil
}
