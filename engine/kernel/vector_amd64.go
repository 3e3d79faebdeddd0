//go:build !purego

package kernel

import "math/bits"

// kernels returns how many of n slots the selected path has kernels for, and their instruction set.
func (m *Modulus) kernels(n int, products bool) (Path, int) {
	path := Selected()
	switch {
	case n == 0:
	case products && path >= IFMA && bits.Len64(m.Q) <= MaxBitsIFMA:
		return IFMA, n
	case path >= AVX512:
		return AVX512, n
	case path >= AVX2 && n >= 4:
		return AVX2, n &^ 3
	}
	return Plain, 0
}

// Each function below computes the method of Modulus with the same name for the first slots and
// returns their number.

func (m *Modulus) vectorAdd(dst, a, b []uint64) int {
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		addAVX512(&dst[0], &a[0], &b[0], n, m.Q)
	case AVX2:
		addAVX2(&dst[0], &a[0], &b[0], n, m.Q)
	}
	return n
}

func (m *Modulus) vectorSub(dst, a, b []uint64) int {
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		subAVX512(&dst[0], &a[0], &b[0], n, m.Q)
	case AVX2:
		subAVX2(&dst[0], &a[0], &b[0], n, m.Q)
	}
	return n
}

func (m *Modulus) vectorNeg(dst, a []uint64) int {
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		negAVX512(&dst[0], &a[0], n, m.Q)
	case AVX2:
		negAVX2(&dst[0], &a[0], n, m.Q)
	}
	return n
}

func (m *Modulus) vectorSigned(dst, a []uint64) int {
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		signedAVX512(&dst[0], &a[0], n, m.Q)
	case AVX2:
		signedAVX2(&dst[0], &a[0], n, m.Q)
	}
	return n
}

func (m *Modulus) vectorDigit(dst, a []uint64, d *Digit) int {
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		digitAVX512(&dst[0], &a[0], n, d.Centre, d.Offset, d.Shift, d.Mask, d.Middle, m.Q)
	case AVX2:
		digitAVX2(&dst[0], &a[0], n, d.Centre, d.Offset, d.Shift, d.Mask, d.Middle, m.Q)
	}
	return n
}

// vectorScale accepts residues a, or any words.
func (m *Modulus) vectorScale(dst, a []uint64, f Factor, words bool) int {
	path, n := m.kernels(len(dst), true)
	if path == IFMA && words {
		path = AVX512
	}
	switch path {
	case IFMA:
		scaleIFMA(&dst[0], &a[0], n, f.c, f.scaled, m.Q)
	case AVX512:
		scaleAVX512(&dst[0], &a[0], n, f.c, f.scaled, m.Q)
	case AVX2:
		scaleAVX2(&dst[0], &a[0], n, f.c, f.scaled, m.Q)
	}
	return n
}

func (m *Modulus) vectorMul(dst, a, b []uint64) int {
	path, n := m.kernels(len(dst), true)
	switch path {
	case IFMA:
		mulIFMA(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	case AVX512:
		mulAVX512(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	case AVX2:
		mulAVX2(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	}
	return n
}

func (m *Modulus) vectorMulAdd(dst, a, b []uint64) int {
	path, n := m.kernels(len(dst), true)
	switch path {
	case IFMA:
		mulAddIFMA(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	case AVX512:
		mulAddAVX512(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	case AVX2:
		mulAddAVX2(&dst[0], &a[0], &b[0], n, m.short, uint64(m.shift), m.Q)
	}
	return n
}

func (m *Modulus) vectorMulSum(dst, a, b, c, d []uint64) bool {
	path, n := m.kernels(len(dst), true)
	if path != IFMA || n == 0 {
		return false
	}
	mulSumIFMA(&dst[0], &a[0], &b[0], &c[0], &d[0], n, m.short, uint64(m.shift), m.Q)
	return true
}

func vectorAddMultiples(dst []uint64, a, b, c, d []uint64, f *[4]uint64) int {
	m := Modulus{}
	path, n := m.kernels(len(dst), false)
	switch path {
	case AVX512:
		addMultiplesAVX512(&dst[0], &a[0], &b[0], &c[0], &d[0], n, f[0], f[1], f[2], f[3], 0)
	case AVX2:
		addMultiplesAVX2(&dst[0], &a[0], &b[0], &c[0], &d[0], n, f[0], f[1], f[2], f[3], 0)
	}
	return n
}
