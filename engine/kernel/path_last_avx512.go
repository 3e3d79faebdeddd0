//go:build amd64 && !purego && avx512 && !avx2

package kernel

const last = AVX512 // in this build
