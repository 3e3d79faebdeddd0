package gbfv

import (
	"context"
	"fmt"
	"sync"

	"github.com/lodge-mpc/lodge/engine/kernel"
	"github.com/lodge-mpc/lodge/engine/parallel"
	"github.com/lodge-mpc/lodge/engine/ring"
)

// Grid is a matrix of blocks of Dim ciphertexts each, as in a [Layout]: block (i, j) is
// C[(i·Cols+j)·Dim : (i·Cols+j+1)·Dim].
type Grid struct {
	Rows, Cols, Dim int
	C               []*Ciphertext
}

// Block returns the ciphertexts of block (i, j).
func (g Grid) Block(i, j int) []*Ciphertext {
	at := (i*g.Cols + j) * g.Dim
	return g.C[at : at+g.Dim]
}

// Free frees the storage of all ciphertexts for reuse.
func (g Grid) Free() {
	for _, c := range g.C {
		c.Free()
	}
}

// MatMul multiplies grids of encrypted blocks: a in Diagonal order, b in Shifted order, the product
// in Diagonal order. It runs MatriGear, Algorithm 1, for each block of the product, and adds up
// inner blocks before the division and the key switches. So any shape needs only the d-1 rotation
// keys of its blocks and one relinearisation key. The result does not depend on the number of
// workers. In addition to its arguments and result it uses memory for about 3 blocks of polynomials
// on Full (one block is Dim polynomials), and three polynomials per worker.
func (e *Evaluator) MatMul(ctx context.Context, a, b Grid, workers int) (Grid, error) {
	s := e.Scheme
	if a.Dim != b.Dim || a.Cols != b.Rows || !s.validDim(a.Dim) ||
		len(a.C) != a.Rows*a.Cols*a.Dim || len(b.C) != b.Rows*b.Cols*b.Dim || len(a.C)*len(b.C) == 0 {
		return Grid{}, fmt.Errorf("gbfv: %d x %d blocks of %d times %d x %d blocks of %d do not have matching shapes",
			a.Rows, a.Cols, a.Dim, b.Rows, b.Cols, b.Dim)
	}
	m := newMatMul(e, a.Dim, max(1, workers))
	defer m.free()
	out := Grid{Rows: a.Rows, Cols: b.Cols, Dim: a.Dim}
	for i := range a.Rows {
		for j := range b.Cols {
			left, right := make([][]*Ciphertext, a.Cols), make([][]*Ciphertext, a.Cols)
			for k := range a.Cols {
				left[k], right[k] = a.Block(i, k), b.Block(k, j)
			}
			block, err := m.block(ctx, left, right)
			if err != nil {
				return Grid{}, err
			}
			out.C = append(out.C, block...)
		}
	}
	return out, nil
}

// matMul computes blocks of products. Let phi be X -> X^g, g = Galois(N, 1, d). Output i needs,
// before division and key switching, the sums over k of a_{k,x}·phi^i(b_{i-k,y}) for x, y in {0,
// 1}, which belong to 1, s, phi^i(s) and s·phi^i(s) for (x, y) = (0, 0), (1, 0), (0, 1), (1, 1).
//
// In evaluation form phi permutes slots in orbits s_0..s_{d-1}: phi(v)[s_j] = v[s_{j+1}]. On one
// orbit and modulo one prime put A[j][j+k] = a_k[s_j] and B[r][c] = b_{c-r}[s_c], indices mod d.
// Then output i at s_j is (A·B)[j][j+i]. So a block is N/d products of d x d matrices per prime, x
// and y.
//
// To bound its memory, it processes one x and y at a time, and for them a few primes at a time, so
// that the source of an operand's extension is read, and its digits are computed, once for all of
// these primes.
type matMul struct {
	*Evaluator
	d       int
	workers int
	orbits  *orbits

	groups  []group
	leftAux []ring.Poly // round(Q'/q·a_{k,x}) on Aux, for one inner block
	full    []ring.Poly // d sums on Full
	// The operands modulo a group, in evaluation form. The product replaces the left operand, which
	// is in full, or in a separate tile if full holds a sum to which the product is added.
	left, right []ring.Poly
	// factors is a pointer, because the runtime retains a pool for two garbage collections, with
	// the object that contains it.
	factors *sync.Pool
}

// maxGroup bounds the primes of a group. The evaluation holds one limb per block element and prime
// of the group. With fewer primes, the start of an operand's extension is recomputed more often.
const maxGroup = 5

