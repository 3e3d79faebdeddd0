//go:build amd64 && !purego && !avx2 && !avx512

package kernel

// last names the best path that this build contains.
const last = IFMA
