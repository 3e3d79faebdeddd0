package kernel

import "math/big"

// limbBits is the length of the limbs that the kernels of Wide multiply.
const limbBits = 52

// wideLanes is the number of integers multiplied side by side.
const wideLanes = 8

// Wide holds an odd modulus of several words for computing many products at a time.
type Wide struct {
	words int      // words of the modulus: L
	limbs int      // number of 52-bit limbs: whole blocks, with 52 limbs > 64 L
	mod   []uint64 // the modulus in limbs
	n0    uint64   // -1/modulus modulo 2^52
	// plain cuts an operand into limbs. scaled does so times 2^(52 limbs - 64 L), so that the
	// product of both divided by 2^(52 limbs) equals the product of the operands divided by 2^(64
	// L). joined converts limbs back to words.
	plain, scaled, joined []wideStep
}

// wideStep locates a limb or a word: its offset in bytes from the start of a buffer, and the bit
// there.
type wideStep struct{ at, shift uint64 }

// Buffers have zeros before and after words, and after limbs, because steps reach beyond the ends.
const (
	wordsBefore = 4
	wordsBehind = 5
	limbsBehind = 2
)

// NewWide prepares an odd modulus of 3 to 255 words, lowest word first.
func NewWide(mod []uint64) *Wide {
	const block = 4
	n := len(mod)
	limbs := (64*n/limbBits + block) / block * block // 52 limbs > 64 n
	w := &Wide{words: n, limbs: limbs}
	x := new(big.Int)
	for k := n - 1; k >= 0; k-- {
		x.Or(x.Lsh(x, 64), new(big.Int).SetUint64(mod[k]))
	}
	one := new(big.Int).Lsh(big.NewInt(1), limbBits)
	w.n0 = new(big.Int).Sub(one, new(big.Int).ModInverse(x, one)).Uint64()
	w.mod = limbsOf(x, limbs)
	excess := limbBits*limbs - 64*n
	for j := range limbs {
		bit := limbBits*j + 64*wordsBefore
		w.plain = append(w.plain, newWideStep(bit, 64))
		w.scaled = append(w.scaled, newWideStep(bit-excess, 64))
	}
	for j := range n {
		w.joined = append(w.joined, newWideStep(64*j, limbBits))
	}
	return w
}

// newWideStep locates a bit in vectors with the given number of bits per lane.
func newWideStep(bit, bits int) wideStep {
	return wideStep{at: uint64(8 * wideLanes * (bit / bits)), shift: uint64(bit % bits)}
}

// WideBuffer holds intermediate values of products. It is not safe for concurrent use.
type WideBuffer struct {
	w             *Wide
	words         []uint64
	x, y, product []uint64
	rows          []uint64 // operands and products of incomplete groups of eight
}

// Buffer returns a buffer, or nil if the selected path has no kernel. The caller must call Wipe
// after use.
func (w *Wide) Buffer() *WideBuffer {
	if Selected() < IFMA {
		return nil
	}
	rounded := (w.words + 7) / 8 * 8
	return &WideBuffer{
		w:       w,
		words:   make([]uint64, wideLanes*(wordsBefore+rounded+wordsBehind)),
		x:       make([]uint64, wideLanes*w.limbs),
		y:       make([]uint64, wideLanes*w.limbs),
		product: make([]uint64, wideLanes*(w.limbs+limbsBehind)),
		rows:    make([]uint64, wideLanes*w.words),
	}
}

// Wipe zeroes the intermediate values that products left in the buffer.
func (b *WideBuffer) Wipe() {
	if b == nil {
		return
	}
	for _, v := range [][]uint64{b.words, b.x, b.y, b.product, b.rows} {
		clear(v)
	}
}

// Mul sets dst_i = x_i y_i/2^(64 L) modulo the modulus, in [0, modulus), for vectors of integers of
// L words each. One of x_i and y_i is any integer and the other is below the modulus. dst may be an
// operand.
func (b *WideBuffer) Mul(dst, x, y []uint64) {
	l := b.w.words
	for step := wideLanes * l; len(dst) > 0; {
		step = min(step, len(dst))
		b.load(b.x, x[:step], b.w.scaled)
		b.load(b.y, y[:step], b.w.plain)
		b.multiply(dst[:step])
		dst, x, y = dst[step:], x[step:], y[step:]
	}
}

// Scale sets dst_i = x_i z/2^(64 L) modulo the modulus, like Mul.
func (b *WideBuffer) Scale(dst, x, z []uint64) {
	b.spread(z)
	l := b.w.words
	for step := wideLanes * l; len(dst) > 0; {
		step = min(step, len(dst))
		b.load(b.x, x[:step], b.w.scaled)
		b.multiply(dst[:step])
		dst, x = dst[step:], x[step:]
	}
}
