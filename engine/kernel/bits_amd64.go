//go:build !purego

package kernel

// vectorPack packs the first values, and gives their number, if the selected path has a kernel for w.
func vectorPack(dst []byte, v []uint64, w int) int {
	groups := wholeGroups(len(v), w, len(dst))
	if Selected() < AVX512 || groups == 0 || w < 32 {
		return 0
	}
	l := packLanes(w)
	packAVX512(&dst[0], &v[0], groups, w, &l.word[0][0], &l.shift[0][0])
	return 8 * groups
}

// vectorUnpack unpacks the first values, and gives their number, if the selected path has a kernel for it.
func vectorUnpack(v []uint64, src []byte, w int) int {
	groups := wholeGroups(len(v), w, len(src))
	if Selected() < AVX512 || groups == 0 {
		return 0
	}
	l := unpackLanes(w)
	unpackAVX512(&v[0], &src[0], groups, w, ^uint64(0)>>(64-w), &l.word[0][0], &l.shift[0][0])
	return 8 * groups
}
