package linear

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/ring"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// Inputs are fresh ciphertexts of the owner of a key. In (b, a) with the phase b + a s = m/T + e,
// the uniform half a is derived from the seed and is never sent. Both halves are in evaluation
// form.
type Inputs struct {
	scheme *Scheme
	key    [32]byte // digest of the public key
	seed   [SeedSize]byte
	b      []ring.NTT // nil until received

	sent  [][]byte      // own proof, by frame
	proof *verification // of received inputs, if the set has proofs
}

// encrypt encrypts count messages of N coefficients modulo T, which fill writes to zeroed storage.
// The source must be used for these ciphertexts only. The error wraps [ErrKeys].
func (k *SecretKey) encrypt(count, workers int, fill func(i int, m []uint64), source *sample.Source) (*Inputs, error) {
	s, key := k.scheme, k.s.Open()
	if s.HasProof() {
		return k.proveInputs(count, workers, fill, source)
	}
	in := &Inputs{scheme: s, key: k.digest, b: make([]ring.NTT, count)}
	seed := source.Stream("linear input seed")
	_, _ = seed.Read(in.seed[:])
	parallel.For(workers, count, func(i int) {
		m := take[uint64](&words, s.N())
		clear(m)
		fill(i, m)
		p := s.basis.Borrow()
		s.message(p, m)
		giveBack(&words, m)
		s.addErrors(p, source.Stream("linear input error", uint64(i)))
		in.b[i] = ring.NTT(p)
		s.basis.Forward(in.b[i], p)
		a := s.expand(&in.seed, "linear input", uint64(i))
		s.basis.MulNTT(a, a, key.NTT)
		s.basis.SubNTT(in.b[i], in.b[i], a)
		wipe(ring.Poly(a))
	})
	return in, nil
}

// all returns the halves (b, a) of all ciphertexts. It returns an error unless their number and key
// are as expected and none is missing.
func (in *Inputs) all(p *PublicKey, count int) (b, a []ring.NTT, err error) {
	if err := in.check(p, count); err != nil {
		return nil, nil, err
	}
	//lodge:check linear/proof-wanted inputs are used before their proof is complete
	if err := in.verified(); err != nil {
		return nil, nil, err
	}
	for i := range in.b {
		b = append(b, in.b[i])
		a = append(a, in.scheme.expand(&in.seed, "linear input", uint64(i)))
	}
	return b, a, nil
}

// Len returns the number of ciphertexts.
func (in *Inputs) Len() int { return len(in.b) }

// InputsHeaderSize is the size in bytes of the header that precedes the ciphertexts.
const InputsHeaderSize = 32 + 32 + SeedSize

// CiphertextSize returns the size in bytes of an encoded fresh ciphertext.
func (s *Scheme) CiphertextSize() int { return codec.PolySize(s.N(), s.Q) }

// Header returns the hash of the set, the digest of the public key and the seed.
func (in *Inputs) Header() []byte {
	b := append(make([]byte, 0, InputsHeaderSize), in.scheme.hash[:]...)
	return append(append(b, in.key[:]...), in.seed[:]...)
}

// AppendCiphertext appends ciphertext i, in [0, Len).
func (in *Inputs) AppendCiphertext(dst []byte, i int) []byte {
	return codec.AppendPoly(dst, in.b[i].C, in.scheme.Q)
}

// ProofFrames returns the number of frames in the owner's proof of these inputs.
func (in *Inputs) ProofFrames() int { return len(in.sent) }

// ProofFrame returns frame i, in [0, ProofFrames).
func (in *Inputs) ProofFrame(i int) []byte { return in.sent[i] }

