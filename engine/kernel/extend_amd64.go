//go:build !purego

package kernel

// vectorRoundFractions computes the first slots and returns their number.
func vectorRoundFractions(v []uint8, y []uint64, stride int, f []Fraction) int {
	path, n := Selected(), len(v)
	switch {
	case len(f) == 0:
		return 0
	case path >= AVX512 && n >= 8:
		n &^= 7
		roundFractionsAVX512(&v[0], &y[0], stride, n, &f[0].scaled, len(f))
	case path >= AVX2 && n >= 4:
		n &^= 3
		roundFractionsAVX2(&v[0], &y[0], stride, n, &f[0].scaled, len(f))
	default:
		return 0
	}
	return n
}

// vectorApply computes the first slots and returns their number.
func (s *Sum) vectorApply(dst, y []uint64, stride int, v []uint8) int {
	path, n, terms := Selected(), len(dst), s.terms()
	switch {
	case terms == 0:
		return 0
	case path >= IFMA && n >= 8 && s.forms != nil:
		f := s.forms
		many := n &^ 31
		if n &^= 7; many > 0 {
			sum32IFMA(&dst[0], &y[0], &v[0], stride, many, &f.weights[0], terms, f.inverse, f.multiple, f.halvings, s.Q)
		}
		if n > many {
			sum8IFMA(&dst[many], &y[many], &v[many], stride, n-many, &f.weights[0], terms, f.inverse, f.multiple, f.halvings, s.Q)
		}
	case path >= AVX512 && n >= 8:
		n &^= 7
		sumAVX512(&dst[0], &y[0], &v[0], stride, n, &s.weights[0], terms, s.Q)
	case path >= AVX2 && n >= 4:
		n &^= 3
		sumAVX2(&dst[0], &y[0], &v[0], stride, n, &s.weights[0], terms, s.Q)
	default:
		return 0
	}
	return n
}
