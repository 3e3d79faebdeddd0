package ot

// block is a row of the matrix. Bit i belongs to column i: lo holds columns 0 to 63.
type block struct{ lo, hi uint64 }

func (b block) bit(i int) int {
	if i < 64 {
		return int(b.lo>>i) & 1
	}
	return int(b.hi>>(i-64)) & 1
}

func (b block) xor(c block) block { return block{b.lo ^ c.lo, b.hi ^ c.hi} }

// transpose transposes a 64 x 64 matrix of bits, where bit j of a[i] is the entry in row i and
// column j: it swaps blocks of 32 x 32, then blocks of 16 x 16 within each, and so on (Warren,
// Hacker's Delight, 7-3).
func transpose(a *[64]uint64) {
	for k := range 32 {
		t := (a[k]>>32 ^ a[k+32]) & 0x00000000ffffffff
		a[k] ^= t << 32
		a[k+32] ^= t
	}
	for i := 0; i < 64; i += 32 {
		b := (*[32]uint64)(a[i:])
		for k := range 16 {
			t := (b[k]>>16 ^ b[k+16]) & 0x0000ffff0000ffff
			b[k] ^= t << 16
			b[k+16] ^= t
		}
	}
	for i := 0; i < 64; i += 16 {
		b := (*[16]uint64)(a[i:])
		for k := range 8 {
			t := (b[k]>>8 ^ b[k+8]) & 0x00ff00ff00ff00ff
			b[k] ^= t << 8
			b[k+8] ^= t
		}
	}
	for i := 0; i < 64; i += 8 {
		b := (*[8]uint64)(a[i:])
		for k := range 4 {
			t := (b[k]>>4 ^ b[k+4]) & 0x0f0f0f0f0f0f0f0f
			b[k] ^= t << 4
			b[k+4] ^= t
		}
	}
	for i := 0; i < 64; i += 4 {
		b := (*[4]uint64)(a[i:])
		for k := range 2 {
			t := (b[k]>>2 ^ b[k+2]) & 0x3333333333333333
			b[k] ^= t << 2
			b[k+2] ^= t
		}
	}
	for i := 0; i < 64; i += 2 {
		b := (*[2]uint64)(a[i:])
		t := (b[0]>>1 ^ b[1]) & 0x5555555555555555
		b[0] ^= t << 1
		b[1] ^= t
	}
}

// rows sets dst to the rows of a matrix with Kappa columns of length bits each, a multiple of 128.
// The columns are concatenated, with bit j of a column in word j/64. dst has at most length rows.
func rows(dst []block, columns []uint64, length int) {
	const group = 8 // words of a column at a time: one cache line
	words := length / 64
	var tiles [group][2][64]uint64
	for first := 0; first*64 < len(dst); first += group {
		n := min(group, words-first)
		for i := range Kappa {
			for w, v := range columns[i*words+first : i*words+first+n] {
				tiles[w][i/64][i%64] = v
			}
		}
		for w := range n {
			at := (first + w) * 64
			if at >= len(dst) {
				break
			}
			t := &tiles[w]
			transpose(&t[0])
			transpose(&t[1])
			for r := range min(64, len(dst)-at) {
				dst[at+r] = block{t[0][r], t[1][r]}
			}
		}
	}
	clear(tiles[:])
}
