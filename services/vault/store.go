package vault

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

// Store keeps small records in order of their keys. Update is atomic, and
// durable when it returns. The vault seals every value before it gets here.
type Store interface {
	View(func(Tx) error) error
	Update(func(Tx) error) error
	Close() error
}

// Tx is one transaction. Values are valid until it ends.
type Tx interface {
	Get(key string) []byte // nil: absent
	Put(key string, value []byte) error
	Delete(key string) error
	Scan(prefix string, f func(key string, value []byte) error) error
}

// openBolt opens the embedded store in a file that this process alone may hold.
func openBolt(path string) (Store, error) {
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, FreelistType: bbolt.FreelistMapType})
	if errors.Is(err, bolterrors.ErrTimeout) {
		return nil, fmt.Errorf("vault: %s is in use by another process", path)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucket)
		return err
	})
	if err != nil {
		db.Close()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return boltStore{db}, nil
}

var bucket = []byte("lodge")

type boltStore struct{ db *bbolt.DB }

func (s boltStore) View(f func(Tx) error) error {
	return s.db.View(func(tx *bbolt.Tx) error { return f(boltTx{tx.Bucket(bucket)}) })
}

func (s boltStore) Update(f func(Tx) error) error {
	return s.db.Update(func(tx *bbolt.Tx) error { return f(boltTx{tx.Bucket(bucket)}) })
}

func (s boltStore) Close() error { return s.db.Close() }

type boltTx struct{ b *bbolt.Bucket }

func (t boltTx) Get(key string) []byte          { return t.b.Get([]byte(key)) }
func (t boltTx) Put(key string, v []byte) error { return t.b.Put([]byte(key), v) }
func (t boltTx) Delete(key string) error        { return t.b.Delete([]byte(key)) }

func (t boltTx) Scan(prefix string, f func(string, []byte) error) error {
	c, p := t.b.Cursor(), []byte(prefix)
	for k, v := c.Seek(p); k != nil && bytes.HasPrefix(k, p); k, v = c.Next() {
		if err := f(string(k), v); err != nil {
			return err
		}
	}
	return nil
}
