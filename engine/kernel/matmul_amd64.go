//go:build !purego

package kernel

import "math/bits"

// tile is an inner product of some rows of the left factor with a panel of columns of the right
// one, in assembly.
type tile[C any] struct {
	rows int
	run  func(dst *uint64, stride int, a *uint64, next, step int, panel *uint64, k int, c *C, mask uint64)
}

// Tiles by number of vectors of 8 columns, in decreasing order of rows.
var (
	tilesIFMA = [][]tile[[10]uint64]{
		{{4, matmul4x8IFMA}, {1, matmul1x8IFMA}},
		{{4, matmul4x16IFMA}, {1, matmul1x16IFMA}},
		{{4, matmul4x24IFMA}, {1, matmul1x24IFMA}},
	}
	tilesAVX512 = [][]tile[[14]uint64]{{{2, matmul2x8AVX512}, {1, matmul1x8AVX512}}}
	tilesAVX2   = [][]tile[[14]uint64]{{{1, matmul1x4AVX2}}} // 4 columns
)

// maxTermsIFMA bounds k in a tile: the sum of this many lower halves below 2^52 fits in a word.
const maxTermsIFMA = 1 << 12

// vectorMatMul computes MatMul if the selected path has a kernel for the modulus.
func (m *Modulus) vectorMatMul(dst []uint64, a left, b []uint64, k, n int) bool {
	if a.rows == 0 || k == 0 || n == 0 {
		return false
	}
	switch path, _ := m.kernels(n+4, true); path { // any n: tiles can mask out columns
	case IFMA:
		m.matMulIFMA(dst, a, b, k, n)
	case AVX512:
		m.matMulHalves(tilesAVX512, 8, dst, a, b, k, n)
	case AVX2:
		m.matMulHalves(tilesAVX2, 4, dst, a, b, k, n)
	default:
		return false
	}
	return true
}

func (m *Modulus) matMulIFMA(dst []uint64, a left, b []uint64, k, n int) {
	c := m.reduction52()
	panel, done := work(8 * len(tilesIFMA) * min(k, maxTermsIFMA))
	defer done()
	multiplyTiles(tilesIFMA, 8, &c, dst, a, b, panel, min(k, maxTermsIFMA), n)
	for from := maxTermsIFMA; from < k; from += maxTermsIFMA {
		part, rest := make([]uint64, a.rows*n), a
		rest.words = a.words[from*a.step:]
		multiplyTiles(tilesIFMA, 8, &c, part, rest, b[from*n:], panel, min(k-from, maxTermsIFMA), n)
		m.AddVec(dst[:a.rows*n], dst, part)
	}
}

// matMulHalves splits residues into halves for tiles with the given number of lanes.
func (m *Modulus) matMulHalves(tiles [][]tile[[14]uint64], lanes int, dst []uint64, a left, b []uint64, k, n int) {
	length := bits.Len64(m.Q)
	half := (length + 1) / 2
	// Products of halves: lower ones are below 2^(2 half), the two cross ones together below
	// 2^(length+1).
	lazy := min(64-2*half, 63-length, 20)
	c := [14]uint64{m.Q, 1 << lazy}
	for i, e := range []int{0, 32, half, half + 32, 2 * half, 2*half + 32} {
		f := m.Factor(m.Exp(2, uint64(e)))
		c[2+2*i], c[3+2*i] = f.c, f.scaled
	}
	words, done := work(a.rows*k + k*n + lanes*k)
	defer done()
	halves, right, panel := words[:a.rows*k], words[a.rows*k:a.rows*k+k*n], words[a.rows*k+k*n:]
	split(halves, a.words, half)
	split(right, b, half)
	a.words = halves
	multiplyTiles(tiles, lanes, &c, dst, a, right, panel, k, n)
}

// reduction52 holds the constants that reduce sums of lower and upper halves of 52 bits: q, 2q, 4q,
// -q, and 1, 2^52 and 2^104 mod q, each with floor(2^52 c/q).
func (m *Modulus) reduction52() [10]uint64 {
	c := [10]uint64{m.Q, 2 * m.Q, 4 * m.Q, -m.Q}
	for i := range 3 {
		f := m.Factor(m.Exp(2, uint64(52*i)))
		c[4+2*i], c[5+2*i] = f.c, f.scaled>>12
	}
	return c
}

// split sets dst to the words of src with their lower bits in the lower half and the others in the
// upper half.
func split(dst, src []uint64, bits int) {
	mask := uint64(1)<<bits - 1
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = x&mask | x>>(bits&63)<<32
	}
}

// multiplyTiles sets dst to the product of k columns of a and of b, k x n, with vectors of the
// given number of lanes.
func multiplyTiles[C any](tiles [][]tile[C], lanes int, c *C, dst []uint64, a left, b, panel []uint64, k, n int) {
	for j := 0; j < n; {
		vectors := min(len(tiles), (n-j+lanes-1)/lanes)
		columns := lanes * vectors
		width := min(columns, n-j)
		for t := range k {
			row := panel[t*columns : (t+1)*columns]
			clear(row[copy(row, b[t*n+j:t*n+j+width]):])
		}
		mask := uint64(1)<<(lanes-columns+width) - 1
		for i := 0; i < a.rows; {
			for _, t := range tiles[vectors-1] {
				for ; a.rows-i >= t.rows; i += t.rows {
					t.run(&dst[i*n+j], n, &a.words[i*a.next], a.next, a.step, &panel[0], k, c, mask)
				}
			}
		}
		j += width
	}
}
