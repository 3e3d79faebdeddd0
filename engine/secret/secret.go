// Package secret holds values that must not be shown or outlive their use: they redact themselves however
// they are printed, refuse to be stored, and can be wiped.
//
// What people and logs read (fmt with any verb, JSON, text and so YAML and XML, log/slog by way of those)
// shows Redacted. Binary encodings, which are for storage, fail with ErrEncode rather than lose a key. The value
// sits in a closure: fmt calls no method on a holder in an unexported field, and for a wrong verb even follows a
// pointer there, but reflection cannot enter a function.
//
// Go may copy values when it moves a stack, and what the collector frees is not cleared: wiping shortens the
// life of a secret in memory, it does not end it for certain.
package secret

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
)

// Redacted is what a secret shows.
const Redacted = "[redacted]"

// ErrEncode is returned by binary encoders that are asked for a secret.
var ErrEncode = errors.New("secret: a secret has no encoding")

// redacted gives a holder, which embeds it, the methods by which printers and encoders ask for its value.
type redacted struct{}

// Format shows nothing, whatever the verb and its flags.
func (redacted) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, Redacted) }

// String shows nothing.
func (redacted) String() string { return Redacted }

// GoString shows nothing.
func (redacted) GoString() string { return Redacted }

// MarshalJSON shows nothing.
func (redacted) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText shows nothing.
func (redacted) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalBinary refuses.
func (redacted) MarshalBinary() ([]byte, error) { return nil, ErrEncode }

// GobEncode refuses.
func (redacted) GobEncode() ([]byte, error) { return nil, ErrEncode }

// Wiper is a value that can erase itself.
type Wiper interface{ Wipe() }

// Box holds a secret value. Its zero value is empty. Copies of a box share the value and its end.
// It is safe for concurrent use until it is wiped.
type Box[T Wiper] struct {
	redacted
	held func() *cell[T]
}

type cell[T Wiper] struct {
	value T
	live  bool
}

// NewBox takes charge of v.
func NewBox[T Wiper](v T) Box[T] {
	c := &cell[T]{v, true}
	return Box[T]{held: func() *cell[T] { return c }}
}

// Open gives the value; it must not be kept past Wipe. It panics on an empty or wiped box.
func (b Box[T]) Open() T {
	if b.Empty() {
		panic("secret: empty box")
	}
	return b.held().value
}

// Empty reports whether there is no value.
func (b Box[T]) Empty() bool { return b.held == nil || !b.held().live }

// Wipe erases the value and empties b and its copies.
func (b Box[T]) Wipe() {
	if !b.Empty() {
		c := b.held()
		c.value.Wipe()
		*c = cell[T]{}
	}
}

// Bytes holds a secret string of bytes, as Box holds a value.
type Bytes struct {
	redacted
	box Box[octets]
}

type octets []byte

// Wipe zeroes o.
func (o octets) Wipe() { clear(o) }

// NewBytes takes charge of v, which it does not copy.
func NewBytes(v []byte) Bytes { return Bytes{box: NewBox(octets(v))} }

// Open gives the bytes, aliased; they must not be kept past Wipe. It panics on an empty or wiped holder.
func (b Bytes) Open() []byte { return b.box.Open() }

// Empty reports whether there is no value.
func (b Bytes) Empty() bool { return b.box.Empty() }

// Wipe erases the bytes and empties b and its copies.
func (b Bytes) Wipe() { b.box.Wipe() }

// Equal compares with o in constant time for given lengths. An empty or wiped holder equals nothing.
func (b Bytes) Equal(o []byte) bool {
	return !b.Empty() && subtle.ConstantTimeCompare(b.Open(), o) == 1
}
