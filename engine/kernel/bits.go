package kernel

import (
	"encoding/binary"
	"fmt"
)

// Values of a few bits each, packed without gaps, least significant bit first.

// PackedSize is how many bytes n values of w bits take.
func PackedSize(n, w int) int { return (n*w + 7) / 8 }

// checkWidth refuses values that are no words.
func checkWidth(w int) {
	if w < 1 || w > 64 {
		panic(fmt.Sprintf("kernel: values of %d bits", w))
	}
}

// Pack writes values below 2^w, 1 <= w <= 64, to the beginning of dst. The bits behind the last one are 0, to the end of
// its byte.
func Pack(dst []byte, v []uint64, w int) {
	checkWidth(w)
	dst = dst[:PackedSize(len(v), w):len(dst)]
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
	checkWidth(w)
	src = src[:PackedSize(len(v), w):len(src)]
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
