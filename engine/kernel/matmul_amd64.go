package kernel

import "math/bits"

// tile is an inner product of some rows of the left factor with a panel of columns of the right one, in assembly.
type tile[C any] struct {
	rows int
	run  func(dst *uint64, stride int, a *uint64, next int, panel *uint64, k int, c *C, mask uint64)
}

// The tiles by vectors of 8 columns, in decreasing order of rows.
var (
	tilesIFMA = [][]tile[[10]uint64]{
		{{4, matmul4x8IFMA}, {1, matmul1x8IFMA}},
		{{4, matmul4x16IFMA}, {1, matmul1x16IFMA}},
		{{4, matmul4x24IFMA}, {1, matmul1x24IFMA}},
	}
	tilesAVX512 = [][]tile[[14]uint64]{{{2, matmul2x8AVX512}, {1, matmul1x8AVX512}}}
)

// maxTermsIFMA bounds k in a tile: as many products of lower halves below 2^52 fit in a word.
const maxTermsIFMA = 1 << 12

// vectorMatMul computes MatMul if the selected path has a kernel for the modulus.
func (m *Modulus) vectorMatMul(dst, a, b []uint64, rows, k, n int) bool {
	if rows == 0 || k == 0 || n == 0 {
		return false
	}
	switch path := Selected(); {
	case m.ifma():
		c := m.reduction52()
		panel := make([]uint64, 8*len(tilesIFMA)*min(k, maxTermsIFMA))
		multiplyTiles(tilesIFMA, &c, dst, a, b, panel, rows, min(k, maxTermsIFMA), n, k)
		for from := maxTermsIFMA; from < k; from += maxTermsIFMA {
			part := make([]uint64, rows*n)
			multiplyTiles(tilesIFMA, &c, part, a[from:], b[from*n:], panel, rows, min(k-from, maxTermsIFMA), n, k)
			m.AddVec(dst[:rows*n], dst, part)
		}
	case path >= AVX512:
		length := bits.Len64(m.Q)
		half := (length + 1) / 2
		// Products of halves: lower ones below 2^(2 half), the two cross ones together below 2^(length+1).
		lazy := min(64-2*half, 63-length, 20)
		c := [14]uint64{m.Q, 1 << lazy}
		for i, e := range []int{0, 32, half, half + 32, 2 * half, 2*half + 32} {
			f := m.Factor(m.Exp(2, uint64(e)))
			c[2+2*i], c[3+2*i] = f.c, f.scaled
		}
		words := make([]uint64, rows*k+k*n+8*k)
		left, right, panel := words[:rows*k], words[rows*k:rows*k+k*n], words[rows*k+k*n:]
		split(left, a, half)
		split(right, b, half)
		multiplyTiles(tilesAVX512, &c, dst, left, right, panel, rows, k, n, k)
	default:
		return false
	}
	return true
}

// reduction52 is what a reduction of sums of lower and upper halves of 52 bits needs: q, 2q, 4q, -q, and 1, 2^52 and 2^104
// mod q, each with floor(2^52 c/q).
func (m *Modulus) reduction52() [10]uint64 {
	c := [10]uint64{m.Q, 2 * m.Q, 4 * m.Q, -m.Q}
	for i := range 3 {
		f := m.Factor(m.Exp(2, uint64(52*i)))
		c[4+2*i], c[5+2*i] = f.c, f.scaled>>12
	}
	return c
}

// split sets dst to the words of src with their lower bits in the lower half and the others in the upper half.
func split(dst, src []uint64, bits int) {
	mask := uint64(1)<<bits - 1
	src = src[:len(dst)]
	for i, x := range src {
		dst[i] = x&mask | x>>(bits&63)<<32
	}
}

// multiplyTiles sets dst to the product of a, rows x k with rows next words apart, and b, k x n.
func multiplyTiles[C any](tiles [][]tile[C], c *C, dst, a, b, panel []uint64, rows, k, n, next int) {
	for j := 0; j < n; {
		vectors := min(len(tiles), (n-j+7)/8)
		width := min(8*vectors, n-j)
		for t := range k {
			row := panel[t*8*vectors : (t+1)*8*vectors]
			clear(row[copy(row, b[t*n+j:t*n+j+width]):])
		}
		mask := uint64(0xff) >> (8*vectors - width)
		for i := 0; i < rows; {
			for _, t := range tiles[vectors-1] {
				for ; rows-i >= t.rows; i += t.rows {
					t.run(&dst[i*n+j], n, &a[i*next], next, &panel[0], k, c, mask)
				}
			}
		}
		j += width
	}
}
