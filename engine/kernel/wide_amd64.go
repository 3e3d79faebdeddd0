//go:build !purego

package kernel

// load cuts up to eight integers into limbs, one to a lane.
func (b *WideBuffer) load(limbs, src []uint64, steps []wideStep) {
	l := b.w.words
	if len(src) < wideLanes*l {
		copy(b.rows, src)
		src = b.rows
	}
	b.cut(limbs, src, 8*l, steps)
}

// spread loads z, of L words, as the second operand of all lanes.
func (b *WideBuffer) spread(z []uint64) { b.cut(b.y, z[:b.w.words], 0, b.w.plain) }

func (b *WideBuffer) cut(limbs, src []uint64, stride int, steps []wideStep) {
	wideColumnsAVX512(&b.words[wideLanes*wordsBefore], &src[0], stride, b.w.words)
	wideLimbsAVX512(&limbs[0], &b.words[0], &steps[0].at, b.w.limbs)
}

// multiply sets dst to up to eight products of the loaded integers.
func (b *WideBuffer) multiply(dst []uint64) {
	w := b.w
	wideProductsIFMA(&b.product[0], &b.x[0], &b.y[0], &w.mod[0], w.n0, w.limbs)
	words := &b.words[wideLanes*wordsBefore]
	wideWordsAVX512(words, &b.product[0], &w.mod[0], &w.joined[0].at, w.limbs, w.words)
	if len(dst) == wideLanes*w.words {
		wideRowsAVX512(&dst[0], words, 8*w.words, w.words)
		return
	}
	wideRowsAVX512(&b.rows[0], words, 8*w.words, w.words)
	copy(dst, b.rows)
}

// digits computes Digits from the loaded integers.
func (b *WideBuffer) digits(r *WideRadix, dst []uint64) {
	w, q := b.w, b.x
	wideProductsIFMA(&b.product[0], &b.x[0], &b.y[0], &w.mod[0], w.n0, w.limbs)
	wideQuotientsIFMA(&q[0], &b.product[0], &w.mod[0], w.n0, w.limbs)
	wideFractionsIFMA(&q[0], &r.unit[0], &dst[wideLanes*r.count], w.limbs)
	wideDigitsIFMA(&dst[0], &q[0], &r.firsts[0], r.base, w.limbs, r.count)
}
