//go:build !purego

package kernel

// vectorPack packs the first values if the selected path has a kernel for w, and returns their
// number.
func vectorPack(dst []byte, v []uint64, w int) int {
	groups := wholeGroups(len(v), w, len(dst))
	if Selected() < AVX512 || groups == 0 || w < 32 {
		return 0
	}
	l := packLanes(w)
	packAVX512(&dst[0], &v[0], groups, w, &l.word[0][0], &l.shift[0][0])
	return 8 * groups
}

// vectorUnpack unpacks the first values if the selected path has a kernel for w, and returns their
// number.
func vectorUnpack(v []uint64, src []byte, w int) int {
	groups := wholeGroups(len(v), w, len(src))
	if Selected() < AVX512 || groups == 0 {
		return 0
	}
	l := unpackLanes(w)
	unpackAVX512(&v[0], &src[0], groups, w, ^uint64(0)>>(64-w), &l.word[0][0], &l.shift[0][0])
	return 8 * groups
}

// lanes names the sources of the bits of 8 words. Each word is the sum of three shifted words: the
// first is shifted right, the others left.
type lanes struct {
	word, shift [3][8]uint64
}

// none shifts all bits out.
const none = 64

// packLanes packs 8 values of w >= 32 bits. Word j of the result holds the end of the value to
// which its first bit belongs, and the beginnings of the next two values.
func packLanes(w int) (l lanes) {
	for j := range 8 {
		first := 64 * j / w
		for k := range 3 {
			if first+k > 7 {
				l.shift[k][j] = none
				continue
			}
			l.word[k][j] = uint64(first + k)
			l.shift[k][j] = uint64((first+k)*w - 64*j)
			if k == 0 {
				l.shift[k][j] = uint64(64*j - first*w)
			}
		}
	}
	return l
}

// unpackLanes unpacks 8 values of w bits. Each value consists of the end of one word and the
// beginning of the next.
func unpackLanes(w int) (l lanes) {
	for i := range 8 {
		at := i * w
		l.word[0][i], l.shift[0][i] = uint64(at/64), uint64(at%64)
		l.word[1][i], l.shift[1][i] = uint64(at/64+1)%8, uint64(64-at%64)
	}
	return l
}

// wholeGroups returns how many groups of 8 values begin at least 64 bytes before the end of n
// values of w bits.
func wholeGroups(n, w, size int) int {
	if size < 64 {
		return 0
	}
	return min(n/8, (size-64)/w+1)
}
