//go:build !purego

package kernel

// vectorDown computes Down if the selected path has a kernel for it.
func (s *Shear) vectorDown(dst [][]uint64, to int, src [][]uint64, from int) bool {
	if Selected() < AVX512 || s.turns == nil {
		return false
	}
	shearDownAVX512(&dst[0], to, &src[0], from, &s.turns[0].first, len(s.shift))
	return true
}

// vectorUp computes Up if the selected path has a kernel for it.
func (s *Shear) vectorUp(dst [][]uint64, to int, src [][]uint64, from int) bool {
	if Selected() < AVX512 || s.turns == nil {
		return false
	}
	shearUpAVX512(&dst[0], to, &src[0], from, &s.turns[0].first, len(s.shift))
	return true
}
