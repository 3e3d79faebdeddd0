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
func (p *Plan) padded(s *gbfv.Scheme) (func(i int, slots, coeffs field.Vec, stream *sample.Stream), error) {
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

// split cuts the decrypted shares into those of c, alpha a, alpha b, alpha c and alpha rho.
func (n extent) split(s ddec.Shares) (c, macA, macB, macC, macRho []field.Vec) {
	cut := func(k int) []field.Vec {
		head := s[:k]
		s = s[k:]
		return head
	}
	return cut(n.c), cut(n.a), cut(n.b), cut(n.c), cut(n.rho)
}

// collect arranges the shares as values and MACs of triples, with the mask of the check and the padding that must
// be zero.
func (r *batch) collect(shares ddec.Shares) (result Result, mask maccheck.Pair, zeros []maccheck.Pair, err error) {
	c, macA, macB, macC, macRho := r.extent.split(shares)
	result.Count = r.Plan.Count
	if r.Plan.Kind != Matrix {
		f, last := r.Scheme.Field, r.Plan.Count
		all := make([]field.Vec, 7)
		for i, blocks := range [][]field.Vec{r.a, r.b, c, macA, macB, macC, r.clear} {
			v := f.NewVec(len(blocks) * r.Scheme.Slots())
			for j, b := range blocks {
				copy(v.Slice(j*b.Len(), (j+1)*b.Len()).W, b.W)
				b.Wipe()
			}
			all[i] = v
		}
		// The last a masks the check; the rest of that triple is dropped.
		mask = maccheck.Pair{Value: all[0].Slice(last, last+1).Clone(), MAC: all[3].Slice(last, last+1).Clone()}
		for i := range all {
			if all[i].Len() > 0 { // tuples of this kind have it
				all[i].Slice(last, all[i].Len()).Wipe()
				all[i] = all[i].Slice(0, last)
			}
		}
		result.A, result.B, result.C, result.MACA, result.MACB, result.MACC = all[0], all[1], all[2], all[3], all[4], all[5]
		result.Clear = all[6]
		return result, mask, nil, nil
	}
	la, lb, lc, err := r.Plan.layouts(r.Scheme)
	if err != nil {
		return result, mask, nil, err
	}
	result.A, result.MACA = r.matrices(la, r.a), r.matrices(la, macA)
	result.B, result.MACB = r.matrices(lb, r.b), r.matrices(lb, macB)
	result.C, result.MACC = r.matrices(lc, c), r.matrices(lc, macC)
	result.Clear = r.Scheme.Field.NewVec(0)
	if la.Cols%la.Dim != 0 {
		zeros = []maccheck.Pair{{Value: r.padding(la, r.a), MAC: r.padding(la, macA)}}
	}
	mask = maccheck.Pair{Value: r.rho.Slice(0, 1).Clone(), MAC: macRho[0].Slice(0, 1).Clone()}
	return result, mask, zeros, nil
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
