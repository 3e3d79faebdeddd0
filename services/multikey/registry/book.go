package registry

import (
	"bytes"
	"cmp"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/multikey"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// Reasons for which records or keys are rejected. Every error wraps one of these errors, or an
// error of package services/multikey or engine/multikey.
var (
	ErrConflict = errors.New("registry: another record of that version")
	ErrDigests  = errors.New("registry: these are not the keys of the record")
	ErrChunk    = errors.New("registry: a chunk does not belong to the keys")
	ErrRoom     = errors.New("registry: the limit for keys is reached")
)

// maxVersions is the number of versions that are remembered for each owner, the latest ones. Older
// versions were superseded long ago.
const maxVersions = 64

// Entry is a version of an owner's keys.
type Entry struct {
	*service.Record
	Place      int    // index of the owner in the roster
	Signed     []byte // the record; nil if only the revocation is known
	Revocation []byte // nil unless the keys are revoked
	Superseded bool   // by a later version, whatever the state of that version
}

// State returns the state in the terms of the service.
func (e *Entry) State() string {
	switch {
	case e.Revocation != nil:
		return "revoked"
	case e.Superseded:
		return "superseded"
	}
	return "current"
}

// book holds the records of all owners. It is not safe for concurrent use.
type book struct {
	context *service.Context
	signers []ed25519.PublicKey
	owners  [][]*Entry // by index in the roster, ascending by version
	// departed holds records of parties that have left the roster, by the keys' identifiers.
	departed map[multikey.KeyID][]byte
}

// maxDeparted is the maximum number of departed records.
const maxDeparted = 1024

func newBook(c *service.Context, signers []ed25519.PublicKey) *book {
	return &book{context: c, signers: signers, owners: make([][]*Entry, len(signers)), departed: map[multikey.KeyID][]byte{}}
}

// accept adds a record, and reports whether it is new.
func (b *book) accept(signed []byte) (*Entry, bool, error) {
	r, err := service.VerifyRecord(signed)
	if err != nil {
		return nil, false, err
	}
	if err := r.Check(b.context); err != nil {
		return nil, false, err
	}
	place, err := r.Place(b.signers)
	if err != nil {
		return nil, false, err
	}
	list := b.owners[place]
	at, found := slices.BinarySearchFunc(list, r.Version, func(e *Entry, v uint64) int { return cmp.Compare(e.Version, v) })
	if !found {
		return b.insert(r, place, signed, at)
	}
	e := list[at]
	old := e.Signed
	if r.Revoked {
		old = e.Revocation
	}
	switch {
	case e.Key == r.Key && r.Revoked && old != nil: // a second revocation adds nothing, for example one signed after the owner's store was restored
		return e, false, nil
	case e.Key != r.Key || old != nil && !bytes.Equal(old, signed):
		return nil, false, fmt.Errorf("%w: party %d has signed two records of version %d", ErrConflict, place, r.Version)
	case old != nil:
		return e, false, nil
	case r.Revoked:
		e.Revocation = bytes.Clone(signed)
	default:
		e.Record, e.Signed = r, bytes.Clone(signed)
	}
	return e, true, nil
}

// insert inserts a new version at index at. A version older than all that are remembered is not
// inserted.
func (b *book) insert(r *service.Record, place int, signed []byte, at int) (*Entry, bool, error) {
	list := b.owners[place]
	e := &Entry{Record: r, Place: place, Superseded: at < len(list)}
	if r.Revoked {
		e.Revocation = bytes.Clone(signed)
	} else {
		e.Signed = bytes.Clone(signed)
	}
	if len(list) == maxVersions && at == 0 {
		return e, false, nil
	}
	list = slices.Insert(list, at, e)
	for _, older := range list[:at] {
		older.Superseded = true
	}
	b.owners[place] = list[max(0, len(list)-maxVersions):]
	return e, true, nil
}

// remember adds a record that was accepted earlier, perhaps under another roster.
func (b *book) remember(signed []byte) error {
	_, _, err := b.accept(signed)
	if r, parse := service.ParseRecord(signed); errors.Is(err, service.ErrOwner) && parse == nil && len(b.departed) < maxDeparted {
		b.departed[r.Key] = bytes.Clone(signed)
		return nil
	}
	return err
}

// records returns all accepted records in an order in which they can be accepted again.
func (b *book) records() (list [][]byte) {
	for _, signed := range b.departed {
		list = append(list, signed)
	}
	for _, entries := range b.owners {
		for _, e := range entries {
			for _, signed := range [][]byte{e.Signed, e.Revocation} {
				if signed != nil {
					list = append(list, signed)
				}
			}
		}
	}
	return list
}

// named returns the entries with the given key identifier, from different owners. A false claim is
// detected when the keys are fetched, because their header names the owner.
func (b *book) named(id multikey.KeyID) (list []*Entry) {
	for _, entries := range b.owners {
		for _, e := range entries {
			if e.Key == id {
				list = append(list, e)
			}
		}
	}
	return list
}

// current returns the version of an owner that may be used, or nil.
func (b *book) current(owner int) *Entry {
	list := b.owners[owner]
	if n := len(list); n > 0 && list[n-1].State() == "current" {
		return list[n-1]
	}
	return nil
}
