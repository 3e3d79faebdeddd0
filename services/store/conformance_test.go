package store_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

// kind returns an address for an empty store of one implementation.
type kind func(t testing.TB) (address string)

// conform runs the tests that every store must pass: first the test that measures memory, then the
// others concurrently.
func conform(t *testing.T, k kind) {
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

// opened opens the store until the test ends.
func opened(t testing.TB, address string) store.Store {
	t.Helper()
	s, err := open(address)
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
	return opened(t, k(t))
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantError requires an error.
func wantError(t testing.TB, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Fatalf("got %v, want %v", got, want)
	}
}

func putAll(t testing.TB, s store.Store, pairs ...string) {
	t.Helper()
	noError(t, s.Update(func(tx store.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put(pairs[i], []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	}))
}

// dump returns all records with a prefix as "key=value" in the order of the scan.
func dump(tx store.Tx, prefix string) ([]string, error) {
	var all []string
	err := tx.Scan(prefix, func(key string, value []byte) error {
		all = append(all, fmt.Sprintf("%s=%s", key, value))
		return nil
	})
	return all, err
}

func want(t testing.TB, s store.Store, prefix string, records ...string) {
	t.Helper()
	var got []string
	noError(t, s.View(func(tx store.Tx) (err error) {
		got, err = dump(tx, prefix)
		return err
	}))
	if fmt.Sprint(got) != fmt.Sprint(records) {
		t.Fatalf("under %q: %q, want %q", prefix, got, records)
	}
}

func closed(t *testing.T, k kind) {
	s := k.fresh(t)
	writeBlob(t, s, "kept", []byte("v"))
	w, err := s.Create("late")
	noError(t, err)
	b, err := s.Open("kept")
	noError(t, err)
	noError(t, s.Close())
	nothing := func(store.Tx) error { t.Error("ran after Close"); return nil }
	_, createErr := s.Create("x")
	_, openErr := s.Open("kept")
	_, listErr := s.Blobs()
	_, readErr := b.ReadAt(make([]byte, 1), 0)
	_, writeErr := b.WriteAt(make([]byte, 1), 0)
	for i, err := range []error{
		s.View(nothing), s.Update(nothing), createErr, openErr, listErr, readErr, writeErr, s.Erase("kept"),
		s.Healthy(), w.Commit(),
	} {
		if !errors.Is(err, store.ErrClosed) {
			t.Errorf("call %d after Close: %v", i, err)
		}
	}
	noError(t, b.Close())
}
