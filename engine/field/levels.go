package field

// levels computes the levels of a transform: h blocks of lo and hi, half elements each, and a
// factor z for each block.
type levels struct {
	products
	t, z Vec // scratch, a chunk of elements each
}

// newLevels returns levels for transforms of D elements.
func (p *Packing) newLevels() *levels {
	l := &levels{products: p.f.products(p.d / 2)}
	l.t = p.f.NewVec(min(chunk, max(1, p.d/2)))
	l.z = p.f.NewVec(l.t.Len())
	return l
}

func (l *levels) wipe() {
	l.products.wipe()
	l.t.Wipe()
	l.z.Wipe()
}

// fewAlike is the smallest length of halves for which products use one factor in all lanes of a
// kernel.
const fewAlike = 8

// split sets (lo, hi) of all blocks of v to (lo + z·hi, lo - z·hi).
func (l *levels) split(v, z Vec) {
	f, half := l.f, v.Len()/z.Len()/2
	if l.wide == nil {
		for k := range z.Len() {
			lo, hi := halves(v, k, half)
			f.split(lo, hi, z.At(k), l.t.At(0))
		}
		return
	}
	if half >= fewAlike {
		for k := range z.Len() {
			lo, hi := halves(v, k, half)
			for i := 0; i < half; i += chunk {
				j := min(i+chunk, half)
				t := l.t.Slice(0, j-i)
				l.scale(t, hi.Slice(i, j), z.At(k))
				f.addSub(lo.Slice(i, j), hi.Slice(i, j), t)
			}
		}
		return
	}
	l.together(z, half, func(k int, t Vec) {
		_, hi := halves(v, k, half)
		copy(t.W, hi.W)
	}, func(k int, t Vec) {
		lo, hi := halves(v, k, half)
		f.addSub(lo, hi, t)
	})
}

// merge sets (lo, hi) of all blocks of v to (lo + hi, z·(lo - hi)).
func (l *levels) merge(v, z Vec) {
	f, half := l.f, v.Len()/z.Len()/2
	if l.wide == nil {
		for k := range z.Len() {
			lo, hi := halves(v, k, half)
			f.merge(lo, hi, z.At(k), l.t.At(0))
		}
		return
	}
	difference := func(lo, hi, t Vec) {
		f.SubVec(t, lo, hi)
		f.AddVec(lo, lo, hi)
	}
	if half >= fewAlike {
		for k := range z.Len() {
			lo, hi := halves(v, k, half)
			for i := 0; i < half; i += chunk {
				j := min(i+chunk, half)
				t := l.t.Slice(0, j-i)
				difference(lo.Slice(i, j), hi.Slice(i, j), t)
				l.scale(hi.Slice(i, j), t, z.At(k))
			}
		}
		return
	}
	l.together(z, half, func(k int, t Vec) {
		lo, hi := halves(v, k, half)
		difference(lo, hi, t)
	}, func(k int, t Vec) {
		_, hi := halves(v, k, half)
		copy(hi.W, t.W)
	})
}

// halves returns the halves of block k.
func halves(v Vec, k, half int) (lo, hi Vec) {
	return v.Slice(2*k*half, (2*k+1)*half), v.Slice((2*k+1)*half, (2*k+2)*half)
}

// together multiplies half elements of every block by its z, many blocks at a time. before writes
// the factors of a block and after receives the products.
func (l *levels) together(z Vec, half int, before, after func(k int, t Vec)) {
	most := l.t.Len() / half
	for first := 0; first < z.Len(); first += most {
		n := min(most, z.Len()-first)
		for k := range n {
			before(first+k, l.t.Slice(k*half, (k+1)*half))
			l.f.Fill(l.z.Slice(k*half, (k+1)*half), z.At(first+k))
		}
		t := l.t.Slice(0, n*half)
		l.mul(t, t, l.z.Slice(0, n*half))
		for k := range n {
			after(first+k, l.t.Slice(k*half, (k+1)*half))
		}
	}
}

// addSub sets (lo, hi) to (lo + t, lo - t), element by element.
func (f *Field) addSub(lo, hi, t Vec) {
	f.SubVec(hi, lo, t)
	f.AddVec(lo, lo, t)
}
