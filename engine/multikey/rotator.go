package multikey

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/sp301415/tfhe-go/math/poly"

	"github.com/lodge-mpc/lodge/engine/codec"
	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/sample"
)

//lodge:tests rotations TestRotationRefusals|TestRotationKeyRefusals

// Rotate computes rotations and returns their accumulators in the same order.
type Rotate func(ctx context.Context, list []Rotation) ([]Accumulator, error)

// Rotate computes rotations on the given number of goroutines, with the keys added to e. The error
// wraps [ErrRotation] or [ErrUnknownKey], or is ctx's.
func (e *Evaluator) Rotate(ctx context.Context, workers int, list []Rotation) ([]Accumulator, error) {
	keys := make([]*expanded, len(list))
	for i, r := range list {
		if err := e.s.checkExponents(r.Exponents); err != nil {
			return nil, err
		}
		e.lock.RLock()
		keys[i] = e.keys[r.Key]
		e.lock.RUnlock()
		//lodge:check multikey/rotation-key [run=@rotations] a rotation with a missing key crashes
		if keys[i] == nil {
			return nil, fmt.Errorf("%w: %x", ErrUnknownKey, r.Key[:])
		}
	}
	out := make([]Accumulator, len(list))
	err := e.try(ctx, workers, len(list), func(b *bench, i int) {
		out[i] = b.rotate(e.s, keys[i].rotation, list[i].Exponents)
	})
	return out, err
}

// Rotator computes only rotations, for any common reference string. A process that helps others to
// compute needs one for each set. It is safe for concurrent use.
type Rotator struct {
	s       *Scheme
	benches *sync.Pool
	kind    [32]byte
}

// NewRotator prepares a valid set.
func NewRotator(set *Set) (*Rotator, error) {
	s, err := New(set, StandardSeed())
	if err != nil {
		return nil, err
	}
	return &Rotator{s: s, benches: &sync.Pool{New: func() any { return s.newBench() }}, kind: s.Kind()}, nil
}

// kindBlocks is the number of steps that determine the kind of arithmetic. Before the first step
// one half is 0; every later step processes the rounding errors of the steps before.
const kindBlocks = 4

// Kind identifies the arithmetic of transforms in this process: SHA-256 of a tag, the set's hash,
// and the words of a rotation with fixed rows. Processes of one kind compute the same words for all
// rotations; processes of different kinds compute only the same bits.
func (s *Scheme) Kind() [32]byte {
	seed := sha256.Sum256([]byte("Lodge multi-key TFHE: the rows by which a kind of arithmetic is told, version 1"))
	b := s.newBench()
	_, each := s.rows()
	coordinates := min(kindBlocks*s.Block, s.Dim)
	rows := make([][2]poly.FourierPoly, coordinates*each)
	for i := range rows {
		for half := range rows[i] {
			sample.ExpandWords(b.product.Coeffs, seed[:], "multikey kind", uint64(i), uint64(half))
			rows[i][half] = b.transform.ToFourierPoly(b.product)
		}
	}
	exponents := make([]uint16, s.Dim)
	for i := range coordinates {
		exponents[i] = uint16(2*i+1) * 37 & uint16(2*s.N()-1)
	}
	h := sha256.New()
	h.Write([]byte("lodge multikey kind 1"))
	h.Write(s.hash[:])
	h.Write(appendWords(nil, b.rotate(s, rows, exponents)))
	return [32]byte(h.Sum(nil))
}

// Set returns the rotator's set.
func (r *Rotator) Set() *Set { return r.s.Set }

// Kind returns the scheme's kind of arithmetic.
func (r *Rotator) Kind() [32]byte { return r.kind }

// RotationKey holds the part of a party's keys that rotations need, prepared for computation.
type RotationKey struct{ rows [][2]poly.FourierPoly }

// RotationKeyMemory returns the approximate number of bytes that a rotator needs for the keys of
// one party.
func (s *Set) RotationKeyMemory() int { return 16 * s.N() * s.Dim * 2 * s.Rotation.Digits }

// RotationMemory returns the approximate number of bytes that a rotation needs.
func (s *Set) RotationMemory() int {
	return 8 * s.N() * (2*s.Lev.Digits*(3+s.Rotation.Digits) + max(s.Rotation.Digits, s.Lev.Digits, s.Uni.Digits) + 8)
}

