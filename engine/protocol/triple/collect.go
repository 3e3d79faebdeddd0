package triple

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// padded gives the messages of matrix factors: uniform, but zero in the columns of a beyond the inner dimension.
// Nil means uniform everywhere.
func (p *Plan) padded(s *gbfv.Scheme) (messages, error) {
	a, _, _, err := p.layouts(s)
	if err != nil || p.Shape.Inner%p.Dim == 0 {
		return nil, err
	}
	return func(i int, slots, coeffs field.Vec, stream *sample.Stream) {
		if i >= a.Vectors() {
			fillRandom(s.Field, coeffs, stream)
			s.Pack.Unpack(slots, coeffs)
			return
		}
		fillRandom(s.Field, slots, stream)
		for slot := range s.Slots() {
			if _, _, col := a.Entry(i, slot); col >= a.Cols {
				clear(slots.At(slot))
			}
		}
		s.Pack.Pack(coeffs, slots)
	}, nil
}

func fillRandom(f *field.Field, v field.Vec, stream *sample.Stream) {
	if err := f.Random(v, stream); err != nil {
		panic(err) // a stream does not fail
	}
}

// spare is what is sacrificed: f, g and h, element i of each for element i of what they mask. Only matrices have g.
type spare struct{ f, g, h maccheck.Pair }

// collect arranges the shares as values and MACs of triples, with the mask of the check and the padding that must
// be zero, and gives what is sacrificed.
func (r *batch) collect(shares ddec.Shares) (spare, error) {
	n := r.extent
	cut := func(k int) []field.Vec {
		head := shares[:k]
		shares = shares[k:]
		return head
	}
	c, macA, macB, macC, macRho := cut(n.c), cut(n.a), cut(n.b), cut(n.c), cut(n.rho)
	h, macF, macG, macH := cut(n.h), cut(n.f), cut(n.g), cut(n.h)
	result := &Result{Count: r.Plan.Count}
	r.result = result
	count := r.Plan.Count // of the elements that are sacrificed of each
	if r.Plan.Kind.matrices() {
		la, lb, lc, err := r.Plan.layouts(r.Scheme)
		if err != nil {
			return spare{}, err
		}
		result.A, result.MACA = r.matrices(la, r.a), r.matrices(la, macA)
		result.B, result.MACB = r.matrices(lb, r.b), r.matrices(lb, macB)
		result.C, result.MACC = r.matrices(lc, c), r.matrices(lc, macC)
		result.Clear = r.Scheme.Field.NewVec(0)
		if la.Cols%la.Dim != 0 {
			r.zeros = []maccheck.Pair{{Value: r.padding(la, r.a), MAC: r.padding(la, macA)}}
		}
		r.mask = maccheck.Pair{Value: r.rho.Slice(0, 1).Clone(), MAC: macRho[0].Slice(0, 1).Clone()}
		count *= r.Plan.Shape.Inner
	} else {
		// The last a masks the check; the rest of that triple is dropped.
		at, slot := len(r.a)-1, r.Scheme.Slots()-1
		r.mask = maccheck.Pair{Value: r.a[at].Slice(slot, slot+1).Clone(), MAC: macA[at].Slice(slot, slot+1).Clone()}
		result.A, result.B, result.C = r.flat(r.a, count), r.flat(r.b, count), r.flat(c, count)
		result.MACA, result.MACB, result.MACC = r.flat(macA, count), r.flat(macB, count), r.flat(macC, count)
		result.Clear = r.flat(r.clear, count)
	}
	pair := func(value, mac []field.Vec) maccheck.Pair {
		return maccheck.Pair{Value: r.flat(value, count), MAC: r.flat(mac, count)}
	}
	return spare{pair(r.f, macF), pair(r.g, macG), pair(h, macH)}, nil
}

// flat joins the first count elements of vectors, which it erases. Nothing gives nothing.
func (r *batch) flat(vectors []field.Vec, count int) field.Vec {
	if len(vectors) == 0 {
		return r.Scheme.Field.NewVec(0)
	}
	v := r.Scheme.Field.NewVec(count)
	rest := v.W
	for _, x := range vectors {
		rest = rest[copy(rest, x.W):]
		x.Wipe()
	}
	return v
}

// matrices reads all matrices of a layout, row-major, one after another.
func (r *batch) matrices(l gbfv.Layout, vectors []field.Vec) field.Vec {
	out := r.Scheme.Field.NewVec(r.Plan.Count * l.Rows * l.Cols)
	l.DecodeAll(out, vectors)
	return out
}

// padding lists the entries of the columns beyond the matrices'.
func (r *batch) padding(l gbfv.Layout, vectors []field.Vec) field.Vec {
	extra := l.BlockCols()*l.Dim - l.Cols
	out := r.Scheme.Field.NewVec(r.Plan.Count * l.Rows * extra)
	at := 0
	for t := range r.Plan.Count {
		for row := range l.Rows {
			for col := range extra {
				vector, slot := l.Place(t, row, l.Cols+col)
				copy(out.At(at), vectors[vector].At(slot))
				at++
			}
		}
	}
	return out
}
