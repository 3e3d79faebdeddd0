package lodge

import (
	"errors"
	"io"
	"iter"
	"math/big"
	"slices"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/engine/kind"
)

// Element is an element of the field: little-endian, of the field's full length, below the prime.
// In tuples it is this party's additive share of a value.
type Element []byte

// Int returns the element as a number.
func (e Element) Int() *big.Int {
	b := slices.Clone(e)
	slices.Reverse(b)
	return new(big.Int).SetBytes(b)
}

// String hides the element, which is secret.
func (e Element) String() string { return "[share]" }

// GoString is String.
func (e Element) GoString() string { return e.String() }

// Triple satisfies c = ab.
type Triple struct {
	A, B, C          Element
	MACA, MACB, MACC Element // shares of alpha times each value, with the MAC key alpha
}

// Matrix holds its elements in row-major order.
type Matrix struct {
	Rows, Columns int
	Elements      []Element
}

// At returns the element at a row and a column, both counted from 0.
func (m Matrix) At(row, column int) Element { return m.Elements[row*m.Columns+column] }

// MatrixTriple satisfies C = AB.
type MatrixTriple struct {
	A, B, C          Matrix
	MACA, MACB, MACC Matrix
}

// Square satisfies A2 = A * A.
type Square struct{ A, A2, MACA, MACA2 Element }

// Inverse satisfies A * AInv = 1.
type Inverse struct{ A, AInv, MACA, MACAInv Element }

// Single is a random value, or a random bit: 0 or 1.
type Single struct{ A, MACA Element }

// Input is an input mask. Clear is the plaintext value at the party that owns the mask, and nil
// elsewhere.
type Input struct{ A, MACA, Clear Element }

// Triples returns the tuples of kind scalar. See Err.
func (s *Shares) Triples() iter.Seq[Triple] {
	return each(s, func(v []Element) Triple { return Triple{v[0], v[1], v[2], v[3], v[4], v[5]} }, tuplefile.Scalar)
}

// Matrices returns the tuples of kind matrix. See Err.
func (s *Shares) Matrices() iter.Seq[MatrixTriple] {
	arrays := s.arrays()
	return each(s, func(v []Element) MatrixTriple {
		var m [6]Matrix
		for i, x := range arrays(v) {
			m[i] = Matrix{x.Shape[0], x.Shape[1], x.Elements}
		}
		return MatrixTriple{m[0], m[1], m[2], m[3], m[4], m[5]}
	}, tuplefile.Matrix)
}

// Tuple is a tuple of any kind: its values, in the order of docs/reference/export-format.md, and
// their MACs. A single element is a Tensor without dimensions.
type Tuple struct {
	Values, MACs []Tensor
	Clear        []Element // the plaintext values of input masks at the party that owns the mask
}

// Tuples returns the tuples, whatever their kind. See Err.
func (s *Shares) Tuples() iter.Seq[Tuple] {
	arrays := s.arrays()
	return each(s, func(v []Element) Tuple {
		all := arrays(v)
		n, shares := len(all)/2, 0
		for _, x := range all {
			shares += len(x.Elements)
		}
		return Tuple{all[:n], all[n:], v[shares:]}
	}, s.Reservation.Class.Kind)
}

// arrays returns a function that splits a record into the values and their MACs.
func (s *Shares) arrays() func([]Element) []Tensor {
	parts, shape := kind.Of(s.Reservation.Class.Kind).Describe().Parts, s.Reservation.Class.shape()
	return func(v []Element) (all []Tensor) {
		for range 2 {
			for _, p := range parts {
				n := p.Elements(shape)
				all = append(all, Tensor{p.Dims(shape), v[:n:n]})
				v = v[n:]
			}
		}
		return all
	}
}

// Squares returns the tuples of kind square. See Err.
func (s *Shares) Squares() iter.Seq[Square] {
	return each(s, func(v []Element) Square { return Square{v[0], v[1], v[2], v[3]} }, tuplefile.Square)
}

// Inverses returns the tuples of kind inverse. See Err.
func (s *Shares) Inverses() iter.Seq[Inverse] {
	return each(s, func(v []Element) Inverse { return Inverse{v[0], v[1], v[2], v[3]} }, tuplefile.Inverse)
}

// Singles returns the tuples of kind random or bit. See Err.
func (s *Shares) Singles() iter.Seq[Single] {
	return each(s, func(v []Element) Single { return Single{v[0], v[1]} }, tuplefile.Random, tuplefile.Bit)
}

// Inputs returns the tuples of kind input. See Err.
func (s *Shares) Inputs() iter.Seq[Input] {
	return each(s, func(v []Element) Input {
		if len(v) == 3 {
			return Input{v[0], v[1], v[2]}
		}
		return Input{v[0], v[1], nil}
	}, tuplefile.Input)
}

// blockBytes is the approximate number of bytes read at once. The elements of a block share its
// memory.
const blockBytes = 64 << 10

// each reads the remaining tuples and builds a T from the elements of each.
func each[T any](s *Shares, make1 func([]Element) T, of ...string) iter.Seq[T] {
	return func(yield func(T) bool) {
		if !slices.Contains(of, s.Reservation.Class.Kind) {
			s.fail(Errorf(Invalid, "range over that kind", "these are tuples of kind %s", s.Reservation.Class.Kind))
			return
		}
		record, size := s.TupleBytes, s.ElementBytes
		left := (s.Size() - s.at) / int64(record)
		for left > 0 {
			n := min(left, int64(max(1, blockBytes/record)))
			block := make([]byte, n*int64(record))
			if _, err := io.ReadFull(s, block); err != nil {
				s.short(err)
				return
			}
			elements := make([]Element, len(block)/size)
			for i := range elements {
				elements[i] = block[i*size : (i+1)*size : (i+1)*size]
			}
			for per := record / size; len(elements) > 0; elements = elements[per:] {
				if !yield(make1(elements[:per:per])) {
					return
				}
			}
			left -= n
		}
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			s.short(err)
		}
	}
}

// short records that the bytes ended within a tuple, or did not end.
func (s *Shares) short(err error) {
	var e *Error
	switch {
	case s.err != nil:
	case errors.As(err, &e):
		s.fail(e)
	default:
		s.fail(Errorf(BadShares, "draw the reservation again", "the shares do not end with a tuple: %v", err))
	}
}
