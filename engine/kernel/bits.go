package kernel

import (
	"encoding/binary"
	"fmt"
)

// Values of a few bits each, packed without gaps, least significant bit first.

// packedSize is how many bytes n values of w bits take.
func packedSize(n, w int) int {
	if w < 1 || w > 64 {
		panic(fmt.Sprintf("kernel: values of %d bits", w))
	}
	return (n*w + 7) / 8
}

// Pack writes values below 2^w, 1 <= w <= 64, to the beginning of dst. The bits behind the last one are 0, to the end of
// its byte.
func Pack(dst []byte, v []uint64, w int) {
	dst = dst[:packedSize(len(v), w)]
	done := vectorPack(dst, v, w) // a multiple of 8: whole bytes
	dst = dst[done/8*w:]
	var acc uint64
	fill, at := 0, 0
	for _, x := range v[done:] {
		acc |= x << fill
		if fill+w >= 64 {
			binary.LittleEndian.PutUint64(dst[at:], acc)
			at += 8
			acc = x >> (64 - fill) // Go gives 0 for a shift of 64
			fill -= 64
		}
		fill += w
	}
	for ; fill > 0; fill -= 8 {
		dst[at] = byte(acc)
		at++
		acc >>= 8
	}
}

// Unpack reads values of w bits from the beginning of src, and reports whether the bits behind the last one are 0, to the
// end of its byte.
func Unpack(v []uint64, src []byte, w int) bool {
	src = src[:packedSize(len(v), w)]
	done := vectorUnpack(v, src, w) // a multiple of 8
	v, src = v[done:], src[done/8*w:]
	mask := ^uint64(0) >> (64 - w)
	var acc uint64 // unread bits
	fill := 0
	for i := range v {
		if fill >= w {
			v[i] = acc & mask
			acc >>= w
			fill -= w
			continue
		}
		var next uint64
		got := 64
		if len(src) >= 8 {
			next = binary.LittleEndian.Uint64(src)
			src = src[8:]
		} else {
			for k, b := range src {
				next |= uint64(b) << (8 * k)
			}
			got = 8 * len(src)
			src = nil
		}
		v[i] = (acc | next<<fill) & mask
		acc = next >> (w - fill) // 0 when w - fill = 64
		fill += got - w
	}
	return acc == 0 && len(src) == 0
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
