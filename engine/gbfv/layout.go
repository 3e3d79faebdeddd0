package gbfv

import (
	"fmt"

	"github.com/lodge-mpc/lodge/engine/field"
)

// Order is the way a block of a matrix is spread over d vectors (MatriGear, section 4, with indices
// mod d).
type Order uint8

const (
	// Diagonal is iota: vector i holds a_{j,j+i} at place j. It is the order of left factors and
	// products.
	Diagonal Order = iota + 1
	// Shifted is iota-tilde: vector i holds b_{j-i,j} at place j. It is the order of right factors.
	Shifted
)

// Layout places batches of matrices of equal size in the slots of ciphertexts. A matrix of Rows x
// Cols is cut into blocks of Dim x Dim, the last ones padded. A block occupies Dim vectors of Slots
// places. Place j of matrix t of the batch is slot j·Batch+t, so that rotation i of dimension Dim
// rotates every matrix by i. Vectors are ordered by block row, block column, and index within the
// block.
type Layout struct {
	Order      Order
	Rows, Cols int
	Dim        int // d, a power of two, at most Slots
	Slots      int // D
}

// Layout returns the layout of rows x cols matrices in blocks of dim x dim.
func (s *Scheme) Layout(order Order, rows, cols, dim int) (Layout, error) {
	if !s.validDim(dim) || rows < 1 || cols < 1 {
		return Layout{}, fmt.Errorf("gbfv: invalid layout of %d x %d matrices in blocks of %d with %d slots", rows, cols, dim, s.Slots())
	}
	return Layout{Order: order, Rows: rows, Cols: cols, Dim: dim, Slots: s.Slots()}, nil
}

// Batch returns the number of matrices that are laid out side by side, Slots/Dim.
func (l Layout) Batch() int { return l.Slots / l.Dim }

// BlockRows returns the number of rows of blocks.
func (l Layout) BlockRows() int { return (l.Rows + l.Dim - 1) / l.Dim }

// BlockCols returns the number of blocks in a row of blocks.
func (l Layout) BlockCols() int { return (l.Cols + l.Dim - 1) / l.Dim }

// Vectors returns the number of vectors, and of ciphertexts, that hold a batch.
func (l Layout) Vectors() int { return l.BlockRows() * l.BlockCols() * l.Dim }

// Place returns the vector and the slot of entry (row, col) of matrix t. Padding entries, up to
// whole blocks, have places too.
func (l Layout) Place(t, row, col int) (vector, slot int) {
	d := l.Dim
	block := row/d*l.BlockCols() + col/d
	r, c := row%d, col%d
	i, j := (c-r+d)%d, r
	if l.Order == Shifted {
		j = c
	}
	return block*d + i, j*l.Batch() + t
}

// Entry is the inverse of Place. Entries with row >= Rows or col >= Cols are padding.
func (l Layout) Entry(vector, slot int) (t, row, col int) {
	d := l.Dim
	block, i := vector/d, vector%d
	j, t := slot/l.Batch(), slot%l.Batch()
	r, c := j, (j+i)%d
	if l.Order == Shifted {
		r, c = (j-i+d)%d, j
	}
	return t, block/l.BlockCols()*d + r, block%l.BlockCols()*d + c
}

// NewVectors returns Vectors zero vectors of Slots places.
func (l Layout) NewVectors(f *field.Field) []field.Vec {
	v := make([]field.Vec, l.Vectors())
	for i := range v {
		v[i] = f.NewVec(l.Slots)
	}
	return v
}

// Encode writes matrix t, row-major, to its places in the vectors.
func (l Layout) Encode(vectors []field.Vec, t int, matrix field.Vec) {
	l.walk(t, func(k, vector, slot int) { copy(vectors[vector].At(slot), matrix.At(k)) })
}

// Decode reads matrix t, row-major, from its places in the vectors.
func (l Layout) Decode(matrix field.Vec, t int, vectors []field.Vec) {
	l.walk(t, func(k, vector, slot int) { copy(matrix.At(k), vectors[vector].At(slot)) })
}

// DecodeAll reads matrices 0, 1, ... into dst until it is full, row-major and consecutively.
func (l Layout) DecodeAll(matrices field.Vec, vectors []field.Vec) {
	size, words := l.Rows*l.Cols, matrices.L
	count, batch := matrices.Len()/size, l.Batch()
	if count == 0 {
		return
	}
	for vector, v := range vectors {
		for j := range l.Dim {
			_, row, col := l.Entry(vector, j*batch)
			if row >= l.Rows || col >= l.Cols {
				continue
			}
			from := v.W[j*batch*words:]
			to := matrices.W[(row*l.Cols+col)*words:]
			for t := range count {
				copy(to[t*size*words:][:words], from[t*words:])
			}
		}
	}
}

func (l Layout) walk(t int, visit func(k, vector, slot int)) {
	for row := range l.Rows {
		for col := range l.Cols {
			vector, slot := l.Place(t, row, col)
			visit(row*l.Cols+col, vector, slot)
		}
	}
}
