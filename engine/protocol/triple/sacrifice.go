package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

//lodge:tests cheats TestCheatsInABatch|TestFaultsInABatch|TestMasked|TestOpened|TestASingle|TestErrorsFor|TestOrderOf|TestMalformed|TestPadding|TestEveryValue|TestEveryReleased|TestEveryPadding|TestCheatsOnInput|TestEveryInput|TestTheMask

// The sacrifice. In addition to the factors every batch proves vectors f (and g) that serve only
// this purpose, and computes their products h. After all decryption shares have arrived, the
// parties toss a coin for public weights, and open the factors masked by f (and g). The remaining
// relations of shared values hold if both products are correct:
//
//	scalars, inverses   weight t   rho = t a - f               t c - h - rho b = 0         where h = f b
//	squares, bits       weight t   rho = t a - f               t^2 c - h - rho (t a + f) = 0     h = f^2
//	matrices            weights u, w   rho = u^T A - f,  sg = B w - g
//	                    u^T C w - sum_j (h_j + sg_j f_j + rho_j g_j + rho_j sg_j) = 0        h = f g, slot by slot
//
// The MAC check covers the relations, and the opened values. See doc.go for the security argument.

const (
	sacrificeName = "triple/sacrifice"
	sacrificeCoin = "triple/sacrifice/coin"
)

// sacrifice tosses the coin.
func (r *batch) sacrifice(s spare) (round.Transition[Result], error) {
	source := r.Source.Sub("sacrifice")
	defer source.Wipe()
	t, err := round.CoinToss(r.Session, sacrificeCoin, source.Stream("coin"))
	if err != nil {
		return round.Transition[Result]{}, err
	}
	return round.Then(t, func(_ context.Context, coin round.Digest) (round.Transition[Result], error) {
		return r.maskFactors(s, coin)
	}), nil
}

// sacrificing waits for the shares of the masked factors.
type sacrificing struct {
	*batch
	spare  spare
	t      field.Element // of tuples of single elements
	u, w   field.Vec     // of matrices
	masked maccheck.Pair // rho and, after it, sg
}

// maskedElements is the number of elements that the sacrifice opens.
func (p *Plan) maskedElements() int {
	switch {
	case !p.Sacrifice:
		return 0
	case p.matrices():
		return 2 * p.Count * p.Product.Inner
	}
	return p.Count
}

// maskFactors broadcasts this party's shares of the masked factors.
func (r *batch) maskFactors(s spare, coin round.Digest) (round.Transition[Result], error) {
	f, none := r.Scheme.Field, round.Transition[Result]{}
	//lodge:check triple/sacrifice-weights/coin [drop=coin[:]]
	//  [run=TestErrorsForAForeseen|TestOrderOf] a party knows the weight of the sacrifice before it
	//  fixes its shares
	//lodge:check triple/sacrifice-weights/session [drop=r.Session.ID[:]]
	//  [run=TestErrorsForAForeseen|TestOrderOf|TestASingle] the weight of a sacrifice can be
	//  replayed in another session
	xof := round.XOF("lodge sacrifice weights", r.Session.ID[:], coin[:])
	next := sacrificing{batch: r, spare: s}
	total := r.Plan.maskedElements()
	next.masked = maccheck.Pair{Value: f.NewVec(total), MAC: f.NewVec(total)}
	r.own(next.masked)
	if r.Plan.matrices() {
		next.u, next.w = f.NewVec(r.Plan.Product.Rows), f.NewVec(r.Plan.Product.Cols)
		for _, v := range []field.Vec{next.u, next.w} {
			if err := f.Random(v, xof); err != nil {
				return none, err
			}
		}
		next.maskMatrices(next.masked.Value, r.result.A, r.result.B, s.f.Value, s.g.Value)
		next.maskMatrices(next.masked.MAC, r.result.MACA, r.result.MACB, s.f.MAC, s.g.MAC)
	} else {
		t := f.NewVec(1)
		if err := f.Random(t, xof); err != nil {
			return none, err
		}
		next.t = t.At(0)
		next.each(total, func(i, j int) {
			next.maskElements(next.masked.Value.Slice(i, j), r.result.A.Slice(i, j), s.f.Value.Slice(i, j))
			next.maskElements(next.masked.MAC.Slice(i, j), r.result.MACA.Slice(i, j), s.f.MAC.Slice(i, j))
		})
	}
	return round.Next(round.Round[Result](next), round.Message{
		To: round.All, Name: sacrificeName, Body: round.Encoded(next.masked.Value, f.Encoding),
	}), nil
}

func (r sacrificing) Wants() []round.Want {
	size := int64(r.masked.Value.Len()) * int64(r.Scheme.Field.Size())
	return r.Session.Each(round.Want{Name: sacrificeName, MaxBytes: size, Broadcast: true})
}

func (r sacrificing) Step(_ context.Context, in round.Inbox) (round.Transition[Result], error) {
	opened, err := r.addUp(in, sacrificeName, r.masked.Value)
	if err != nil {
		return round.Transition[Result]{}, err
	}
	var relations maccheck.Pair
	if r.Plan.matrices() {
		relations = r.matrixRelations(opened)
	} else {
		relations = r.relations(opened)
	}
	r.subtract(r.masked, opened)
	//lodge:check triple/sacrifice-masked [run=@cheats] masked factors can be opened as other values
	r.zeros = append(r.zeros, r.masked)
	//lodge:check triple/sacrifice-relations [run=@cheats] products need not match their factors if
	//  the evaluation keys are wrong
	r.sacrificed = []maccheck.Pair{relations}
	return r.multiplied()
}

