package mpspdz

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"
)

// Kinds of tuples, with the values of a record, which are followed by the MAC of each.
const (
	Scalar  = "scalar"  // a, b, ab
	Matrix  = "matrix"  // A, B, AB
	Square  = "square"  // a, a^2
	Bit     = "bit"     // 0 or 1
	Inverse = "inverse" // a, 1/a
	Input   = "input"   // a; at the owner, the plaintext a follows the MAC
)

// buffered is the number of shares that MP-SPDZ reads at a time. It fails if fewer are left.
const buffered = 101

// maxValues bounds the values of a record, as docs/reference/export-format.md does.
const maxValues = 1 << 24

// ErrKind reports tuples for which MP-SPDZ has no file, or an inconsistent target.
var ErrKind = errors.New("mpspdz: MP-SPDZ has no file for this target")

// Shape is the shape of a matrix product: A has Rows x Inner values, B has Inner x Cols. Other
// kinds have Shape{}.
type Shape struct{ Rows, Inner, Cols int }

// Target describes the content of a file: tuples of one kind, of one shape for matrices, and the
// masks of one party, Owner, for inputs. Shape and Owner are zero for all other kinds.
type Target struct {
	Kind  string
	Shape Shape
	Owner int
}

// stems holds the beginnings of file names, and values the number of values in a record, for all
// kinds except matrices.
var (
	stems  = map[string]string{Scalar: "Triples", Square: "Squares", Bit: "Bits", Inverse: "Inverses", Input: "Inputs"}
	values = map[string]int{Scalar: 3, Square: 2, Bit: 1, Inverse: 2, Input: 1}
)

// check returns an error for targets without a file, among parties from 0 to n-1.
func (t Target) check(n int) error {
	if t.Kind == "random" {
		return fmt.Errorf("%w: MP-SPDZ makes random values from input masks, one of each party, and has no file for them",
			ErrKind)
	}
	if t.Kind == "convolution" {
		return fmt.Errorf("%w: MP-SPDZ has no file for convolutions; use matrix triples of the equivalent product", ErrKind)
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

// values returns the number of values in a record, without MACs and plaintext values.
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

// name returns the name of a party's file, without a suffix.
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

// Usable returns how many of a file's records MP-SPDZ can use. It reads 101 shares at a time, and
// fails if it needs a share beyond the last complete block of 101. All records are usable if their
// number is a multiple of 101.
func (t Target) Usable(records int64) int64 {
	v := int64(t.values())
	if hi, lo := bits.Mul64(uint64(records), uint64(v)); hi != 0 || lo > 1<<62 || records < 0 || v == 0 {
		return 0
	}
	return records * v / buffered * buffered / v
}
