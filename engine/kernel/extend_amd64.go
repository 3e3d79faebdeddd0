package kernel

import "math/bits"

// vectorRoundFractions computes the first slots and gives their number.
func vectorRoundFractions(v []uint8, y []uint64, stride int, f []Fraction) int {
	n := len(v) &^ 7
	if Selected() < AVX512 || n == 0 || len(f) == 0 {
		return 0
	}
	roundFractionsAVX512(&v[0], &y[0], stride, n, &f[0].scaled, len(f))
	return n
}

// vectorApply computes the first slots and gives their number.
func (s *Sum) vectorApply(dst, y []uint64, stride int, v []uint8) int {
	n, terms := len(dst)&^7, s.terms()
	switch {
	case Selected() < AVX512 || n == 0 || terms == 0:
		return 0
	case s.short && Selected() >= IFMA && bits.Len64(s.Q) <= MaxBitsIFMA:
		c := s.reduction52()
		sumIFMA(&dst[0], &y[0], &v[0], stride, n, &s.weights[0], terms, &c)
	default:
		sumAVX512(&dst[0], &y[0], &v[0], stride, n, &s.weights[0], terms, s.Q)
	}
	return n
}
