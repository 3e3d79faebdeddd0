package field

// Pack sets coeffs to the plaintext with the given slots. Both have D elements and may be the same
// vector.
func (p *Packing) Pack(coeffs, slots Vec) {
	p.f.same(coeffs, slots, p.twiddles)
	src := slots
	if &src.W[0] == &coeffs.W[0] {
		src = slots.Clone()
		defer src.Wipe()
	}
	for i, pos := range p.position {
		copy(coeffs.At(pos), src.At(i))
	}
	p.inverse(coeffs)
}

// Unpack sets slots to the slots of the plaintext coeffs. Both have D elements and may be the same
// vector.
func (p *Packing) Unpack(slots, coeffs Vec) {
	p.f.same(slots, coeffs, p.twiddles)
	values := coeffs.Clone()
	defer values.Wipe()
	p.forward(values)
	for i, pos := range p.position {
		copy(slots.At(i), values.At(pos))
	}
}

// PackConstant sets coeffs to the plaintext with alpha in every slot, the constant alpha. Its
// digits are zero except at multiples of D: it lies in the subring Z[X^D].
func (p *Packing) PackConstant(coeffs Vec, alpha Element) {
	p.f.same(coeffs, p.twiddles)
	c := append(Element(nil), alpha[:p.f.limbs]...)
	coeffs.Wipe()
	copy(coeffs.At(0), c)
	clear(c)
}

// IsConstant reports whether all slots of the plaintext coeffs are equal.
func (p *Packing) IsConstant(coeffs Vec) bool {
	p.f.same(coeffs, p.twiddles)
	var acc uint64
	for _, w := range coeffs.W[p.f.limbs:] {
		acc |= w
	}
	return acc == 0
}

// forward evaluates v at the roots of X^D-b, in the order of makeTransform. A block lo + hi·X^(n/2)
// is replaced by its remainders lo + z·hi and lo - z·hi.
func (p *Packing) forward(v Vec) {
	l := p.newLevels()
	for h := 1; h < p.d; h *= 2 {
		l.split(v, p.twiddles.Slice(h, 2*h))
	}
	l.wipe()
}

// inverse inverts forward: every block yields lo = (x+y)/2 and hi = (x-y)/2z, with all factors 1/2
// moved into the last level.
func (p *Packing) inverse(v Vec) {
	l := p.newLevels()
	for h := p.d / 2; h >= 1; h /= 2 {
		l.merge(v, p.inverses.Slice(h, 2*h))
		if h == 1 {
			lo := v.Slice(0, p.d/2)
			l.products.scale(lo, lo, p.scale)
		}
	}
	l.wipe()
}
