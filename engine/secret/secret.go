// Package secret holds values that must not be shown or outlive their use: they redact themselves however
// they are printed or encoded, and can be wiped.
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

// ErrEncode is returned by every encoder that is asked for a secret.
var ErrEncode = errors.New("secret: a secret has no encoding")

// Wiper is a value that can erase itself.
type Wiper interface{ Wipe() }

// Box holds a secret value. Its zero value is empty.
type Box[T Wiper] struct{ value *T }

// NewBox takes charge of v.
func NewBox[T Wiper](v T) Box[T] { return Box[T]{&v} }

// Open gives the value; it must not be kept past Wipe. It panics on an empty or wiped box.
func (b Box[T]) Open() T {
	if b.value == nil {
		panic("secret: empty box")
	}
	return *b.value
}

// Empty reports whether there is no value.
func (b Box[T]) Empty() bool { return b.value == nil }

// Wipe erases the value and empties b.
func (b *Box[T]) Wipe() {
	if b.value != nil {
		(*b.value).Wipe()
		b.value = nil
	}
}

// Format shows nothing, whatever the verb.
func (Box[T]) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, Redacted) }

// MarshalJSON refuses.
func (Box[T]) MarshalJSON() ([]byte, error) { return nil, ErrEncode }

// MarshalText refuses.
func (Box[T]) MarshalText() ([]byte, error) { return nil, ErrEncode }

// MarshalBinary refuses.
func (Box[T]) MarshalBinary() ([]byte, error) { return nil, ErrEncode }

// Bytes is a secret string of bytes.
type Bytes []byte

// Wipe zeroes b.
func (b Bytes) Wipe() { clear(b) }

// Equal compares in constant time for a given length.
func (b Bytes) Equal(o Bytes) bool { return subtle.ConstantTimeCompare(b, o) == 1 }

// Format shows nothing, whatever the verb.
func (Bytes) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, Redacted) }

// MarshalJSON refuses.
func (Bytes) MarshalJSON() ([]byte, error) { return nil, ErrEncode }

// MarshalText refuses.
func (Bytes) MarshalText() ([]byte, error) { return nil, ErrEncode }

// MarshalBinary refuses.
func (Bytes) MarshalBinary() ([]byte, error) { return nil, ErrEncode }
