package kernel

import (
	"math/bits"
	"slices"
	"sync"
)

// columns is the number of columns of the right factor that a product handles at a time. amd64 has
// registers for three pairs of accumulators in addition to the operands.
const columns = 3

// MatMul sets dst = a b mod q for row-major matrices, a of m x k, b of k x n and dst of m x n. dst
// shares no storage with a or b. It accumulates products in two words and reduces once per entry,
// or, for the longest moduli or rows, as often as needed to prevent overflow.
func MatMul(dst, a, b []uint64, m, k, n int, q uint64) {
	matMul(dst, left{a, m, k, 1}, b, k, n, q)
}

// MatMulTransposed sets dst = a^T b mod q like MatMul, for a of k x m.
func MatMulTransposed(dst, a, b []uint64, m, k, n int, q uint64) {
	matMul(dst, left{a, m, 1, m}, b, k, n, q)
}

// left describes a left factor. Entry (i, t) is word i next + t step.
type left struct {
	words            []uint64
	rows, next, step int
}

// scratch pools the working memory of finished products. It is not erased because factors are
// public.
var scratch = sync.Pool{New: func() any { return new([]uint64) }}

// work returns n words with arbitrary content, and a function that returns them to the pool.
func work(n int) (words []uint64, done func()) {
	p := scratch.Get().(*[]uint64)
	*p = slices.Grow((*p)[:0], n)[:n]
	return *p, func() { scratch.Put(p) }
}

// byRows returns the same matrix of k columns with the entries of a row next to each other, in
// words.
func (a left) byRows(words []uint64, k int) left {
	out := left{words, a.rows, k, 1}
	for t := range k {
		for i := range a.rows {
			out.words[i*k+t] = a.words[i*a.next+t*a.step]
		}
	}
	return out
}

func matMul(dst []uint64, a left, b []uint64, k, n int, q uint64) {
	mod, err := NewModulus(q)
	if err != nil {
		panic(err)
	}
	if len(a.words) < a.rows*k || len(b) < k*n || len(dst) < a.rows*n {
		panic("kernel: matrix is shorter than its dimensions")
	}
	if mod.vectorMatMul(dst, a, b, k, n) {
		return
	}
	if a.step != 1 || a.next != k {
		words, done := work(a.rows * k)
		defer done()
		a = a.byRows(words, k)
	}
	lazy := 1 << min(30, 128-2*bits.Len64(q))
	panel := make([][columns]uint64, k) // columns of b, next to each other, 0 beyond the last
	for j := 0; j < n; j += columns {
		width := min(columns, n-j)
		for t := range panel {
			panel[t] = [columns]uint64{}
			copy(panel[t][:], b[t*n+j:t*n+j+width])
		}
		for i := range a.rows {
			r := mod.dot(a.words[i*k:(i+1)*k], panel, lazy)
			copy(dst[i*n+j:i*n+j+width], r[:])
		}
	}
}

// dot returns the products of a row with the columns of a panel.
func (m *Modulus) dot(row []uint64, panel [][columns]uint64, lazy int) (r [columns]uint64) {
	for len(row) > 0 {
		size := min(lazy, len(row))
		h0, l0, h1, l1, h2, l2 := accumulate(row[:size], panel)
		r[0] = m.Add(r[0], m.Reduce(h0, l0))
		r[1] = m.Add(r[1], m.Reduce(h1, l1))
		r[2] = m.Add(r[2], m.Reduce(h2, l2))
		row, panel = row[size:], panel[size:]
	}
	return r
}

// accumulate returns the products as integers below 2^128. It is a separate function for the sake
// of register allocation.
//
//go:noinline
func accumulate(row []uint64, panel [][columns]uint64) (h0, l0, h1, l1, h2, l2 uint64) {
	panel = panel[:len(row)]
	var c uint64
	for t, x := range row {
		hi, lo := bits.Mul64(x, panel[t][0])
		l0, c = bits.Add64(l0, lo, 0)
		h0, _ = bits.Add64(h0, hi, c)
		hi, lo = bits.Mul64(x, panel[t][1])
		l1, c = bits.Add64(l1, lo, 0)
		h1, _ = bits.Add64(h1, hi, c)
		hi, lo = bits.Mul64(x, panel[t][2])
		l2, c = bits.Add64(l2, lo, 0)
		h2, _ = bits.Add64(h2, hi, c)
	}
	return h0, l0, h1, l1, h2, l2
}
