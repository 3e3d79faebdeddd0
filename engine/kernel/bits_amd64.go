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

// lanes says where the bits of 8 words come from: each is the sum of three words that are moved, the first one to the
// right and the others to the left.
type lanes struct {
	word, shift [3][8]uint64
}

// none moves all bits away.
const none = 64

// packLanes puts 8 values of w >= 32 bits together: word j of the result has the end of the value that its first bit is of,
// and the beginnings of the next two.
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

// unpackLanes takes 8 values of w bits apart: each is the end of a word and the beginning of the next.
func unpackLanes(w int) (l lanes) {
	for i := range 8 {
		at := i * w
		l.word[0][i], l.shift[0][i] = uint64(at/64), uint64(at%64)
		l.word[1][i], l.shift[1][i] = uint64(at/64+1)%8, uint64(64-at%64)
	}
	return l
}

// wholeGroups is how many groups of 8 values of w bits, n values in all, begin 64 bytes before the end or earlier.
func wholeGroups(n, w, size int) int {
	if size < 64 {
		return 0
	}
	return min(n/8, (size-64)/w+1)
}
