package triple

import (
	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
)

// padded returns the messages of matrix factors: uniform, but zero in the columns of a beyond the
// inner dimension. Nil means uniform everywhere.
func (p *Plan) padded(s *gbfv.Scheme) (messages, error) {
	a, _, _, err := p.layouts(s)
	if err != nil || p.Product.Inner%p.Dim == 0 {
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

// spare holds the sacrificed vectors f, g and h; element i of each belongs to element i of the
// factors and products. Only matrices have g.
type spare struct{ f, g, h maccheck.Pair }

// reserve takes the material of the MAC check out of the slots that are reserved for it. The first
// slot masks the check. The others make check triples: each from a triple, or from two random
// values with their squares. The reserved slots follow those of the tuples that are released,
// sacrificed and opened, or are in vectors that hold nothing else.
func (r *batch) reserve(c, macA, macB, macRho, squares []field.Vec) {
	n, first, values, macs := r.extent, r.Plan.Count, r.a, macA
	skipped := 0 // vectors before the first that was squared
	switch {
	case n.rho > 0:
		first, values, macs = 0, r.rho, macRho
	case n.squares > 0:
		skipped = n.a - n.squares
	default:
		squares = c
	}
	at := func(vectors []field.Vec, i int) field.Vec {
		return vectors[i/r.Plan.slots].Slice(i%r.Plan.slots, i%r.Plan.slots+1).Clone()
	}
	pair := func(i int) maccheck.Pair { return maccheck.Pair{Value: at(values, i), MAC: at(macs, i)} }
	//lodge:check triple/mask [swap=pair(first)=>maccheck.Pair{Value: r.Scheme.Field.NewVec(1), MAC:
	//  r.Scheme.Field.NewVec(1)}] [run=@cheats|TestScalar|TestCollect] the MAC check opens values
	//  without a mask
	r.material = maccheck.Material{Mask: pair(first)}
	for k := range checkTriples(r.Plan.Kind) {
		if products(r.Plan.Kind) == kind.Pairs {
			i := first + 1 + k
			r.material.Triples[k] = maccheck.Triple{A: at(r.a, i), B: at(r.b, i), C: at(c, i), MACB: at(macB, i)}
			continue
		}
		i := first + 1 + 2*k
		square := func(i int) field.Vec { return at(squares, i-skipped*r.Plan.slots) }
		r.material.Triples[k] = maccheck.TripleOfSquares(r.Scheme.Field, pair(i), pair(i+1), square(i), square(i+1))
	}
	round.Own(r.Session, "triple/material", &r.material)
}

// collect arranges the shares as values and MACs of tuples. It separates the material of the MAC
// check and the padding that must be zero, and returns the sacrificed vectors.
func (r *batch) collect(shares ddec.Shares) (spare, error) {
	n := r.extent
	cut := func(k int) []field.Vec {
		head := shares[:k]
		shares = shares[k:]
		return head
	}
	c, macA, macB, macC, macRho := cut(n.c), cut(n.a), cut(n.b), cut(n.c), cut(n.rho)
	h, macF, macG, macH, squares := cut(n.h), cut(n.f), cut(n.g), cut(n.h), cut(n.squares)
	r.reserve(c, macA, macB, macRho, squares)
	result := &Result{Count: r.Plan.Count}
	r.result = result
	count := r.Plan.Count // of the elements that are sacrificed of each
	if r.Plan.matrices() {
		la, lb, lc, err := r.Plan.layouts(r.Scheme)
		if err != nil {
			return spare{}, err
		}
		result.A, result.MACA = r.matrices(la, r.a), r.matrices(la, macA)
		result.B, result.MACB = r.matrices(lb, r.b), r.matrices(lb, macB)
		result.C, result.MACC = r.matrices(lc, c), r.matrices(lc, macC)
		result.Clear = r.Scheme.Field.NewVec(0)
		//lodge:check triple/padding [run=Padding] matrices can have nonzero padding
		if la.Cols%la.Dim != 0 {
			r.zeros = []maccheck.Pair{{Value: r.padding(la, r.a), MAC: r.padding(la, macA)}}
		}
		count *= r.Plan.Product.Inner
	} else {
		result.A, result.B, result.C = r.flat(r.a, count), r.flat(r.b, count), r.flat(c, count)
		result.MACA, result.MACB, result.MACC = r.flat(macA, count), r.flat(macB, count), r.flat(macC, count)
		result.Clear = r.flat(r.clear, count)
	}
	pair := func(value, mac []field.Vec) maccheck.Pair {
		return maccheck.Pair{Value: r.flat(value, count), MAC: r.flat(mac, count)}
	}
	return spare{pair(r.f, macF), pair(r.g, macG), pair(h, macH)}, nil
}

// flat joins the first count elements of vectors, which it erases. Without vectors the result is
// empty.
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
	//lodge:check triple/padding-all [swap=r.Plan.Count=>r.Plan.Count - 1] [run=Padding] the last
	//  matrix can have nonzero padding
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
