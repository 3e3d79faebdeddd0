//go:build !purego

package kernel

import "math/bits"

// passes holds the assembly of a transform for one instruction set.
type passes struct {
	forward2, forward4, inverse4 func(dst, src *uint64, c, scaled *uint64, k, blocks, part int, q uint64)
	inverse2Last, inverse4Last   func(dst *uint64, c, scaled *uint64, part int, last *[4]uint64, q uint64)
	forward16, inverse16         func(dst, src *uint64, c, scaled *uint64, k, blocks int, q uint64)
}

var (
	passesIFMA = &passes{
		forward2IFMA, forward4IFMA, inverse4IFMA, inverse2LastIFMA, inverse4LastIFMA, forward16IFMA, inverse16IFMA,
	}
	passesAVX2 = &passes{
		forward2AVX2, forward4AVX2, inverse4AVX2, inverse2LastAVX2, inverse4LastAVX2, forward16AVX2, inverse16AVX2,
	}
	passesAVX512 = &passes{
		forward2AVX512, forward4AVX512, inverse4AVX512, inverse2LastAVX512, inverse4LastAVX512, forward16AVX512,
		inverse16AVX512,
	}
)

func (t *NTT) passes() *passes {
	switch path, _ := t.kernels(t.n, true); path {
	case IFMA:
		return passesIFMA
	case AVX512:
		return passesAVX512
	case AVX2:
		return passesAVX2
	}
	return nil
}

// leaf is the number of words of a block (16 KiB) whose levels are all computed before the next
// block.
const leaf = 1 << 11

// vectorForward computes Forward if the selected path has kernels for it.
func (t *NTT) vectorForward(dst, src []uint64) bool {
	p := t.passes()
	if p == nil {
		return false
	}
	c, scaled := &t.forward.c[0], &t.forward.scaled[0]
	m := 1 // blocks so far
	if bits.TrailingZeros(uint(t.n))&1 == 1 {
		p.forward2(&dst[0], &src[0], c, scaled, 1, 1, t.n/2, t.Q)
		m, src = 2, dst
	}
	for ; t.n/m > leaf; m *= 4 {
		p.forward4(&dst[0], &src[0], c, scaled, m, m, t.n/m/4, t.Q)
		src = dst
	}
	size := t.n / m
	for i := range m {
		d, s, blocks := &dst[i*size], &src[i*size], 1
		for ; blocks*16 < size; blocks *= 4 {
			p.forward4(d, s, c, scaled, (m+i)*blocks, blocks, size/blocks/4, t.Q)
			s = d
		}
		p.forward16(d, s, c, scaled, (m+i)*blocks, blocks, t.Q)
	}
	return true
}

// vectorInverse computes Inverse if the selected path has kernels for it.
func (t *NTT) vectorInverse(dst, src []uint64) bool {
	p := t.passes()
	if p == nil {
		return false
	}
	c, scaled := &t.inverse.c[0], &t.inverse.scaled[0]
	m := 1 + bits.TrailingZeros(uint(t.n))&1
	for t.n/m > leaf {
		m *= 4
	}
	size := t.n / m
	for i := range m {
		d, blocks := &dst[i*size], size/16
		p.inverse16(d, &src[i*size], c, scaled, (m+i)*blocks, blocks, t.Q)
		for blocks > 4 || m > 1 && blocks > 1 {
			blocks /= 4
			p.inverse4(d, d, c, scaled, (m+i)*blocks, blocks, size/blocks/4, t.Q)
		}
	}
	for m > 4 {
		m /= 4
		p.inverse4(&dst[0], &dst[0], c, scaled, m, m, t.n/m/4, t.Q)
	}
	switch {
	case m == 2:
		p.inverse2Last(&dst[0], c, scaled, t.n/2, &t.last, t.Q)
	case t.n > 16:
		p.inverse4Last(&dst[0], c, scaled, t.n/4, &t.last, t.Q)
	default: // all levels are done
		f := Factor{t.last[0], t.last[1]}
		for k, x := range dst {
			dst[k] = t.Scale(x, f)
		}
	}
	return true
}