// Receive reads the keys with the given name: their header, the digest of the first chunk, whose
// content rotations do not need, and the other chunks in order, which next returns until [io.EOF].
// It expands chunks as they arrive, on the given number of goroutines, without retaining them. The
// error wraps [ErrKeys], [ErrSet], one of package [codec]'s, or is next's.
func (r *Rotator) Receive(
	id KeyID, header []byte, first [32]byte, workers int, next func() ([]byte, error),
) (*RotationKey, error) {
	s := r.s
	switch {
	//lodge:check multikey/rotation-header [run=@rotations] a header of rotation keys of the wrong
	//  size is accepted
	case len(header) != HeaderSize:
		return nil, fmt.Errorf("%w: the header has %d bytes, want %d", ErrKeys, len(header), HeaderSize)
	//lodge:check multikey/rotation-set [run=@rotations] rotation keys of another parameter set are
	//  accepted
	case [32]byte(header) != s.hash:
		return nil, fmt.Errorf("%w: the keys are not for %s", ErrSet, s.Name)
	}
	seed := [SeedSize]byte(header[68:])
	before, each := s.rows()
	k := &RotationKey{rows: make([][2]poly.FourierPoly, 0, s.Dim*each)}
	digests := [][32]byte{first}
	for i := 1; i < s.Chunks(); i++ {
		chunk, err := next()
		//lodge:check multikey/rotation-fewer [run=@rotations] incomplete rotation keys are accepted
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%w: %d of %d chunks: %w", ErrKeys, i-1, s.Chunks()-1, codec.ErrTruncated)
		}
		if err != nil {
			return nil, err
		}
		//lodge:check multikey/rotation-chunk [swap=exactly("chunk", len(chunk),
		//  s.ChunkSize(i))=>error(nil)] [run=@rotations] a chunk of rotation keys of the wrong size
		//  is accepted
		if err := exactly("chunk", len(chunk), s.ChunkSize(i)); err != nil {
			return nil, fmt.Errorf("%w: chunk %d: %w", ErrKeys, i, err)
		}
		digests = append(digests, sha256.Sum256(chunk))
		from, to, _ := s.chunk(i)
		k.rows = append(k.rows, make([][2]poly.FourierPoly, to-from)...)
		parallel.For(workers, to-from, func(n int) {
			r.row(&k.rows[from-before+n], chunk[n*s.elementSize():(n+1)*s.elementSize()], &seed, from-before+n)
		})
	}
	//lodge:check multikey/rotation-more [run=@rotations] rotation keys can have trailing data
	if _, err := next(); err == nil {
		return nil, fmt.Errorf("%w: more than %d chunks: %w", ErrKeys, s.Chunks()-1, codec.ErrTrailing)
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	//lodge:check multikey/rotation-name [run=@rotations] received rotation keys need not match
	//  their identifier
	if got := IDOf(header, digests); got != id {
		return nil, fmt.Errorf("%w: the keys have the name %x, not %x", ErrKeys, got, id)
	}
	return k, nil
}

// row expands a row of the rotation key from its encoding.
func (r *Rotator) row(dst *[2]poly.FourierPoly, encoded []byte, seed *[SeedSize]byte, at int) {
	b := r.benches.Get().(*bench)
	defer r.benches.Put(b)
	s, words := r.s, b.product.Coeffs
	_, each := s.rows()
	kernel.Unpack(words, encoded, ringBits-s.Drop)
	for i := range words {
		words[i] <<= s.Drop
	}
	dst[0] = b.transform.ToFourierPoly(b.product)
	s.rotationMask(words, seed, at/each, at%each)
	dst[1] = b.transform.ToFourierPoly(b.product)
}

// Rotate computes rotations of one party on the given number of goroutines. It passes each result
// to ended, in calls that do not overlap and in any order. The error is ctx's, or the first of
// ended.
func (r *Rotator) Rotate(
	ctx context.Context, workers int, k *RotationKey, list [][]uint16, ended func(i int, a Accumulator) error,
) error {
	var lock sync.Mutex
	return parallel.Try(ctx, workers, len(list), func(i int) error {
		b := r.benches.Get().(*bench)
		defer r.benches.Put(b)
		a := b.rotate(r.s, k.rows, list[i])
		lock.Lock()
		defer lock.Unlock()
		return ended(i, a)
	})
}

// checkExponents returns an error unless list holds the exponents of a part. The error wraps
// [ErrRotation].
func (s *Set) checkExponents(list []uint16) error {
	//lodge:check multikey/exponents [run=@rotations] a rotation has too few or too many exponents
	if len(list) != s.Dim {
		return fmt.Errorf("%w: there are %d exponents, want %d", ErrRotation, len(list), s.Dim)
	}
	for i, e := range list {
		//lodge:check multikey/exponent [run=@rotations] an exponent is out of range
		if int(e) >= 2*s.N() {
			return fmt.Errorf("%w: exponent %d is %d, but must be below %d", ErrRotation, i, e, 2*s.N())
		}
	}
	return nil
}

// ExponentsSize returns the size in bytes of the exponents of a rotation.
func (s *Set) ExponentsSize() int { return 2 * s.Dim }

// AppendExponents appends the exponents of a rotation, two bytes each, least significant first.
func (s *Set) AppendExponents(dst []byte, list []uint16) []byte {
	for _, e := range list {
		dst = binary.LittleEndian.AppendUint16(dst, e)
	}
	return dst
}

// DecodeExponents reads the exponents of a rotation. The error wraps [ErrRotation].
func (s *Set) DecodeExponents(b []byte) ([]uint16, error) {
	//lodge:check multikey/exponents-size [swap=exactly("exponents", len(b),
	//  s.ExponentsSize())=>error(nil)] [run=@rotations] encoded exponents of the wrong size are
	//  accepted
	if err := exactly("exponents", len(b), s.ExponentsSize()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRotation, err)
	}
	list := make([]uint16, s.Dim)
	for i := range list {
		list[i] = binary.LittleEndian.Uint16(b[2*i:])
	}
	return list, s.checkExponents(list)
}

// AccumulatorSize returns the size in bytes of an encoded accumulator.
func (s *Set) AccumulatorSize() int { return 16 * s.Lev.Digits * s.N() }

// AppendAccumulator appends the words of an accumulator, least significant byte first.
func AppendAccumulator(dst []byte, a Accumulator) []byte { return appendWords(dst, a) }

// DecodeAccumulator reads an accumulator. Every string of the right length encodes one. The error
// wraps [ErrRotation].
func (s *Set) DecodeAccumulator(b []byte) (Accumulator, error) {
	//lodge:check multikey/accumulator-size [swap=exactly("accumulator", len(b),
	//  s.AccumulatorSize())=>error(nil)] [run=@rotations] encoded accumulators of the wrong size
	//  are accepted
	if err := exactly("accumulator", len(b), s.AccumulatorSize()); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRotation, err)
	}
	a := make(Accumulator, len(b)/8)
	for i := range a {
		a[i] = binary.LittleEndian.Uint64(b[8*i:])
	}
	return a, nil
}
