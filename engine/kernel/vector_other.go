//go:build !amd64

package kernel

func (m *Modulus) vectorMatMul(dst, a, b []uint64, rows, k, n int) bool { return false }

func (t *NTT) vectorForward(dst, src []uint64) bool { return false }

func (t *NTT) vectorInverse(dst, src []uint64) bool { return false }
