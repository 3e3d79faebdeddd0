//go:build !purego

package kernel

// vectorMontgomery computes Montgomery, for t of zeros, if the selected path has a kernel for it.
func vectorMontgomery(t, a, b, mod []uint64, n0 uint64) bool {
	n := len(mod)
	if n == 0 || n%8 != 0 || Selected() < AVX512 {
		return false
	}
	montgomeryADX(&t[0], &a[0], &b[0], &mod[0], n0, n)
	return true
}