// each runs do for n independent elements, in chunks on all cores.
func (r *batch) each(n int, do func(i, j int)) {
	const size = 4096
	parallel.For(r.Workers, (n+size-1)/size, func(k int) { do(k*size, min(k*size+size, n)) })
}

// maskElements sets dst = t a - f.
func (r *sacrificing) maskElements(dst, a, f field.Vec) {
	r.Scheme.Field.ScaleVec(dst, a, r.t)
	r.Scheme.Field.SubVec(dst, dst, f)
}

// relations returns t c - h - rho b, or t^2 c - h - rho (t a + f) for squares. They replace h.
func (r *sacrificing) relations(rho field.Vec) maccheck.Pair {
	f, scale := r.Scheme.Field, r.t
	squares := r.extent.b == 0
	if squares {
		scale = f.NewElement()
		f.Mul(scale, r.t, r.t)
	}
	relation := func(h, c, b, a, masks, rho field.Vec) {
		t := f.NewVec(h.Len())
		f.ScaleVec(t, c, scale)
		f.SubVec(h, t, h)
		if squares {
			f.ScaleVec(t, a, r.t)
			f.AddVec(t, t, masks)
			b = t
		}
		f.MulVec(t, b, rho)
		f.SubVec(h, h, t)
		t.Wipe()
	}
	x := r.result
	r.each(rho.Len(), func(i, j int) {
		part := func(v field.Vec) field.Vec { return v.Slice(i, j) }
		var b, macB field.Vec
		if !squares {
			b, macB = part(x.B), part(x.MACB)
		}
		relation(part(r.spare.h.Value), part(x.C), b, part(x.A), part(r.spare.f.Value), part(rho))
		relation(part(r.spare.h.MAC), part(x.MACC), macB, part(x.MACA), part(r.spare.f.MAC), part(rho))
	})
	return r.spare.h
}

// maskMatrices sets dst to u^T a - f for all matrices a, followed by b w - g for all b.
func (r *sacrificing) maskMatrices(dst, a, b, f, g field.Vec) {
	s, count, field := r.Plan.Product, r.Plan.Count, r.Scheme.Field
	total := count * s.Inner
	parallel.For(r.Workers, count, func(t int) {
		rho := dst.Slice(t*s.Inner, (t+1)*s.Inner)
		for i := range s.Rows {
			row := (t*s.Rows + i) * s.Inner
			field.MulAddVec(rho, a.Slice(row, row+s.Inner), r.u.At(i))
		}
		field.SubVec(rho, rho, f.Slice(t*s.Inner, (t+1)*s.Inner))
		sg := dst.Slice(total+t*s.Inner, total+(t+1)*s.Inner)
		for k := range s.Inner {
			row := (t*s.Inner + k) * s.Cols
			field.Inner(sg.At(k), b.Slice(row, row+s.Cols), r.w)
		}
		field.SubVec(sg, sg, g.Slice(t*s.Inner, (t+1)*s.Inner))
	})
}

// matrixRelations returns u^T c w - sum_j (h_j + sg_j f_j + rho_j g_j + rho_j sg_j), one for each
// matrix.
func (r *sacrificing) matrixRelations(opened field.Vec) maccheck.Pair {
	s, count, f := r.Plan.Product, r.Plan.Count, r.Scheme.Field
	total := count * s.Inner
	out := maccheck.Pair{Value: f.NewVec(count), MAC: f.NewVec(count)}
	r.own(out)
	public := f.NewVec(count) // sum_j rho_j sg_j
	relation := func(t int, dst field.Element, c, masksF, masksG, h field.Vec) {
		row, x := f.NewVec(s.Rows), f.NewVec(2)
		for i := range s.Rows {
			at := (t*s.Rows + i) * s.Cols
			f.Inner(row.At(i), c.Slice(at, at+s.Cols), r.w)
		}
		f.Inner(dst, row, r.u)
		of := func(v field.Vec, first int) field.Vec { return v.Slice(first+t*s.Inner, first+(t+1)*s.Inner) }
		f.Inner(x.At(0), of(opened, total), of(masksF, 0))
		f.Inner(x.At(1), of(opened, 0), of(masksG, 0))
		f.Sub(dst, dst, x.At(0))
		f.Sub(dst, dst, x.At(1))
		for j := range s.Inner {
			f.Sub(dst, dst, h.At(t*s.Inner+j))
		}
		row.Wipe()
		x.Wipe()
	}
	parallel.For(r.Workers, count, func(t int) {
		relation(t, out.Value.At(t), r.result.C, r.spare.f.Value, r.spare.g.Value, r.spare.h.Value)
		relation(t, out.MAC.At(t), r.result.MACC, r.spare.f.MAC, r.spare.g.MAC, r.spare.h.MAC)
		f.Inner(public.At(t), opened.Slice(t*s.Inner, (t+1)*s.Inner), opened.Slice(total+t*s.Inner, total+(t+1)*s.Inner))
	})
	r.subtract(out, public)
	return out
}
