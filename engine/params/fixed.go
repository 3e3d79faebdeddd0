package params

import (
	"fmt"
	"math"
	"math/big"
)

// A fixed is a nonnegative upper bound, an integer number of units of 2^-fracBits. Every operation
// rounds up, so a bound computed from bounds is a bound, and the same one on every machine.
type fixed struct{ v *big.Int }

const fracBits = 128

var (
	one     = big.NewInt(1)
	piFloor = mustHex("3243f6a8885a308d313198a2e03707344") // floor(pi * 2^128)
	ln2Ceil = mustHex("b17217f7d1cf79abc9e3b39803f2f6b0")  // ceil(ln 2 * 2^128)
)

func mustHex(s string) *big.Int {
	v, ok := new(big.Int).SetString(s, 16)
	if !ok {
		panic("params: bad constant " + s)
	}
	return v
}

func fixedInt(n *big.Int) fixed { return fixed{new(big.Int).Lsh(n, fracBits)} }

func fixedOf(n int) fixed { return fixedInt(big.NewInt(int64(n))) }

// ratio is num/den for den > 0.
func ratio(num, den int64) fixed { return fixedInt(big.NewInt(num)).over(big.NewInt(den)) }

// fixedWidth is the exact value of a width; widths are at least 1, so that no bit of the double is
// lost.
func fixedWidth(w float64) fixed {
	f := new(big.Float).SetFloat64(w)
	v, acc := f.SetMantExp(f, fracBits).Int(nil)
	if acc != big.Exact {
		panic(fmt.Sprintf("params: width %v is too small", w))
	}
	return fixed{v}
}

func (a fixed) plus(b ...fixed) fixed {
	s := new(big.Int).Set(a.v)
	for _, x := range b {
		s.Add(s, x.v)
	}
	return fixed{s}
}

// times multiplies by all of b, rounding up after each.
func (a fixed) times(b ...fixed) fixed {
	p := new(big.Int).Set(a.v)
	for _, x := range b {
		p = shiftUp(p.Mul(p, x.v))
	}
	return fixed{p}
}

// timesInt multiplies by an integer.
func (a fixed) timesInt(n int) fixed { return fixed{new(big.Int).Mul(a.v, big.NewInt(int64(n)))} }

// over divides by a positive integer.
func (a fixed) over(d *big.Int) fixed { return fixed{divUp(a.v, d)} }

// overPi divides by pi.
func (a fixed) overPi() fixed {
	return fixed{divUp(new(big.Int).Lsh(a.v, fracBits), piFloor)}
}

func (a fixed) sqrt() fixed {
	x := new(big.Int).Lsh(a.v, fracBits)
	r := new(big.Int).Sqrt(x)
	if new(big.Int).Mul(r, r).Cmp(x) < 0 {
		r.Add(r, one)
	}
	return fixed{r}
}

// shift multiplies by 2^k, k >= 0.
func (a fixed) shift(k int) fixed { return fixed{new(big.Int).Lsh(a.v, uint(k))} }

// ceil is the least integer that is not smaller.
func (a fixed) ceil() *big.Int { return shiftUp(new(big.Int).Set(a.v)) }

// floor is the largest integer that is not larger than the bound, which fits a word.
func (a fixed) floor() int64 { return new(big.Int).Rsh(a.v, fracBits).Int64() }

// width is the least double that is not smaller.
func (a fixed) width() float64 {
	f := new(big.Float).SetPrec(53).SetMode(big.ToPositiveInf).SetInt(a.v)
	w, _ := f.SetMantExp(f, -fracBits).Float64()
	return w
}

// log2 is for people; nothing is decided by it.
func (a fixed) log2() float64 { return log2Int(a.v) - fracBits }

func larger(a, b fixed) fixed {
	if a.v.Cmp(b.v) < 0 {
		return b
	}
	return a
}

func log2Int(v *big.Int) float64 {
	if v.Sign() <= 0 {
		return math.Inf(-1)
	}
	f := new(big.Float).SetInt(v)
	m, _ := new(big.Float).SetMantExp(f, -v.BitLen()).Float64()
	return float64(v.BitLen()) + math.Log2(m)
}

// shiftUp is ceil(v / 2^fracBits); it overwrites v.
func shiftUp(v *big.Int) *big.Int {
	v.Neg(v)
	v.Rsh(v, fracBits) // floors
	return v.Neg(v)
}

func divUp(a, d *big.Int) *big.Int {
	q, r := new(big.Int).QuoRem(a, d, new(big.Int))
	if r.Sign() > 0 {
		q.Add(q, one)
	}
	return q
}
