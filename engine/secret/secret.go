// Package secret holds values that must not be printed or outlive their use. The holders redact
// themselves however they are printed, reject binary encoding, and can be erased.
//
// Encodings for people and logs (fmt with any verb, JSON, text and hence YAML and XML, and
// log/slog, which uses those) print Redacted. Binary encodings, which are for storage, fail with
// ErrEncode so that a key is not silently lost. The value is stored in a closure: fmt calls no
// method on a holder in an unexported field, and for a wrong verb even follows a pointer there, but
// reflection cannot enter a function.
//
// Go may copy values when it moves a stack, and the garbage collector does not clear memory that it
// frees. So erasing a secret shortens its life in memory but does not guarantee its end.
package secret

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// Redacted is printed instead of a secret.
const Redacted = "[redacted]"

// ErrEncode is returned by the binary encoders of secrets.
var ErrEncode = errors.New("secret: a secret has no binary encoding")

// redacted implements the methods with which printers and encoders access the value of a holder.
// Holders embed it.
type redacted struct{}

// Format prints Redacted, whatever the verb and its flags.
func (redacted) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, Redacted) }

// String returns Redacted.
func (redacted) String() string { return Redacted }

// GoString returns Redacted.
func (redacted) GoString() string { return Redacted }

// MarshalJSON returns Redacted as a JSON string.
func (redacted) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText returns Redacted.
func (redacted) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalBinary returns ErrEncode.
func (redacted) MarshalBinary() ([]byte, error) { return nil, ErrEncode }

// GobEncode returns ErrEncode.
func (redacted) GobEncode() ([]byte, error) { return nil, ErrEncode }

// Wiper is a value that can erase itself.
type Wiper interface{ Wipe() }

// Box holds a secret value. Its zero value is empty. Copies of a box share the value; wiping one
// wipes all. A box is safe for concurrent use until it is wiped.
type Box[T Wiper] struct {
	redacted
	held func() *cell[T]
}

type cell[T Wiper] struct {
	value T
	live  bool
}

// NewBox returns a box that owns v.
func NewBox[T Wiper](v T) Box[T] {
	c := &cell[T]{v, true}
	return Box[T]{held: func() *cell[T] { return c }}
}

// Open returns the value, which must not be used after Wipe. It panics if the box is empty or
// wiped.
func (b Box[T]) Open() T {
	if b.Empty() {
		panic("secret: empty box")
	}
	return b.held().value
}

// Empty reports whether the box is empty or wiped.
func (b Box[T]) Empty() bool { return b.held == nil || !b.held().live }

// Wipe erases the value and empties b and its copies.
func (b Box[T]) Wipe() {
	if !b.Empty() {
		c := b.held()
		c.value.Wipe()
		*c = cell[T]{}
	}
}

// Bytes holds secret bytes.
type Bytes struct {
	redacted
	box Box[octets]
}

type octets []byte

// Wipe zeroes o.
func (o octets) Wipe() { clear(o) }

// NewBytes returns a holder that owns v. It does not copy v.
func NewBytes(v []byte) Bytes { return Bytes{box: NewBox(octets(v))} }

// Open returns the bytes without a copy; they must not be used after Wipe. It panics if the holder
// is empty or wiped.
func (b Bytes) Open() []byte { return b.box.Open() }

// Empty reports whether the holder is empty or wiped.
func (b Bytes) Empty() bool { return b.box.Empty() }

// Wipe erases the bytes and empties b and its copies.
func (b Bytes) Wipe() { b.box.Wipe() }

// Equal compares with o, in constant time for given lengths. It returns false if the holder is
// empty or wiped.
func (b Bytes) Equal(o []byte) bool {
	return !b.Empty() && subtle.ConstantTimeCompare(b.Open(), o) == 1
}
