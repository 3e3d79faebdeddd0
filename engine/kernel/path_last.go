//go:build amd64 && !purego && !avx2 && !avx512

package kernel

// last is the last path of this build.
const last = IFMA
