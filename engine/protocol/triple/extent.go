package triple

import "github.com/lodge-mpc/lodge/engine/kind"

// extent counts the ciphertexts of a batch by their use. The parties prove a, b, the vectors rho
// that only the MAC check consumes, and the sacrificed f and g. The products c and h have MACs. The
// squares of the vectors that check triples are made of have no MACs. The parties decrypt c, alpha
// a, alpha b, alpha c, alpha rho, h, alpha f, alpha g, alpha h, and the squares. All lists are in
// these orders.
type extent struct{ a, b, c, rho, f, g, h, squares int }

func (n extent) proved() int    { return n.a + n.b + n.rho + n.f + n.g }
func (n extent) products() int  { return n.c + n.h }
func (n extent) decrypted() int { return n.proved() + 2*n.products() + n.squares }

// A product of two proved ciphertexts.
type product struct{ left, right, number int }

// pairing lists the products of pairs of ciphertexts: all except the c of matrices.
func (p *Plan) pairing() (list []product) {
	n := p.extent()
	f := n.a + n.b + n.rho // the first vector f
	for i := range n.c {
		switch products(p.Kind) {
		case kind.Pairs:
			list = append(list, product{i, n.a + i, i})
		case kind.Squares:
			list = append(list, product{i, i, i})
		}
	}
	for i := range n.h {
		x := product{f + i, f + i, n.c + i}
		switch products(p.Kind) {
		case kind.Pairs:
			x.right = n.a + i // the same b
		case kind.MatrixProducts:
			x.right = f + n.f + i
		}
		list = append(list, x)
	}
	squared := n.a + n.b // the first vector of which there is a square
	if n.rho == 0 {
		squared = n.a - n.squares
	}
	for i := range n.squares {
		list = append(list, product{squared + i, squared + i, n.products() + i})
	}
	return list
}

// Places in the list of decrypted ciphertexts: provedMAC of alpha times proved ciphertext i,
// product of product or square i, and productMAC of alpha times product i.

func (n extent) provedMAC(i int) int {
	switch {
	case i < n.a+n.b:
		return n.c + i
	case i < n.a+n.b+n.rho:
		return 2*n.c + i
	}
	return 2*n.c + n.h + i
}

func (n extent) product(i int) int {
	switch {
	case i < n.c:
		return i
	case i >= n.products():
		return n.decrypted() - n.squares + i - n.products()
	}
	return n.c + n.a + n.b + n.rho + i
}

func (n extent) productMAC(i int) int {
	if i < n.c {
		return n.c + n.a + n.b + i
	}
	return n.c + n.proved() + n.h + i
}
