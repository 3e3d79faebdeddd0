package store_test

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

// kind is an implementation of the store.
type kind struct {
	Fresh func(t testing.TB) (address string) // a place for a store that nothing is in
	Open  func(address string) (store.Store, error)
}

// conformance runs the tests that every store must pass: first the test that measures memory, then
// the others concurrently.
func conformance(t *testing.T, k kind) {
	t.Run("BlobStream", func(t *testing.T) { blobStream(t, k) })
	for _, c := range []struct {
		name string
		run  func(*testing.T, kind)
	}{
		{"Atomic", atomicity}, {"Order", order}, {"OwnWrites", ownWrites}, {"GetAll", getAll}, {"Scans", scansAgainstOracle},
		{"Snapshot", snapshot}, {"ReadOnly", readOnly}, {"Limits", limits}, {"Values", values},
		{"Concurrent", concurrent}, {"Counter", counter}, {"Panic", panics}, {"Reopen", reopen},
		{"Blobs", blobs}, {"BlobWriteAt", blobWriteAt}, {"BlobConcurrent", blobConcurrent}, {"BlobErased", blobErased},
		{"BlobUnfinished", blobUnfinished}, {"TwoOpeners", twoOpeners}, {"Closed", closed},
		{"Crash", crash},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, k)
		})
	}
}

// open opens the store until the test ends.
func (k kind) open(t testing.TB, address string) store.Store {
	t.Helper()
	s, err := k.Open(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if n, err := s.Size(); n <= 0 || err != nil {
		t.Errorf("the store takes %d bytes, %v", n, err)
	}
	if err := s.Healthy(); err != nil {
		t.Fatalf("not healthy when opened: %v", err)
	}
	return s
}

func (k kind) fresh(t testing.TB) store.Store {
	t.Helper()
	return k.open(t, k.Fresh(t))
}

func putAll(t testing.TB, s store.Store, pairs ...string) {
	t.Helper()
	must(t, s.Update(func(tx store.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put(pairs[i], []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	}))
}

// dump is all records with a prefix as "key=value" in the order of the scan.
func dump(tx store.Tx, prefix string) ([]string, error) {
	var all []string
	err := tx.Scan(prefix, func(key string, value []byte) error {
		all = append(all, fmt.Sprintf("%s=%s", key, value))
		return nil
	})
	return all, err
}

// wantRecords fails unless the records with a prefix are these, each as "key=value".
func wantRecords(t testing.TB, s store.Store, prefix string, records ...string) {
	t.Helper()
	var got []string
	must(t, s.View(func(tx store.Tx) (err error) {
		got, err = dump(tx, prefix)
		return err
	}))
	if fmt.Sprint(got) != fmt.Sprint(records) {
		t.Fatalf("under %q: %q, want %q", prefix, got, records)
	}
}
