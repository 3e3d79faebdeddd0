package field

import "fmt"

// Vec is a vector of elements of L limbs each, contiguous.
type Vec struct {
	L int
	W []uint64
}

// NewVec returns the zero vector of length n.
func (f *Field) NewVec(n int) Vec { return Vec{L: f.limbs, W: make([]uint64, n*f.limbs)} }

// Len returns the number of elements.
func (v Vec) Len() int { return len(v.W) / v.L }

// At returns element i, which shares v's storage.
func (v Vec) At(i int) Element { return v.W[i*v.L : (i+1)*v.L : (i+1)*v.L] }

// Slice returns elements i to j-1, which share v's storage.
func (v Vec) Slice(i, j int) Vec { return Vec{L: v.L, W: v.W[i*v.L : j*v.L : j*v.L]} }

// Clone returns a copy.
func (v Vec) Clone() Vec { return Vec{L: v.L, W: append([]uint64(nil), v.W...)} }

// Wipe zeroes v.
func (v Vec) Wipe() { clear(v.W) }

// Format prints the shape of v and never its elements, which may be secret, for any verb.
func (v Vec) Format(s fmt.State, _ rune) {
	fmt.Fprintf(s, "[%d words, %d to an element]", len(v.W), v.L)
}

// MarshalText returns the output of Format.
func (v Vec) MarshalText() ([]byte, error) { return fmt.Append(nil, v), nil }

// same panics unless the vectors belong to f and have equal lengths.
func (f *Field) same(vs ...Vec) {
	for _, v := range vs {
		if v.L != f.limbs || len(v.W) != len(vs[0].W) {
			panic(fmt.Sprintf("field: vectors of %d and %d words, of %d and %d limbs, in a field of %d limbs",
				len(vs[0].W), len(v.W), vs[0].L, v.L, f.limbs))
		}
	}
}

// AddVec sets dst = a+b elementwise. dst may be an operand.
func (f *Field) AddVec(dst, a, b Vec) {
	f.same(dst, a, b)
	for i := range dst.Len() {
		f.Add(dst.At(i), a.At(i), b.At(i))
	}
}

// SubVec sets dst = a-b elementwise. dst may be an operand.
func (f *Field) SubVec(dst, a, b Vec) {
	f.same(dst, a, b)
	for i := range dst.Len() {
		f.Sub(dst.At(i), a.At(i), b.At(i))
	}
}

// NegVec sets dst = -a elementwise. dst may be a.
func (f *Field) NegVec(dst, a Vec) {
	f.same(dst, a)
	for i := range dst.Len() {
		f.Neg(dst.At(i), a.At(i))
	}
}

// MulVec sets dst = a∘b elementwise. dst may be an operand.
func (f *Field) MulVec(dst, a, b Vec) {
	f.same(dst, a, b)
	m := f.products(dst.Len())
	m.mul(dst, a, b)
	m.wipe()
}

// ScaleVec sets dst = s·a. dst may be a.
func (f *Field) ScaleVec(dst, a Vec, s Element) {
	f.same(dst, a)
	m := f.products(dst.Len())
	m.scale(dst, a, s)
	m.wipe()
}

// chunk is the number of elements that are computed before they are used, so that they stay in
// cache.
const chunk = 64

// inChunks calls do for successive parts i to j-1 of n elements, at most chunk each, with scratch
// for as many elements.
func (f *Field) inChunks(n int, do func(i, j int, t Vec)) {
	t := f.NewVec(min(n, chunk))
	for i := 0; i < n; i += chunk {
		j := min(i+chunk, n)
		do(i, j, t.Slice(0, j-i))
	}
	t.Wipe()
}

// MulAddVec sets dst += s·a.
func (f *Field) MulAddVec(dst, a Vec, s Element) {
	f.same(dst, a)
	m := f.products(dst.Len())
	f.inChunks(dst.Len(), func(i, j int, t Vec) {
		m.scale(t, a.Slice(i, j), s)
		f.AddVec(dst.Slice(i, j), dst.Slice(i, j), t)
	})
	m.wipe()
}

// Inner sets dst to the sum of a_i·b_i.
func (f *Field) Inner(dst Element, a, b Vec) {
	f.same(a, b)
	m, acc := f.products(a.Len()), f.NewElement()
	f.inChunks(a.Len(), func(i, j int, t Vec) {
		m.mul(t, a.Slice(i, j), b.Slice(i, j))
		for k := range t.Len() {
			f.Add(acc, acc, t.At(k))
		}
	})
	m.wipe()
	copy(dst, acc)
	clear(acc)
}

// Fill sets every element of dst to s.
func (f *Field) Fill(dst Vec, s Element) {
	for i := range dst.Len() {
		copy(dst.At(i), s)
	}
}

// EqualVec reports whether a = b, in constant time for vectors of equal lengths.
func (f *Field) EqualVec(a, b Vec) bool {
	if len(a.W) != len(b.W) {
		return false
	}
	var acc uint64
	for i, w := range a.W {
		acc |= w ^ b.W[i]
	}
	return acc == 0
}
