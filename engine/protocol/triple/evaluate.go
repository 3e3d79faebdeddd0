package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// evaluate computes what is decrypted, modulo the small modulus of decryption: c, alpha a, alpha b, alpha c and,
// for matrices, alpha rho. It lets go of the proved ciphertexts as it goes.
func (r *batch) evaluate(ctx context.Context, proved []*gbfv.Ciphertext) ([]*gbfv.Ciphertext, error) {
	e := gbfv.NewEvaluator(r.Scheme, r.Keys)
	alpha := r.MAC.Operand
	if alpha == nil {
		alpha = e.Left(r.MAC.Ciphertext)
		defer alpha.Free()
	}
	n := r.extent
	out := make([]*gbfv.Ciphertext, 2*n.c+n.a+n.b+n.rho)
	var c []*gbfv.Ciphertext
	var err error
	if r.Plan.Kind == Matrix {
		if c, err = r.products(ctx, e, proved); err != nil {
			return nil, err
		}
	} else {
		c = make([]*gbfv.Ciphertext, n.c)
		err = parallel.Try(ctx, r.Workers, n.c, func(i int) error {
			a, b := e.Left(proved[i]), e.Right(proved[n.b+i]) // without factors b, the squares of a
			c[i] = e.Mul(a, b)
			a.Free()
			b.Free()
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	k := r.Plan.Instance.DDecPrimes
	// The sources of the outputs, in order: alpha a, alpha b, alpha c, alpha rho from proved and c.
	sources := make([]*gbfv.Ciphertext, 0, len(out)-n.c)
	sources = append(sources, proved[:n.a+n.b]...)
	sources = append(sources, c...)
	sources = append(sources, proved[n.a+n.b:]...)
	clear(proved)
	err = parallel.Try(ctx, r.Workers, len(sources), func(i int) error {
		x := sources[i]
		sources[i] = nil
		if j := i - n.a - n.b; j >= 0 && j < n.c {
			out[j] = r.Scheme.SwitchModulus(x, k)
			c[j] = nil
		}
		right := e.Right(x)
		x.Free()
		product := e.Mul(alpha, right)
		right.Free()
		out[n.c+i] = r.Scheme.SwitchModulus(product, k)
		product.Free()
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
