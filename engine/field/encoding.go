package field

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Size returns the bytes of an encoded element, ceil(Bits/8).
func (f *Field) Size() int { return (f.bits + 7) / 8 }

// Encode converts x from Montgomery form and writes it as Size little-endian bytes. dst must have
// exactly this length.
func (f *Field) Encode(dst []byte, x Element) {
	if len(dst) != f.Size() {
		panic(fmt.Sprintf("field: a buffer of %d bytes does not match an encoding of %d bytes", len(dst), f.Size()))
	}
	var words [maxLimbs]uint64
	t := words[:f.limbs]
	f.Mul(t, x, f.plainOne)
	f.store(dst, t)
	clear(t)
}

// store writes an integer below 2^(8 Size).
func (f *Field) store(dst []byte, x []uint64) {
	whole := len(dst) / 8
	for i := range whole {
		binary.LittleEndian.PutUint64(dst[8*i:], x[i])
	}
	for k := 8 * whole; k < len(dst); k++ {
		dst[k] = byte(x[whole] >> (8 * (k - 8*whole)))
	}
}

// Decode reads the output of Encode. On ErrLength or ErrRange it sets x to 0.
func (f *Field) Decode(x Element, src []byte) error {
	clear(x)
	if len(src) != f.Size() {
		return ErrLength
	}
	f.load(x, src)
	if limbsBelow(x, f.mod) == 0 {
		clear(x)
		return ErrRange
	}
	f.Mul(x, x, f.rr)
	return nil
}

// load sets x to the integer of Size little-endian bytes, which may exceed p.
func (f *Field) load(x Element, src []byte) {
	whole := len(src) / 8
	for i := range whole {
		x[i] = binary.LittleEndian.Uint64(src[8*i:])
	}
	if whole < len(x) {
		x[whole] = 0
		for k, c := range src[8*whole:] {
			x[whole] |= uint64(c) << (8 * k)
		}
	}
}

// Encoding returns the encodings of v's elements, consecutively.
func (f *Field) Encoding(v Vec) []byte {
	dst := make([]byte, f.Size()*v.Len())
	f.EncodeVec(dst, v)
	return dst
}

// EncodeVec writes the encodings of v's elements consecutively. dst must have exactly Size·v.Len()
// bytes.
func (f *Field) EncodeVec(dst []byte, v Vec) {
	size := f.Size()
	if len(dst) != size*v.Len() {
		panic(fmt.Sprintf("field: a buffer of %d bytes does not match an encoding of %d bytes", len(dst), size*v.Len()))
	}
	if v.Len() < fewProducts {
		for i := range v.Len() {
			f.Encode(dst[i*size:(i+1)*size], v.At(i))
		}
		return
	}
	m := f.products(v.Len())
	f.inChunks(v.Len(), func(i, j int, t Vec) {
		m.scale(t, v.Slice(i, j), f.plainOne)
		for k := range t.Len() {
			f.store(dst[(i+k)*size:(i+k+1)*size], t.At(k))
		}
	})
	m.wipe()
}

// DecodeVec reads v.Len() elements in the format of EncodeVec. On ErrLength or ErrRange it sets v
// to 0.
func (f *Field) DecodeVec(v Vec, src []byte) error {
	size := f.Size()
	if len(src) != size*v.Len() {
		v.Wipe()
		return ErrLength
	}
	for i := range v.Len() {
		f.load(v.At(i), src[i*size:(i+1)*size])
		if limbsBelow(v.At(i), f.mod) == 0 {
			v.Wipe()
			return ErrRange
		}
	}
	f.ScaleVec(v, v, f.rr)
	return nil
}

// Random sets dst to uniform elements, by rejection. It reads r in blocks of Size bytes, cuts each
// to Bits bits, and keeps the first dst.Len() values below p in order. It fails only if r does.
func (f *Field) Random(dst Vec, r io.Reader) error {
	const block = 1 << 12 // bytes requested from r at a time
	size := f.Size()
	buf := make([]byte, max(1, min(dst.Len(), block/size))*size)
	defer clear(buf)
	m := f.products(dst.Len())
	defer m.wipe()
	top := byte(0xff >> (8*size - f.bits))
	for i := 0; i < dst.Len(); {
		first := i
		got := buf[:min(len(buf), (dst.Len()-i)*size)]
		if _, err := io.ReadFull(r, got); err != nil {
			dst.Wipe()
			return fmt.Errorf("field: reading randomness: %w", err)
		}
		for ; len(got) > 0; got = got[size:] {
			got[size-1] &= top
			x := dst.At(i)
			f.load(x, got[:size])
			if limbsBelow(x, f.mod) == 1 { // independent of the elements that are kept
				i++
			}
		}
		kept := dst.Slice(first, i)
		m.scale(kept, kept, f.rr)
	}
	return nil
}
