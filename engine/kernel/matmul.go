package kernel

import "math/bits"

// MatMul sets dst = a b mod q for row-major matrices, a of m x k, b of k x n and dst of m x n. It
// accumulates products in two words and reduces once per entry, or once every 2^(128 - 2 log q) terms.
func MatMul(dst, a, b []uint64, m, k, n int, q uint64) {
	mod, err := NewModulus(q)
	if err != nil {
		panic(err)
	}
	if len(a) < m*k || len(b) < k*n || len(dst) < m*n {
		panic("kernel: matrix shorter than its dimensions")
	}
	lazy := 1 << min(30, 128-2*bits.Len64(q))
	for i := 0; i < m; i += 2 {
		pair := i+1 < m
		row0 := a[i*k : (i+1)*k]
		row1 := row0
		if pair {
			row1 = a[(i+1)*k : (i+2)*k]
		}
		for j := 0; j < n; j += 2 {
			twoCols := j+1 < n
			r := mod.dot(row0, row1, b[j:], n, twoCols, lazy)
			dst[i*n+j] = r[0]
			if twoCols {
				dst[i*n+j+1] = r[1]
			}
			if pair {
				dst[(i+1)*n+j] = r[2]
				if twoCols {
					dst[(i+1)*n+j+1] = r[3]
				}
			}
		}
	}
}

// dot gives the products of two rows with two adjacent columns of b, whose rows are stride apart.
func (m *Modulus) dot(row0, row1, b []uint64, stride int, two bool, lazy int) (r [4]uint64) {
	second := 0
	if two {
		second = 1
	}
	for start := 0; start < len(row0); start += lazy {
		var h0, l0, h1, l1, h2, l2, h3, l3, c uint64
		end := min(start+lazy, len(row0))
		at := start * stride
		x0, x1 := row0[start:end], row1[start:end]
		for t := range x0 {
			b0, b1 := b[at], b[at+second]
			at += stride
			hi, lo := bits.Mul64(x0[t], b0)
			l0, c = bits.Add64(l0, lo, 0)
			h0 += hi + c
			hi, lo = bits.Mul64(x0[t], b1)
			l1, c = bits.Add64(l1, lo, 0)
			h1 += hi + c
			hi, lo = bits.Mul64(x1[t], b0)
			l2, c = bits.Add64(l2, lo, 0)
			h2 += hi + c
			hi, lo = bits.Mul64(x1[t], b1)
			l3, c = bits.Add64(l3, lo, 0)
			h3 += hi + c
		}
		r[0] = m.Add(r[0], m.Reduce(h0, l0))
		r[1] = m.Add(r[1], m.Reduce(h1, l1))
		r[2] = m.Add(r[2], m.Reduce(h2, l2))
		r[3] = m.Add(r[3], m.Reduce(h3, l3))
	}
	return r
}