// group is a range of primes of Full, from lo to hi-1. All of them belong to Q, or all to Aux.
type group struct {
	lo, hi int
	basis  *ring.Basis
	extend *ring.Extender // from the other one of Q and Aux
	moduli []kernel.Modulus
}

// newGroups divides the primes into groups of similar size.
func newGroups(s *Scheme) []group {
	var all []group
	add := func(first, count int, from *ring.Basis) {
		parts := (count + maxGroup - 1) / maxGroup
		for i := range parts {
			g := group{lo: first + i*count/parts, hi: first + (i+1)*count/parts}
			g.basis = s.Full.Range(g.lo, g.hi)
			g.extend = ring.NewExtender(from, g.basis)
			for _, q := range g.basis.Primes() {
				m, err := kernel.NewModulus(q)
				if err != nil {
					panic(err) // it is one of a basis
				}
				g.moduli = append(g.moduli, m)
			}
			all = append(all, g)
		}
	}
	add(0, s.Q.Len(), s.Aux)
	add(s.Q.Len(), s.Aux.Len(), s.Q)
	return all
}

func newMatMul(e *Evaluator, d, workers int) *matMul {
	s := e.Scheme
	m := &matMul{Evaluator: e, d: d, workers: workers, orbits: newOrbits(s, d), groups: newGroups(s)}
	orbits := m.orbits
	m.factors = &sync.Pool{New: func() any { return orbits.newFactors() }}
	for range d {
		m.full = append(m.full, s.Full.Borrow())
		m.leftAux = append(m.leftAux, s.Aux.Borrow())
	}
	m.right = m.newTile()
	return m
}

// newTile returns storage for d polynomials modulo any group.
func (m *matMul) newTile() (tile []ring.Poly) {
	size := 0
	for _, g := range m.groups {
		size = max(size, g.hi-g.lo)
	}
	for range m.d {
		tile = append(tile, m.Full.Range(0, size).Borrow())
	}
	return tile
}

// free frees the storage that other polynomials can reuse.
func (m *matMul) free() {
	for _, list := range [][]ring.Poly{m.full, m.leftAux, m.left, m.right} {
		for _, p := range list {
			p.Free()
		}
	}
}

