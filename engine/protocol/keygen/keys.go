package keygen

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"slices"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// PublicKeys are the joint keys of an epoch. Their uniform halves are expanded from Seed and not
// stored.
type PublicKeys struct {
	Seed   round.Digest // of the common reference string
	Dim    int
	Public *gbfv.PublicKey
	Relin  *gbfv.SwitchKey
	// K0 holds the non-uniform halves of the rotation keys, by Galois element.
	K0 map[int][]ring.NTT
}

// Keys returns the evaluation keys for an evaluator.
func (k *PublicKeys) Keys(s *gbfv.Scheme) gbfv.Keys {
	return &gbfv.KeyTable{
		N: s.N(), RelinKey: k.Relin, K0: k.K0,
		Uniform: func(g int) []ring.NTT {
			k1 := make([]ring.NTT, s.GadgetDigits())
			for j := range k1 {
				k1[j] = uniform(s, k.Seed, labelRotation, uint64(g), uint64(j))
			}
			return k1
		},
	}
}

// stored lists the polynomials that follow the seed in an encoding, in order: P0, the
// relinearisation key, all K0.
func (k *PublicKeys) stored(n int) []ring.NTT {
	list := slices.Concat([]ring.NTT{k.Public.P0}, k.Relin.K0, k.Relin.K1)
	for _, g := range Rotations(n, k.Dim) {
		list = append(list, k.K0[g]...)
	}
	return list
}

// EncodedFrames returns the number of frames of the encoding of keys of dimension d.
func EncodedFrames(s *gbfv.Scheme, d int) int { return 2 + (d+1)*s.GadgetDigits() }

// Frame returns frame i of the encoding: the seed, followed by one polynomial per frame in
// coefficient form.
func (k *PublicKeys) Frame(s *gbfv.Scheme, i int) []byte {
	if i == 0 {
		return k.Seed[:]
	}
	p := s.Q.NewPoly()
	s.Q.Inverse(p, k.stored(s.N())[i-1])
	return codec.AppendPoly(nil, p.C, s.Q.Primes())
}

// Digest returns the hash of the encoding. The parties compare it, and stored epochs record it.
func (k *PublicKeys) Digest(s *gbfv.Scheme, workers int) round.Digest {
	h := NewFramesHash()
	//lodge:check keygen/agree-on-all [swap=EncodedFrames(s, k.Dim)=>EncodedFrames(s, k.Dim) - 1]
	//  [run=TestEveryPolynomial] parties can differ in the last polynomial of the keys
	total := EncodedFrames(s, k.Dim)
	for start := 0; start < total; start += 16 {
		frames := make([][]byte, min(16, total-start))
		parallel.For(workers, len(frames), func(i int) { frames[i] = k.Frame(s, start+i) })
		for _, f := range frames {
			h.Frame(f)
		}
	}
	return h.Sum()
}

// FramesHash computes the hash of an encoding frame by frame: SHA-256 over a tag and, for every
// frame, a 1, its length and its bytes, followed by a 0 and the number of frames.
type FramesHash struct {
	h     hash.Hash // never returns an error
	total uint64
}

// NewFramesHash returns the hash before the first frame.
func NewFramesHash() *FramesHash {
	f := &FramesHash{h: sha256.New()}
	f.field([]byte("lodge message"))
	f.field([]byte("lodge keys"))
	return f
}

func (f *FramesHash) field(b []byte) {
	f.h.Write(round.Uint(uint64(len(b))))
	f.h.Write(b)
}

// Frame adds the next frame.
func (f *FramesHash) Frame(b []byte) {
	f.h.Write([]byte{1})
	f.field(b)
	f.total++
}

// Sum returns the hash of all frames.
func (f *FramesHash) Sum() round.Digest {
	f.h.Write([]byte{0})
	f.h.Write(round.Uint(f.total))
	return round.Digest(f.h.Sum(nil))
}

// PublicHash returns the hash of the public key without the evaluation keys.
func (k *PublicKeys) PublicHash(s *gbfv.Scheme) round.Digest {
	return PublicHashOf(k.Seed[:], k.Frame(s, 1))
}

// PublicHashOf returns the hash of the public key whose encoding begins with these frames.
func PublicHashOf(seed, frame []byte) round.Digest {
	return round.Hash("lodge public key", seed, frame)
}

