package sample

import (
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/secret"
)

// drawSize is the number of bytes that Draw reads: two seeds, so that a generator that repeats
// itself is detected within one draw.
const drawSize = 2 * SeedSize

// ErrWeakSeed is wrapped by Draw's error if the bytes are visibly not random. A working generator
// does not produce such bytes.
var ErrWeakSeed = errors.New("sample: the seed is not random")

// Draw reads fresh randomness and returns a source for one purpose. The source is bound to bind:
// public data that distinguishes this use from every other, such as the party and the session's id,
// to which every party contributes a nonce. A generator may return the same bytes twice, for
// example in the copy of a running machine. Uses bound to different data still have unrelated
// sources then; the same use has the same source. Binding adds no entropy.
//
// Production code creates its own sources only with Draw; NewSource accepts any seed.
func Draw(random io.Reader, purpose string, bind ...[]byte) (*Source, error) {
	seed := make([]byte, drawSize)
	defer clear(seed)
	if _, err := io.ReadFull(random, seed); err != nil {
		return nil, fmt.Errorf("sample: drawing a seed: %w", err)
	}
	if flaw := weakness(seed); flaw != "" {
		return nil, fmt.Errorf("%w: %s", ErrWeakSeed, flaw)
	}
	fields := append([][]byte{[]byte("lodge drawn source"), seed, []byte(purpose)}, bind...)
	return &Source{secret.NewBytes(hashFields(fields...))}, nil
}

// Limits of weakness for the 64 bytes of a draw. Uniform bytes fail one of its tests with
// probability at most 2^-59: eight bits that could be constant contribute 2^-60 together, and the
// other tests less than 2^-120 (64 bytes, or 63 differences, with fewer than 20 values: at most
// C(256,19) (19/256)^63, which is below 2^-140).
const (
	leastValues = 20
	mostPeriod  = drawSize / 2
)

// weakness returns the flaw in the bytes of a draw, or an empty string. It detects generators that
// are broken in simple ways: constants, text, counters, short cycles, a constant bit. It cannot
// detect output that looks random and is not secret, such as a hash of the time or the generator of
// a copied machine; no test of the output can. Its time depends on the bytes only if it refuses
// them.
func weakness(seed []byte) string {
	for period := 1; period <= mostPeriod; period++ {
		var differs byte
		for i := period; i < len(seed); i++ {
			differs |= seed[i] ^ seed[i-period]
		}
		if differs == 0 {
			return "it repeats itself"
		}
	}
	ones, zeros := byte(0xff), byte(0xff)
	for _, b := range seed {
		ones &= b
		zeros &= ^b
	}
	if ones|zeros != 0 {
		return "a bit is the same in all bytes"
	}
	steps := make([]byte, len(seed)-1)
	defer clear(steps)
	for i := range steps {
		steps[i] = seed[i+1] - seed[i]
	}
	switch {
	case distinct(seed) < leastValues:
		return "few bytes differ"
	case distinct(steps) < leastValues:
		return "it counts"
	}
	return ""
}

// distinct returns the number of different values among at most 256 bytes. Its time does not depend
// on them.
func distinct(bytes []byte) int {
	n := 0
	for i, b := range bytes {
		fresh := 1
		for _, earlier := range bytes[:i] {
			d := uint(b ^ earlier)
			fresh &= int((d | -d) >> 31 & 1) // 1 unless d is 0, which is below 2^8
		}
		n += fresh
	}
	return n
}
