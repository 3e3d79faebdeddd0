// Package store keeps the encrypted data of the vault: small records in order of their keys, and
// blobs. Keys, values and blobs are opaque to it; it promises atomicity, order and durability, and
// nothing about secrecy. There is an embedded store in a directory (OpenDir) and one on a
// PostgreSQL server (OpenPostgres); storetest has the tests that both must pass.
package store

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Errors of a store.
var (
	ErrNotFound  = errors.New("store: not found")
	ErrExists    = errors.New("store: there is a blob of that name")
	ErrReadOnly  = errors.New("store: the transaction is read only")
	ErrEnded     = errors.New("store: the transaction has ended")
	ErrClosed    = errors.New("store: closed")
	ErrInvalid   = errors.New("store: invalid argument")
	ErrInUse     = errors.New("store: in use by another process")
	ErrFenced    = errors.New("store: another process has taken over")
	ErrLineage   = errors.New("store: the stored data was replaced since it was opened")
	ErrUnsafe    = errors.New("store: the storage may lose written data")
	ErrDamaged   = errors.New("store: the records are damaged")
	ErrUncertain = errors.New("store: whether the write took place is unknown")
)

// Limits of a store.
const (
	MaxKey   = 1024     // bytes of a key
	MaxValue = 16 << 20 // bytes of a value
	MaxName  = 200      // bytes of a blob's name
)

// Store is open in one process at a time. It is safe for concurrent use, but a function that runs
// in a transaction must only use that transaction.
type Store interface {
	// View runs f on a consistent snapshot, which has every update that
	// returned before. It is read only.
	View(f func(Tx) error) error

	// Update runs f in an atomic transaction, which is durable when Update returns nil. If f
	// fails, Update rolls the transaction back and returns the error of f unchanged. f may run
	// more than once, so apart from its transaction it may only set results, and must reset them
	// when it begins. Updates of concurrent callers run one after another and are committed
	// together; a failed transaction does not affect others. After ErrUncertain either the whole
	// update has taken place or none of it.
	Update(f func(Tx) error) error

	// Create begins a blob; nothing is seen under its name until Commit. A name
	// is 1 to MaxName letters, digits, '.', '_' and '-', and does not begin with
	// '.' or "tmp-".
	Create(name string) (Writer, error)

	// Open opens a committed blob, or returns ErrNotFound.
	Open(name string) (Blob, error)

	// Erase makes the committed data of a name unreadable, also through an open Blob. It is durable
	// when it returns. Erasing a name without data succeeds.
	Erase(name string) error

	// Blobs lists the committed blobs in order of their names. Blobs that were
	// never committed are erased when the store is opened.
	Blobs() ([]string, error)

	// Lineage names the history that the store is on. It changes when the store
	// was failed over or put back, as far as the storage can detect it: on
	// PostgreSQL it is "system identifier/timeline"; the embedded store cannot
	// detect it, and returns "".
	Lineage() string

	// Size returns the size of the store in bytes: its files, or on PostgreSQL the database.
	Size() (int64, error)

	// Healthy returns nil if the store can be written now, and otherwise the reason:
	// ErrFenced, ErrLineage, ErrUnsafe, ErrClosed, or the error of the storage.
	Healthy() error

	Close() error
}

// Tx is one transaction. A key is 1 to MaxKey bytes of UTF-8 without the zero byte; keys are
// ordered by their bytes. Values that Get, GetAll, Scan and ScanAfter return are valid until the
// transaction ends, and the caller must not change them. Put copies its value.
type Tx interface {
	Get(key string) ([]byte, error) // nil, nil: absent; an empty value is not nil

	// GetAll is Get of many keys: at a server with as few questions as it can.
	GetAll(keys []string) (values [][]byte, err error)

	Put(key string, value []byte) error
	Delete(key string) error // an absent key is fine

	// Scan calls f with the values of all keys with the prefix, in order, including writes of the
	// transaction from before the scan. It ends with f's error.
	Scan(prefix string, f func(key string, value []byte) error) error

	// ScanAfter is Scan from the first key that comes after `after`, until f
	// says that it wants no more.
	ScanAfter(prefix, after string, f func(key string, value []byte) (more bool, err error)) error
}

// Writer is a blob being made, by one goroutine.
type Writer interface {
	io.Writer
	// Commit makes the blob durable under its name, or gives ErrExists when there
	// is one already. When it fails the blob is aborted, unless the error is
	// ErrUncertain.
	Commit() error
	// Abort erases the written data. After a Commit that succeeded it does nothing.
	Abort()
}

// Blob is a committed blob. It is safe for concurrent use. After Erase its
// methods give ErrNotFound.
type Blob interface {
	io.ReaderAt
	// WriteAt writes within the blob or at its end (off at most its size). It is durable when it
	// returns. A crash before that may leave a part of the blob.
	WriteAt(b []byte, off int64) (int, error)
	Size() (int64, error)
	Close() error
}

func checkKey(key string) error {
	if key == "" {
		return fmt.Errorf("%w: empty key", ErrInvalid)
	}
	return checkText(key)
}

// checkText is also for prefixes, which may be empty.
func checkText(s string) error {
	if len(s) > MaxKey {
		return fmt.Errorf("%w: key of %d bytes; at most %d", ErrInvalid, len(s), MaxKey)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("%w: key is not UTF-8", ErrInvalid)
	}
	for i := range len(s) {
		if s[i] == 0 {
			return fmt.Errorf("%w: key with a zero byte", ErrInvalid)
		}
	}
	return nil
}

// tempPrefix begins the names of files of unfinished blobs.
const tempPrefix = "tmp-"

func checkName(name string) error {
	ok := name != "" && len(name) <= MaxName && name[0] != '.' &&
		(len(name) < len(tempPrefix) || name[:len(tempPrefix)] != tempPrefix)
	for i := range len(name) {
		c := name[i]
		ok = ok && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-')
	}
	if !ok {
		return fmt.Errorf("%w: blob name %q", ErrInvalid, name)
	}
	return nil
}
