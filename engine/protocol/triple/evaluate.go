package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/evaluation"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/parallel"
)

// evaluate computes the ciphertexts to decrypt, modulo the small modulus of decryption: the
// products, and alpha times every proved ciphertext and every product. It frees the proved
// ciphertexts. This party computes the batch as one task; an evaluator receives independent tasks.
func (r *batch) evaluate(ctx context.Context, proved []*gbfv.Ciphertext) ([]*gbfv.Ciphertext, error) {
	if r.Evaluator != nil {
		return r.evaluateApart(ctx, proved)
	}
	if r.Turn != nil {
		leave, err := r.Turn(ctx)
		if err != nil {
			return nil, err
		}
		defer leave()
	}
	e := gbfv.NewEvaluator(r.Scheme, r.Keys)
	alpha := r.MAC.Operand
	if alpha == nil {
		alpha = e.Left(r.MAC.Ciphertext)
		defer alpha.Free()
	}
	whole := r.whole()
	task := evaluation.Task{Shape: whole.shape, Inputs: proved, Consume: true}
	results, err := task.Run(ctx, e, alpha, r.Workers)
	if err != nil {
		return nil, err
	}
	out := make([]*gbfv.Ciphertext, r.extent.decrypted())
	whole.place(out, results, r.extent)
	return out, nil
}

// portion is a task of a batch: its inputs among the proved ciphertexts, and the numbers of its
// products.
type portion struct {
	shape            evaluation.Shape
	inputs, products []int
}

// place puts the results of a portion at their places in the list of ciphertexts to decrypt.
func (p *portion) place(out, results []*gbfv.Ciphertext, n extent) {
	macs := p.shape.Last - p.shape.First
	for i, ct := range results[:macs] {
		out[n.provedMAC(p.inputs[p.shape.First+i])] = ct
	}
	for i, number := range p.products {
		out[n.product(number)] = results[macs+i]
		mac := results[macs+len(p.products)+i]
		if number >= n.products() {
			mac.Free() // the MAC of a square is not needed
			continue
		}
		out[n.productMAC(number)] = mac
	}
}

// span lists the integers from lo up to hi-1.
func span(lo, hi int) (list []int) {
	for i := lo; i < hi; i++ {
		list = append(list, i)
	}
	return list
}

// whole returns the whole batch as one portion.
func (r *batch) whole() portion {
	p, n := r.Plan, r.extent
	w := portion{inputs: span(0, n.proved()), products: span(0, n.products()+n.squares)}
	w.shape = evaluation.Shape{Count: n.proved(), Last: n.proved(), Primes: p.Instance.DDecPrimes}
	if p.matrices() {
		w.shape.Rows, w.shape.Inner, w.shape.Cols = p.blocks(p.Product.Rows), p.blocks(p.Product.Inner), p.blocks(p.Product.Cols)
		w.shape.Dim = p.Dim
	}
	for _, x := range p.pairing() {
		w.shape.Pairs = append(w.shape.Pairs, evaluation.Pair{Left: x.left, Right: x.right})
	}
	return w
}

// portions cuts the batch into independent tasks. One task multiplies each proved ciphertext with
// alpha. A task contains all products that share factors, so that few ciphertexts are sent: for
// scalars a block, for matrices a block of the product. Ciphertexts that are in no product have
// separate tasks.
func (r *batch) portions() (list []portion) {
	p, n := r.Plan, r.extent
	k := p.Instance.DDecPrimes
	first := 0 // first ciphertext that is in no matrix
	if p.matrices() {
		first = n.a + n.b
		rows, inner, cols, d := p.blocks(p.Product.Rows), p.blocks(p.Product.Inner), p.blocks(p.Product.Cols), p.Dim
		for i := range rows {
			for j := range cols {
				x := portion{products: span((i*cols+j)*d, (i*cols+j+1)*d), inputs: span(i*inner*d, (i+1)*inner*d)}
				for l := range inner {
					at := n.a + (l*cols+j)*d
					x.inputs = append(x.inputs, span(at, at+d)...)
				}
				x.shape = evaluation.Shape{Count: len(x.inputs), Rows: 1, Inner: inner, Cols: 1, Dim: d, First: inner * d, Last: inner * d, Primes: k}
				if j == 0 { // with the blocks of a, once
					x.shape.First = 0
				}
				if i == 0 { // and with those of b
					x.shape.Last = len(x.inputs)
				}
				list = append(list, x)
			}
		}
	}
	pairs := p.pairing()
	of := make([]int, n.proved()) // the lowest ciphertext that is connected with this one by products
	for i := range of {
		of[i] = i
	}
	for changed := true; changed; {
		changed = false
		for _, x := range pairs {
			if least := min(of[x.left], of[x.right]); of[x.left] != least || of[x.right] != least {
				of[x.left], of[x.right], changed = least, least, true
			}
		}
	}
	for head := first; head < n.proved(); head++ {
		x, at := portion{shape: evaluation.Shape{Primes: k}}, map[int]int{}
		for i := head; i < n.proved(); i++ {
			if of[i] == head {
				at[i] = len(x.inputs)
				x.inputs = append(x.inputs, i)
			}
		}
		if len(x.inputs) == 0 {
			continue
		}
		for _, y := range pairs {
			if of[y.left] == head {
				x.products = append(x.products, y.number)
				x.shape.Pairs = append(x.shape.Pairs, evaluation.Pair{Left: at[y.left], Right: at[y.right]})
			}
		}
		x.shape.Count, x.shape.Last = len(x.inputs), len(x.inputs)
		list = append(list, x)
	}
	return list
}

// evaluateApart lets an evaluator compute all tasks of the batch concurrently.
func (r *batch) evaluateApart(ctx context.Context, proved []*gbfv.Ciphertext) ([]*gbfv.Ciphertext, error) {
	list := r.portions()
	out := make([]*gbfv.Ciphertext, r.extent.decrypted())
	err := parallel.Try(ctx, len(list), len(list), func(i int) error {
		x := &list[i]
		task := evaluation.Task{Shape: x.shape}
		for _, number := range x.inputs {
			task.Inputs = append(task.Inputs, proved[number])
		}
		results, err := r.Evaluator.Evaluate(ctx, task)
		if err != nil {
			return err
		}
		x.place(out, results, r.extent)
		return nil
	})
	evaluation.Free(proved) // they are not needed any more
	return out, err
}
