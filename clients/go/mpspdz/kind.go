package mpspdz

import (
	"errors"
	"fmt"
	"math/bits"
	"strconv"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/engine/kind"
)

// Kinds of tuples for which MP-SPDZ has files, as in package tuplefile.
const (
	Scalar  = tuplefile.Scalar
	Matrix  = tuplefile.Matrix
	Square  = tuplefile.Square
	Bit     = tuplefile.Bit
	Inverse = tuplefile.Inverse
	Input   = tuplefile.Input
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

// kind returns the kind of the tuples, and the shape of a tuple.
func (t Target) kind() (kind.Kind, kind.Shape) {
	return kind.Of(t.Kind), kind.Shape{Matrix: kind.MatrixShape{Rows: t.Shape.Rows, Inner: t.Shape.Inner, Cols: t.Shape.Cols}}
}

// check returns an error for targets without a file, among parties from 0 to n-1.
func (t Target) check(n int) error {
	k, s := t.kind()
	d := k.Describe()
	switch {
	case !k.Known():
		return fmt.Errorf("%w: tuples of kind %q", ErrKind, t.Kind)
	case d.MPSPDZ == "":
		return fmt.Errorf("%w: %s: %s", ErrKind, d.Title, d.NotMPSPDZ)
	case t.Owner < 0 || t.Owner >= n || !k.Owned() && t.Owner != 0:
		return fmt.Errorf("%w: %s tuples of party %d of %d", ErrKind, t.Kind, t.Owner, n)
	case !k.Shaped() && s != kind.Shape{}:
		return fmt.Errorf("%w: %s tuples with a shape", ErrKind, t.Kind)
	case k.Shaped() && (min(s.Matrix.Rows, s.Matrix.Inner, s.Matrix.Cols) < 1 || s.Matrix.Largest() > maxValues || t.values() > maxValues):
		return fmt.Errorf("%w: matrices %dx%dx%d", ErrKind, s.Matrix.Rows, s.Matrix.Inner, s.Matrix.Cols)
	}
	return nil
}

// values returns the number of values in a record, without MACs and plaintext values; 0 for kinds
// without a file.
func (t Target) values() int {
	k, s := t.kind()
	if k.Describe().MPSPDZ == "" {
		return 0
	}
	return k.Values(s)
}

// elements returns the number of elements in a party's record.
func (t Target) elements(party int) int {
	n := 2 * t.values()
	if k, s := t.kind(); t.Owner == party {
		n += k.Clear(s)
	}
	return n
}

// name returns the name of a party's file, without a suffix.
func (t Target) name(party int) string {
	k, s := t.kind()
	name := k.Describe().MPSPDZ
	if !k.Shaped() {
		name += "-p"
	} else {
		name += fmt.Sprintf("-%dx%dx%d", s.Matrix.Rows, s.Matrix.Inner, s.Matrix.Cols)
	}
	if name += "-P" + strconv.Itoa(party); k.Owned() {
		name += "-" + strconv.Itoa(t.Owner)
	}
	return name
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