// block returns the sum over k of left[k]·right[k].
func (m *matMul) block(ctx context.Context, left, right [][]*Ciphertext) ([]*Ciphertext, error) {
	s := m.Scheme
	out := make([]*Ciphertext, m.d)
	for i := range out {
		out[i] = s.Borrow()
	}
	var byRotated [2][]ring.Poly // terms of phi^i(s) and s·phi^i(s)
	for x := range 2 {
		byRotated[x] = make([]ring.Poly, m.d)
		for y := range 2 {
			if err := m.tensor(ctx, left, right, x, y); err != nil {
				return nil, err
			}
			err := parallel.Try(ctx, m.workers, m.d, func(i int) error {
				r := out[i].part(x)
				if y == 1 {
					r = s.Q.Borrow()
					byRotated[x][i] = r
				}
				s.divideTensor(r, ring.NTT(m.full[i]), m.full[i])
				m.Tick()
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
	}
	err := parallel.Try(ctx, m.workers, m.d, func(i int) error {
		defer byRotated[0][i].Free()
		defer byRotated[1][i].Free()
		defer m.Tick()
		return m.switchKeys(out[i], byRotated[0][i], byRotated[1][i], i)
	})
	return out, err
}

// switchKeys adds to ct the terms rotated of phi^i(s) and product of s·phi^i(s) (Algorithm 1, lines
// 8 to 11). With u = rotated [.] rtk_i, v = product [.] rtk_i and w = v1 [.] rlk, it adds (u0 + w0,
// u1 + v0 + w1).
func (m *matMul) switchKeys(ct *Ciphertext, rotated, product ring.Poly, i int) error {
	s := m.Scheme
	acc := s.accumulator()
	defer acc.done()
	if i == 0 {
		s.Q.Add(ct.C1, ct.C1, rotated)
	} else {
		key, err := m.Keys.Rotation(i, m.d)
		if err != nil {
			return err
		}
		defer key.freeUniform()
		v := s.accumulator()
		defer v.done()
		v.add(product, key)
		s.Q.Inverse(v.digit, v.c0)
		s.Q.Add(ct.C1, ct.C1, v.digit)
		s.Q.Inverse(product, v.c1)
		acc.add(rotated, key)
	}
	acc.add(product, m.Keys.Relin())
	acc.addTo(ct)
	return nil
}

// tensor sets full[i] to the sum over inner blocks and k of a_{k,x}·phi^i(b_{i-k,y}), in evaluation
// form.
func (m *matMul) tensor(ctx context.Context, left, right [][]*Ciphertext, x, y int) error {
	for k := range left {
		if y == 0 || len(left) > 1 { // already computed unless there are other inner blocks
			if err := m.scaleLeft(ctx, left[k], x); err != nil {
				return err
			}
		}
		for i := range m.groups {
			g := &m.groups[i]
			a, b := m.tiles(g, k > 0)
			if err := m.fill(ctx, a, b, right[k], y, g); err != nil {
				return err
			}
			if err := m.multiplyOrbits(ctx, a, b, g); err != nil {
				return err
			}
			if k > 0 {
				if err := m.collect(ctx, a, g); err != nil {
					return err
				}
			}
			m.Tick()
		}
	}
	return nil
}

// tiles returns storage for the operands modulo a group. With add, the left operand has separate
// storage from its sum.
func (m *matMul) tiles(g *group, add bool) (left, right []ring.Poly) {
	if add && m.left == nil {
		m.left = m.newTile()
	}
	for k := range m.d {
		a := m.full[k].C[g.lo:g.hi]
		if add {
			a = m.left[k].C[:g.hi-g.lo]
		}
		left = append(left, ring.Poly{C: a})
		right = append(right, ring.Poly{C: m.right[k].C[:g.hi-g.lo]})
	}
	return left, right
}

// part returns c0 or c1.
func (c *Ciphertext) part(x int) ring.Poly {
	if x == 0 {
		return c.C0
	}
	return c.C1
}

// scaleLeft sets leftAux to the scaled left operands.
func (m *matMul) scaleLeft(ctx context.Context, left []*Ciphertext, x int) error {
	return parallel.Try(ctx, m.workers, m.d, func(k int) error {
		t := m.Q.Borrow()
		m.scaleToAux(m.leftAux[k], left[k].part(x), t)
		t.Free()
		return nil
	})
}

// fill sets a and b to the operands modulo the primes of a group, in evaluation form.
func (m *matMul) fill(ctx context.Context, a, b []ring.Poly, right []*Ciphertext, y int, g *group) error {
	own := m.Q.Len()
	return parallel.Try(ctx, m.workers, 2*m.d, func(i int) error {
		k := i % m.d
		dst, src, from := a[k], m.leftAux[k], own // the first prime of src
		if i >= m.d {
			dst, src, from = b[k], right[k].part(y), 0
		}
		if lo, hi := g.lo-from, g.hi-from; lo >= 0 && hi <= len(src.C) {
			src.C = src.C[lo:hi]
		} else {
			g.extend.Extend(dst, src)
			src = dst
		}
		g.basis.Forward(ring.NTT(dst), src)
		return nil
	})
}

// multiplyOrbits replaces the first operand with the product of the operands, modulo the primes of
// a group.
func (m *matMul) multiplyOrbits(ctx context.Context, left, right []ring.Poly, g *group) error {
	a, b := make([][][]uint64, g.hi-g.lo), make([][][]uint64, g.hi-g.lo) // by prime, then in the order of rows
	for l := range a {
		for k := range m.d {
			a[l] = append(a[l], left[k].C[l])
			b[l] = append(b[l], right[(m.d-k)%m.d].C[l])
		}
	}
	count := len(m.orbits.all)
	tasks := count * len(a)
	chunks := min(tasks, 8*m.workers)
	return parallel.Try(ctx, m.workers, chunks, func(chunk int) error {
		f := m.factors.Get().(*factors)
		defer m.factors.Put(f)
		for t := chunk * tasks / chunks; t < (chunk+1)*tasks/chunks; t++ {
			l, o := t/count, &m.orbits.all[t%count]
			f.gather(o, a[l], b[l])
			f.multiply(&g.moduli[l])
			f.scatter(o, a[l])
		}
		return ctx.Err()
	})
}

// collect adds the product in the left tile to the limbs of a group in full.
func (m *matMul) collect(ctx context.Context, left []ring.Poly, g *group) error {
	return parallel.Try(ctx, m.workers, m.d, func(i int) error {
		sum := ring.Poly{C: m.full[i].C[g.lo:g.hi]}
		g.basis.Add(sum, sum, left[i])
		return nil
	})
}