// Decode reads keys of dimension d from the frames that next returns. next must return io.EOF after
// the last frame. Too few frames are codec.ErrTruncated, too many are codec.ErrTrailing.
func Decode(s *gbfv.Scheme, d int, next func() ([]byte, error)) (*PublicKeys, error) {
	if err := checkDim(s, d); err != nil {
		return nil, err
	}
	seed, err := required(next)
	if err != nil {
		return nil, fmt.Errorf("keygen: reading keys: %w", err)
	}
	k := &PublicKeys{Dim: d}
	if len(seed) != len(k.Seed) {
		return nil, fmt.Errorf("keygen: seed of %d bytes", len(seed))
	}
	copy(k.Seed[:], seed)
	p, read := s.Q.NewPoly(), 0
	row := func(n int) ([]ring.NTT, error) { // memory grows only with the data read
		r := make([]ring.NTT, n)
		for j := range r {
			frame, err := required(next)
			if err != nil {
				return nil, fmt.Errorf("keygen: reading key polynomial %d: %w", read, err)
			}
			//lodge:check keygen/stored-residues [run=TestKeysAreStored|FuzzDecode] stored keys that
			//  are not canonical are loaded
			if err := codec.DecodePoly(p.C, s.Q.Primes(), frame); err != nil {
				return nil, fmt.Errorf("keygen: key polynomial %d: %w", read, err)
			}
			r[j] = s.Q.NewNTT()
			s.Q.Forward(r[j], p)
			read++
		}
		return r, nil
	}
	if err := k.read(s, row); err != nil {
		return nil, err
	}
	switch _, err := next(); err {
	case io.EOF:
		return k, nil
	case nil:
		//lodge:check keygen/stored-end [swap=nil=>k] [swap=fmt.Errorf("keygen: %w after the keys",
		//  codec.ErrTrailing)=>nil] [run=TestKeysAreStored|FuzzDecode] stored keys can have
		//  trailing data
		return nil, fmt.Errorf("keygen: %w after the keys", codec.ErrTrailing)
	default:
		return nil, fmt.Errorf("keygen: reading the end of keys: %w", err)
	}
}

// required returns the next frame, or codec.ErrTruncated after the last.
func required(next func() ([]byte, error)) ([]byte, error) {
	frame, err := next()
	if err == io.EOF {
		return nil, codec.ErrTruncated
	}
	return frame, err
}

// read fills k in the order of stored with the polynomials that row returns, and expands the public
// key's uniform half.
func (k *PublicKeys) read(s *gbfv.Scheme, row func(n int) ([]ring.NTT, error)) error {
	public, err := row(1)
	if err != nil {
		return err
	}
	k.Public = &gbfv.PublicKey{P0: public[0], P1: uniform(s, k.Seed, labelPublic)}
	k.Relin = &gbfv.SwitchKey{}
	if k.Relin.K0, err = row(s.GadgetDigits()); err != nil {
		return err
	}
	if k.Relin.K1, err = row(s.GadgetDigits()); err != nil {
		return err
	}
	k.K0 = map[int][]ring.NTT{}
	for _, g := range Rotations(s.N(), k.Dim) {
		if k.K0[g], err = row(s.GadgetDigits()); err != nil {
			return err
		}
	}
	return nil
}

// DecodePublic reads only the public key, from the first two frames of an encoding, and returns its
// hash.
func DecodePublic(s *gbfv.Scheme, seed, frame []byte) (*gbfv.PublicKey, round.Digest, error) {
	k := &PublicKeys{Dim: 1}
	if len(seed) != len(k.Seed) {
		return nil, round.Digest{}, fmt.Errorf("keygen: seed of %d bytes", len(seed))
	}
	copy(k.Seed[:], seed)
	p := s.Q.NewPoly()
	if err := codec.DecodePoly(p.C, s.Q.Primes(), frame); err != nil {
		return nil, round.Digest{}, fmt.Errorf("keygen: public key: %w", err)
	}
	k.Public = &gbfv.PublicKey{P0: s.Q.NewNTT(), P1: uniform(s, k.Seed, labelPublic)}
	s.Q.Forward(k.Public.P0, p)
	return k.Public, PublicHashOf(seed, frame), nil
}
