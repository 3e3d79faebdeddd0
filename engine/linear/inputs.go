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

// Inputs are fresh ciphertexts of the owner of a key. Of (b, a) with the phase b + a s = m/T + e, the uniform half a
// follows from the seed and is never sent. Both halves are in evaluation form.
type Inputs struct {
	scheme *Scheme
	key    [32]byte // digest of the public key
	seed   [SeedSize]byte
	b      []ring.NTT // nil where one has not come

	sent  [][]byte      // own proof, by frame
	proof *verification // of inputs that were received, where proofs are wanted
}

// encrypt makes ciphertexts of count messages of N coefficients modulo T, which fill writes to zeroed storage. The
// source is for these alone. The error wraps ErrKeys.
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

// all returns the halves (b, a) of all ciphertexts, which must be as many as wanted, of the key, and all there.
func (in *Inputs) all(p *PublicKey, count int) (b, a []ring.NTT, err error) {
	if err := in.check(p, count); err != nil {
		return nil, nil, err
	}
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

// InputsHeaderSize is the size in bytes of what goes before the ciphertexts.
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

// ProofFrames returns the number of frames the proof of one's own inputs has.
func (in *Inputs) ProofFrames() int { return len(in.sent) }

// ProofFrame is one of them, in [0, ProofFrames).
func (in *Inputs) ProofFrame(i int) []byte { return in.sent[i] }

// ReceiveInputs starts with the header of as many ciphertexts as a plan says, under a key, and Put and, with a
// set that has proofs, PutProof go on. The error
// wraps ErrCiphertext, or ErrForeign.
func (p *PublicKey) ReceiveInputs(header []byte, count int) (*Inputs, error) {
	switch {
	case len(header) != InputsHeaderSize:
		return nil, fmt.Errorf("%w: a header of %d bytes, want %d", ErrCiphertext, len(header), InputsHeaderSize)
	case !bytes.Equal(header[:32], p.scheme.hash[:]):
		return nil, fmt.Errorf("%w: ciphertexts of a set that is not %s", ErrForeign, p.scheme.Name)
	case !bytes.Equal(header[32:64], p.digest[:]):
		return nil, fmt.Errorf("%w: ciphertexts of a key that is not %x", ErrForeign, p.digest)
	}
	in := &Inputs{scheme: p.scheme, key: p.digest, seed: [SeedSize]byte(header[64:]), b: make([]ring.NTT, count)}
	if p.scheme.HasProof() {
		in.proof = &verification{transcript: newTranscript(count), key: p, seen: make([]bool, p.scheme.ProofFrames(count))}
		in.proof.seed = in.seed
	}
	return in, nil
}

// Put takes ciphertext i, once. The error wraps ErrCiphertext; the ciphertext is then still missing.
func (in *Inputs) Put(i int, b []byte) error {
	switch {
	case i < 0 || i >= len(in.b):
		return fmt.Errorf("%w: number %d of %d", ErrCiphertext, i, len(in.b))
	case in.b[i].C != nil:
		return fmt.Errorf("%w: number %d came twice", ErrCiphertext, i)
	case len(b) != in.scheme.CiphertextSize():
		return fmt.Errorf("%w: number %d has %d bytes, want %d", ErrCiphertext, i, len(b), in.scheme.CiphertextSize())
	}
	v := in.scheme.basis.BorrowNTT()
	if err := codec.DecodePoly(v.C, in.scheme.Q, b); err != nil {
		return fmt.Errorf("%w: number %d: %w", ErrCiphertext, i, err)
	}
	in.b[i] = v
	if in.proof != nil {
		in.proof.ciphertexts[i] = sha256.Sum256(b)
	}
	return nil
}

// check refuses inputs that are not as many as wanted, of the key, and all there. The error wraps ErrCiphertext, or
// ErrForeign.
func (in *Inputs) check(p *PublicKey, count int) error {
	switch {
	case in.key != p.digest:
		return fmt.Errorf("%w: ciphertexts of a key that is not %x", ErrForeign, p.digest)
	case len(in.b) != count:
		return fmt.Errorf("%w: %d, want %d", ErrCiphertext, len(in.b), count)
	}
	for i, b := range in.b {
		if b.C == nil {
			return fmt.Errorf("%w: number %d is missing", ErrCiphertext, i)
		}
	}
	return nil
}
