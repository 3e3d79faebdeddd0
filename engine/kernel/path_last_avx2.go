//go:build amd64 && !purego && avx2

package kernel

const last = AVX2 // in this build
