package sample

import (
	"errors"
	"fmt"
	"io"

	"github.com/lodge-mpc/lodge/engine/secret"
)

// drawSize is how many bytes Draw reads: two seeds, so that a generator that repeats itself is noticed within one draw.
const drawSize = 2 * SeedSize

// ErrWeakSeed is wrapped by Draw's error for bytes that no working generator gives.
var ErrWeakSeed = errors.New("sample: a seed that is not random")

// Draw makes a source of fresh randomness, which it reads from random, for one purpose and for what binds it: public data
// that tells this use from every other, such as the session's id, in which every party has a nonce, and the party. Where a
// generator gives the same bytes twice, as it may in the copy of a machine that was running, uses that are bound to
// something else still have unrelated sources; the same use has the same one. Binding adds no entropy.
//
// This is the only way by which production code makes a source of its own; NewSource takes seeds as they are.
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

// Limits of weakness, for the 64 bytes of a draw. Uniform bytes fail none of its tests but with probability 2^-59: eight
// bits that could stand still have 2^-60 together, and the others less than 2^-120 (64 bytes, or 63 differences, of fewer
// than 20 values: at most C(256,19) (19/256)^63, which is below 2^-140).
const (
	leastValues = 20
	mostPeriod  = drawSize / 2
)

// weakness says what is wrong with the bytes of a draw, or nothing. It finds generators that are broken in plain ways:
// constants, text, counters, short cycles, a bit that stands still. It cannot find one whose output looks random and is
// not secret, such as a hash of the time or the generator of a copied machine: no test of the output can. Its time depends
// on the bytes only if it refuses them.
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

// distinct is the number of values among at most 256 bytes, in a time that does not depend on them.
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
