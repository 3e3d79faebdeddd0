// Package keyset contains the parts of key handling that all lattice schemes share: registries of
// named parameter sets ([Registry]), hashes of sets ([Hash]), and public keys that are sent in
// chunks ([Format], [Receiver]).
//
// A scheme keeps its sets as data and adds its own Validate and Hash. Its keys are a header
// followed by chunks. The digest of keys is SHA-256 of the scheme's tag, the header, and the
// SHA-256 of every chunk. A [Receiver] can therefore check each chunk separately and accept chunks
// in any order.
package keyset

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"
)

// InsecurePrefix starts the name of every set that is too small to be secure. Such sets are only
// for tests.
const InsecurePrefix = "insecure-"

// A Registry finds the parameter sets of one scheme by name.
type Registry[S any] struct {
	// Scheme is the package that owns the sets. It prefixes error texts.
	Scheme string
	// Sets returns every set: those for new keys first, then legacy ones, then those for tests. The
	// caller owns the result.
	Sets func() []*S
	// Label returns the name of a set, and whether it makes new keys outside tests.
	Label func(*S) (name string, current bool)
}

// Names lists the sets for new keys, without those for tests.
func (r Registry[S]) Names() (names []string) {
	for _, s := range r.Sets() {
		if name, current := r.Label(s); current {
			names = append(names, name)
		}
	}
	return names
}

// Lookup finds a set by name. The error is an [*UnknownError].
func (r Registry[S]) Lookup(name string) (*S, error) {
	for _, s := range r.Sets() {
		if got, _ := r.Label(s); got == name {
			return s, nil
		}
	}
	return nil, &UnknownError{Scheme: r.Scheme, What: "set", Name: name, Known: r.Names()}
}

// UnknownError reports the name of an unknown set, or of an unknown field of a set, and lists the
// known ones.
type UnknownError struct {
	Scheme, What, Name string
	Known              []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s: unknown %s %q (known: %s)", e.Scheme, e.What, e.Name, strings.Join(e.Known, ", "))
}

// Hash identifies a set: SHA-256 of the tag, the name, the values in eight bytes, big endian, and
// the extensions. Each of these fields is preceded by its length in eight bytes, big endian. A
// scheme adds an extension for each property that its sets gained later, so that older sets keep
// their hashes.
func Hash(tag, name string, values []uint64, extensions ...string) [32]byte {
	h := sha256.New()
	field := func(b []byte) {
		h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b))))
		h.Write(b)
	}
	field([]byte(tag))
	field([]byte(name))
	for _, v := range values {
		field(binary.BigEndian.AppendUint64(nil, v))
	}
	for _, e := range extensions {
		field([]byte(e))
	}
	return [32]byte(h.Sum(nil))
}

// Flag returns 1 for true and 0 for false, for Hash.
func Flag(v bool) uint64 {
	if v {
		return 1
	}
	return 0
}
