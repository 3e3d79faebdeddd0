package mpspdz

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// Kinds of tuples, by the values of a record, which are followed by the MAC of each.
const (
	Scalar  = "scalar"  // a, b, ab
	Matrix  = "matrix"  // A, B, AB
	Square  = "square"  // a, a^2
	Bit     = "bit"     // 0 or 1
	Inverse = "inverse" // a, 1/a
	Input   = "input"   // a; at the party that owns it, the clear a follows the MAC
)

// buffered is how many shares MP-SPDZ reads at a time. It refuses to go on with fewer.
const buffered = 101

// maxValues bounds the values of a record, as docs/export-format.md does.
const maxValues = 1 << 24

// ErrKind means tuples that MP-SPDZ has no file for, or a target that makes no sense.
var ErrKind = errors.New("mpspdz: no such file")

// Shape is that of a matrix product: A has Rows x Inner values, B has Inner x Cols. Other kinds have Shape{}.
type Shape struct{ Rows, Inner, Cols int }

// Target says what a file holds: tuples of one kind, of one shape if they are matrices, and the masks of one party,
// Owner, if they are inputs. Both are zero for all other kinds.
type Target struct {
	Kind  string
	Shape Shape
	Owner int
}

// stems begin the names of files, and values is how many values there are in a record, for all kinds but matrices.
var (
	stems  = map[string]string{Scalar: "Triples", Square: "Squares", Bit: "Bits", Inverse: "Inverses", Input: "Inputs"}
	values = map[string]int{Scalar: 3, Square: 2, Bit: 1, Inverse: 2, Input: 1}
)

// check refuses what has no file, among parties from 0 to n-1.
func (t Target) check(n int) error {
	if t.Kind == "random" {
		return fmt.Errorf("%w: MP-SPDZ makes random values from input masks, one of each party, and has no file for them",
			ErrKind)
	}
	if t.Kind == "convolution" {
		return fmt.Errorf("%w: MP-SPDZ has no file for convolutions; matrix triples of the product that each is made as have one", ErrKind)
	}
	if t.Kind != Matrix && values[t.Kind] == 0 {
		return fmt.Errorf("%w: tuples of kind %q", ErrKind, t.Kind)
	}
	if t.Owner < 0 || t.Owner >= n || t.Kind != Input && t.Owner != 0 {
		return fmt.Errorf("%w: %s tuples of party %d of %d", ErrKind, t.Kind, t.Owner, n)
	}
	s := t.Shape
	if t.Kind != Matrix {
		if s != (Shape{}) {
			return fmt.Errorf("%w: %s tuples with a shape", ErrKind, t.Kind)
		}
		return nil
	}
	if min(s.Rows, s.Inner, s.Cols) < 1 || max(s.Rows, s.Inner, s.Cols) > maxValues || t.values() > maxValues {
		return fmt.Errorf("%w: matrices %dx%dx%d", ErrKind, s.Rows, s.Inner, s.Cols)
	}
	return nil
}

// values returns the number of values in a record, MACs and clear values not counted.
func (t Target) values() int {
	if t.Kind != Matrix {
		return values[t.Kind]
	}
	s := t.Shape
	return s.Rows*s.Inner + s.Inner*s.Cols + s.Rows*s.Cols
}

// elements returns the number of elements in a party's record.
func (t Target) elements(party int) int {
	if t.Kind == Input && t.Owner == party {
		return 3
	}
	return 2 * t.values()
}

// name is that of a party's file, without a suffix.
func (t Target) name(party int) string {
	p := strconv.Itoa(party)
	switch t.Kind {
	case Matrix:
		return fmt.Sprintf("Matrix-%dx%dx%d-P%s", t.Shape.Rows, t.Shape.Inner, t.Shape.Cols, p)
	case Input:
		return "Inputs-p-P" + p + "-" + strconv.Itoa(t.Owner)
	default:
		return stems[t.Kind] + "-p-P" + p
	}
}

// Usable returns how many of the records of a file MP-SPDZ can use: it reads 101 shares at a time, and fails when it
// wants a share beyond the last 101 that are whole. All of a multiple of 101 records are usable.
func (t Target) Usable(records int64) int64 {
	v := int64(t.values())
	if hi, lo := bits.Mul64(uint64(records), uint64(v)); hi != 0 || lo > 1<<62 || records < 0 || v == 0 {
		return 0
	}
	return records * v / buffered * buffered / v
}