// ReceiveInputs starts receiving a plan's number of ciphertexts under a key, with their header. The
// caller continues with Put and, if the set has proofs, PutProof. The error wraps [ErrCiphertext],
// or [ErrForeign].
func (p *PublicKey) ReceiveInputs(header []byte, count int) (*Inputs, error) {
	switch {
	//lodge:check linear/inputs-header [swap=len(header) != InputsHeaderSize=>len(header) < 64] a
	//  header of the wrong size is accepted
	case len(header) != InputsHeaderSize:
		return nil, fmt.Errorf("%w: the header has %d bytes, want %d", ErrCiphertext, len(header), InputsHeaderSize)
	//lodge:check linear/inputs-set ciphertexts of another parameter set are accepted
	case !bytes.Equal(header[:32], p.scheme.hash[:]):
		return nil, fmt.Errorf("%w: the ciphertexts are not of set %s", ErrForeign, p.scheme.Name)
	//lodge:check linear/inputs-key ciphertexts under another key are accepted
	case !bytes.Equal(header[32:64], p.digest[:]):
		return nil, fmt.Errorf("%w: the ciphertexts are not under key %x", ErrForeign, p.digest)
	}
	in := &Inputs{scheme: p.scheme, key: p.digest, seed: [SeedSize]byte(header[64:]), b: make([]ring.NTT, count)}
	if p.scheme.HasProof() {
		in.proof = &verification{transcript: newTranscript(count), key: p, seen: make([]bool, p.scheme.ProofFrames(count))}
		in.proof.seed = in.seed
	}
	return in, nil
}

// Put stores ciphertext i, once. The error wraps [ErrCiphertext]; the ciphertext then remains
// missing.
func (in *Inputs) Put(i int, b []byte) error {
	switch {
	//lodge:check linear/inputs-number [drop=i >= len(in.b)] a ciphertext outside the plan is
	//  accepted
	case i < 0 || i >= len(in.b):
		return fmt.Errorf("%w: number %d of %d", ErrCiphertext, i, len(in.b))
	//lodge:check linear/inputs-twice a second ciphertext replaces the first
	case in.b[i].C != nil:
		return fmt.Errorf("%w: number %d was received twice", ErrCiphertext, i)
	//lodge:check linear/inputs-length [swap=len(b) != in.scheme.CiphertextSize()=>len(b) >
	//  in.scheme.CiphertextSize()+1] [redundant=package codec checks the length too, after the
	//  allocation] a ciphertext is decoded without a limit on its size
	case len(b) != in.scheme.CiphertextSize():
		return fmt.Errorf("%w: number %d has %d bytes, want %d", ErrCiphertext, i, len(b), in.scheme.CiphertextSize())
	}
	v := in.scheme.basis.BorrowNTT()
	//lodge:check linear/inputs-residue a ciphertext has several encodings
	if err := codec.DecodePoly(v.C, in.scheme.Q, b); err != nil {
		return fmt.Errorf("%w: number %d: %w", ErrCiphertext, i, err)
	}
	in.b[i] = v
	if in.proof != nil {
		//lodge:check linear/proof-ciphertexts the challenge does not bind the inputs
		in.proof.ciphertexts[i] = sha256.Sum256(b)
	}
	return nil
}

// check returns an error unless the number and the key of inputs are as expected and no input is
// missing. The error wraps [ErrCiphertext], or [ErrForeign].
func (in *Inputs) check(p *PublicKey, count int) error {
	switch {
	//lodge:check linear/inputs-foreign ciphertexts under another key than the answer's are
	//  evaluated
	case in.key != p.digest:
		return fmt.Errorf("%w: the ciphertexts are not under key %x", ErrForeign, p.digest)
	//lodge:check linear/inputs-count [swap=len(in.b) != count=>len(in.b) > count] inputs of the
	//  wrong number are evaluated
	case len(in.b) != count:
		return fmt.Errorf("%w: there are %d, want %d", ErrCiphertext, len(in.b), count)
	}
	for i, b := range in.b {
		//lodge:check linear/inputs-missing a missing ciphertext crashes the evaluation
		if b.C == nil {
			return fmt.Errorf("%w: number %d is missing", ErrCiphertext, i)
		}
	}
	return nil
}
