package kernel

import (
	"encoding/binary"
	"fmt"
)

// Values of a few bits each, packed without gaps, least significant bit first.

// PackedSize returns the number of bytes that n values of w bits occupy.
func PackedSize(n, w int) int { return (n*w + 7) / 8 }

// checkWidth panics unless w is between 1 and 64.
func checkWidth(w int) {
	if w < 1 || w > 64 {
		panic(fmt.Sprintf("kernel: values of %d bits are not supported (1 to 64)", w))
	}
}

// Pack writes values below 2^w, 1 <= w <= 64, to the beginning of dst. It clears the bits between
// the last value and the end of its byte.
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
			acc = x >> (64 - fill) // in Go, a shift by 64 yields 0
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

// Unpack reads values of w bits from the beginning of src. It reports whether the bits between the
// last value and the end of its byte are 0.
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
