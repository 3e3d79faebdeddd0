package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// evaluate computes what is decrypted, modulo the small modulus of decryption: the products, and alpha times every proved
// ciphertext and every product. It lets go of the proved ciphertexts as it goes.
func (r *batch) evaluate(ctx context.Context, proved []*gbfv.Ciphertext) ([]*gbfv.Ciphertext, error) {
	e := gbfv.NewEvaluator(r.Scheme, r.Keys)
	alpha := r.MAC.Operand
	if alpha == nil {
		alpha = e.Left(r.MAC.Ciphertext)
		defer alpha.Free()
	}
	n, k := r.extent, r.Plan.Instance.DDecPrimes
	out := make([]*gbfv.Ciphertext, n.decrypted())
	products := make([]*gbfv.Ciphertext, n.products())
	if r.Plan.Kind == Matrix {
		c, err := r.products(ctx, e, proved)
		if err != nil {
			return nil, err
		}
		copy(products, c)
	}
	pairs, lefts := make([][]product, len(proved)), make([]bool, len(proved))
	for _, p := range r.Plan.pairing() {
		pairs[p.right] = append(pairs[p.right], p)
		lefts[p.left] = true
	}
	times := func(right *gbfv.Right) *gbfv.Ciphertext {
		p := e.Mul(alpha, right)
		defer p.Free()
		return r.Scheme.SwitchModulus(p, k)
	}
	// A right factor is made ready once, for all products that it is in.
	err := parallel.Try(ctx, r.Workers, len(proved), func(i int) error {
		right := e.Right(proved[i])
		defer right.Free()
		for _, p := range pairs[i] {
			left := e.Left(proved[p.left])
			products[p.number] = e.Mul(left, right)
			left.Free()
		}
		if !lefts[i] {
			proved[i].Free()
			proved[i] = nil
		}
		out[n.provedMAC(i)] = times(right)
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, ct := range proved {
		if ct != nil {
			ct.Free()
		}
	}
	clear(proved)
	err = parallel.Try(ctx, r.Workers, len(products), func(i int) error {
		x := products[i]
		products[i] = nil
		out[n.product(i)] = r.Scheme.SwitchModulus(x, k)
		right := e.Right(x)
		x.Free()
		out[n.productMAC(i)] = times(right)
		right.Free()
		return nil
	})
	return out, err
}

// products multiplies the encrypted matrices.
func (r *batch) products(ctx context.Context, e *gbfv.Evaluator, proved []*gbfv.Ciphertext) ([]*gbfv.Ciphertext, error) {
	p, n := r.Plan, r.extent
	inner := p.blocks(p.Shape.Inner)
	a := gbfv.Grid{Rows: p.blocks(p.Shape.Rows), Cols: inner, Dim: p.Dim, C: proved[:n.a]}
	b := gbfv.Grid{Rows: inner, Cols: p.blocks(p.Shape.Cols), Dim: p.Dim, C: proved[n.a : n.a+n.b]}
	c, err := e.MatMul(ctx, a, b, r.Workers)
	return c.C, err
}
