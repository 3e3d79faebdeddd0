package kernel

import "math/big"

// WideRadix is a base of up to 64 bits for writing integers modulo base^count + 1.
type WideRadix struct {
	w      *Wide
	base   uint64
	count  int
	scale  []uint64 // 2^(52 limbs) modulo the modulus
	unit   []uint64 // 2^(52 limbs)/(base^count/4), in limbs
	firsts []uint64 // for each digit, upper one first, the first limb that matters, in bytes
}

// radixGuard is the number of extra bits of a fraction below those that digits depend on. Each of
// less than 2^8 digits adds an error of less than 2^-radixGuard of the last digit, and the total
// must be less than a half.
const radixGuard = 12

// Radix prepares a base, or returns nil if the modulus is not base^count + 1 or is too long for its
// limbs.
func (w *Wide) Radix(base uint64, count int) *WideRadix {
	power := new(big.Int).SetUint64(base)
	power.Exp(power, big.NewInt(int64(count)), nil)
	modulus := new(big.Int).Add(power, big.NewInt(1))
	if modulus.Cmp(w.modulus()) != 0 || limbBits*w.limbs-modulus.BitLen() < radixGuard || count >= 1<<8 {
		return nil
	}
	r := &WideRadix{w: w, base: base, count: count}
	full := new(big.Int).Lsh(big.NewInt(1), uint(limbBits*w.limbs))
	scale := new(big.Int).Mod(full, modulus)
	for i := range w.words {
		r.scale = append(r.scale, new(big.Int).Rsh(scale, uint(64*i)).Uint64())
	}
	unit := new(big.Int).Div(full.Lsh(full, 2), power)
	r.unit = limbsOf(unit, w.limbs+1)
	length := new(big.Int).SetUint64(base).BitLen()
	for left := count; left > 0; left-- {
		kept := (left*length + radixGuard + limbBits - 1) / limbBits
		r.firsts = append(r.firsts, uint64(8*wideLanes*max(0, w.limbs-kept)))
	}
	return r
}

func (w *Wide) modulus() *big.Int {
	x := new(big.Int)
	for k := w.limbs - 1; k >= 0; k-- {
		x.Or(x.Lsh(x, limbBits), new(big.Int).SetUint64(w.mod[k]))
	}
	return x
}

// limbsOf returns a value below 2^(52 n) as n limbs.
func limbsOf(v *big.Int, n int) []uint64 {
	limbs := make([]uint64, n)
	low := new(big.Int).SetUint64(1<<limbBits - 1)
	for i := range limbs {
		t := new(big.Int).Rsh(v, uint(limbBits*i))
		limbs[i] = t.And(t, low).Uint64()
	}
	return limbs
}

// Columns returns the number of integers that Digits accepts.
func (r *WideRadix) Columns() int { return wideLanes }

// Words returns the number of words that Digits sets.
func (r *WideRadix) Words() int { return wideLanes * (r.count + 1) }

// Digits writes c_k = x_k/2^(64 L) modulo the modulus, for up to eight x_k below the modulus, L
// words each: dst[8i+k] is digit i of c_k below base^count, and dst[8 count+k] is 1 for c_k =
// base^count and else 0. For x_k = 0 the result may instead be the digits of the modulus, 1, 0,
// ..., 0, 1.
// With q = -x/p mod R, where x = c R mod p and p is the modulus, c/p is (q + x/p)/R. So (c +
// 1/2)/base^count = c/p + (c/p + 1/2)/base^count can be computed closely enough. Multiplied by the
// base, it yields the upper digit and the remaining fraction; R = 2^(52 limbs).
// remains; R = 2^(52 limbs).
func (b *WideBuffer) Digits(r *WideRadix, dst, x []uint64) {
	b.spread(r.scale)
	b.load(b.x, x, r.w.scaled)
	b.digits(r, dst)
}
