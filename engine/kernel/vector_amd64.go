package kernel

import "math/bits"

// The functions below compute what Modulus does under the same name, if the selected path has kernels for it.

func (m *Modulus) ifma() bool { return Selected() >= IFMA && bits.Len64(m.Q) <= MaxBitsIFMA }

func (m *Modulus) vectorAdd(dst, a, b []uint64) bool {
	if Selected() < AVX512 || len(dst) == 0 {
		return false
	}
	addAVX512(&dst[0], &a[0], &b[0], len(dst), m.Q)
	return true
}

func (m *Modulus) vectorSub(dst, a, b []uint64) bool {
	if Selected() < AVX512 || len(dst) == 0 {
		return false
	}
	subAVX512(&dst[0], &a[0], &b[0], len(dst), m.Q)
	return true
}

func (m *Modulus) vectorNeg(dst, a []uint64) bool {
	if Selected() < AVX512 || len(dst) == 0 {
		return false
	}
	negAVX512(&dst[0], &a[0], len(dst), m.Q)
	return true
}

// vectorScale is for residues a, or for any words.
func (m *Modulus) vectorScale(dst, a []uint64, f Factor, words bool) bool {
	switch {
	case Selected() < AVX512 || len(dst) == 0:
		return false
	case m.ifma() && !words:
		scaleIFMA(&dst[0], &a[0], len(dst), f.c, f.scaled, m.Q)
	default:
		scaleAVX512(&dst[0], &a[0], len(dst), f.c, f.scaled, m.Q)
	}
	return true
}

func (m *Modulus) vectorMul(dst, a, b []uint64) bool {
	switch {
	case Selected() < AVX512 || len(dst) == 0:
		return false
	case m.ifma():
		mulIFMA(&dst[0], &a[0], &b[0], len(dst), m.short, uint64(m.shift), m.Q)
	default:
		mulAVX512(&dst[0], &a[0], &b[0], len(dst), m.short, uint64(m.shift), m.Q)
	}
	return true
}

func (m *Modulus) vectorMulAdd(dst, a, b []uint64) bool {
	switch {
	case Selected() < AVX512 || len(dst) == 0:
		return false
	case m.ifma():
		mulAddIFMA(&dst[0], &a[0], &b[0], len(dst), m.short, uint64(m.shift), m.Q)
	default:
		mulAddAVX512(&dst[0], &a[0], &b[0], len(dst), m.short, uint64(m.shift), m.Q)
	}
	return true
}
