package store_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

var errOwn = errors.New("the function's own error")

func atomicity(t *testing.T, k kind) {
	s := k.fresh(t)
	putAll(t, s, "a", "1", "b", "2")
	err := s.Update(func(tx store.Tx) error {
		noError(t, tx.Put("a", []byte("changed")))
		noError(t, tx.Put("c", []byte("new")))
		noError(t, tx.Delete("b"))
		return errOwn
	})
	if err != errOwn {
		t.Fatalf("got %v, want the function's error as it is", err)
	}
	want(t, s, "", "a=1", "b=2")
	noError(t, s.Update(func(tx store.Tx) error {
		noError(t, tx.Delete("absent"))
		noError(t, tx.Delete("b"))
		return tx.Put("c", []byte("3"))
	}))
	want(t, s, "", "a=1", "c=3")
}

func order(t *testing.T, k kind) {
	s := k.fresh(t)
	// In the order of bytes: upper case first, and not by any language's rules.
	keys := []string{
		"A", "B", "a", "a!", "a-b", "a/b", "a/ä", "aa", "b", "p/1", "p/10", "p/2", "q", "z", "é", "日本", "\U0001f511",
	}
	noError(t, s.Update(func(tx store.Tx) error {
		for _, i := range rand.Perm(len(keys)) {
			noError(t, tx.Put(keys[i], []byte("v")))
		}
		return nil
	}))
	if !slices.IsSorted(keys) {
		t.Fatal("the test's keys are not in order")
	}
	var all []string
	for _, key := range keys {
		all = append(all, key+"=v")
	}
	want(t, s, "", all...)
	want(t, s, "p/", "p/1=v", "p/10=v", "p/2=v")
	want(t, s, "a/", "a/b=v", "a/ä=v")
	want(t, s, "\U0001f511", "\U0001f511=v")
	want(t, s, "none")
	var got []string
	noError(t, s.View(func(tx store.Tx) error {
		got = nil
		return tx.ScanAfter("a", "a-b", func(key string, _ []byte) (bool, error) {
			got = append(got, key)
			return len(got) < 2, nil
		})
	}))
	if fmt.Sprint(got) != "[a/b a/ä]" {
		t.Fatalf("after a-b, two of a: %q", got)
	}
	err := s.View(func(tx store.Tx) error { return tx.Scan("p/", func(string, []byte) error { return errOwn }) })
	if err != errOwn {
		t.Fatalf("a scan's error: %v", err)
	}
}

func ownWrites(t *testing.T, k kind) {
	s := k.fresh(t)
	putAll(t, s, "k/a", "1", "k/c", "3", "k/e", "5")
	noError(t, s.Update(func(tx store.Tx) error {
		noError(t, tx.Put("k/b", []byte("2")))
		noError(t, tx.Put("k/c", []byte("changed")))
		noError(t, tx.Delete("k/e"))
		noError(t, tx.Put("k/f", []byte("6")))
		if v, err := tx.Get("k/c"); err != nil || string(v) != "changed" {
			t.Errorf("own write: %q, %v", v, err)
		}
		if v, err := tx.Get("k/e"); err != nil || v != nil {
			t.Errorf("own deletion: %q, %v", v, err)
		}
		got, err := dump(tx, "k/")
		if fmt.Sprint(got) != "[k/a=1 k/b=2 k/c=changed k/f=6]" {
			t.Errorf("scan of own writes: %q", got)
		}
		// A scan may be written under, and read under.
		err = errors.Join(err, tx.Scan("k/", func(key string, value []byte) error {
			v, err := tx.Get(key)
			if !bytes.Equal(v, value) {
				t.Errorf("get within scan of %s: %q, want %q", key, v, value)
			}
			inner, innerErr := dump(tx, "k/a")
			if len(inner) == 0 {
				t.Error("a nested scan returns no records")
			}
			return errors.Join(err, innerErr, tx.Put(key+"/seen", nil), tx.Delete(key))
		}))
		return err
	}))
	want(t, s, "k/", "k/a/seen=", "k/b/seen=", "k/c/seen=", "k/f/seen=")
}

// getAll returns the values of many keys in their order, including writes of the transaction.
func getAll(t *testing.T, k kind) {
	s := k.fresh(t)
	const many = 12_000
	name := func(i int) string { return fmt.Sprintf("k/%05d", i) }
	noError(t, s.Update(func(tx store.Tx) error {
		for i := range many {
			if i%3 == 0 {
				noError(t, tx.Put(name(i), fmt.Append(nil, i)))
			}
		}
		return tx.Put("empty", nil)
	}))
	keys := []string{"empty", "none"}
	for i := range many {
		keys = append(keys, name(many-1-i))
	}
	keys = append(keys, name(3), name(3), "\U0001f511")
	look := func(tx store.Tx, changed bool) {
		t.Helper()
		values, err := tx.GetAll(keys)
		if err != nil || len(values) != len(keys) || values[0] == nil || len(values[0]) != 0 || values[1] != nil {
			t.Fatalf("%d values of %d keys, %v", len(values), len(keys), err)
		}
		for i, key := range keys {
			one, err := tx.Get(key)
			if err != nil || (one == nil) != (values[i] == nil) || !bytes.Equal(one, values[i]) {
				t.Fatalf("%s: %q, and alone %q, %v", key, values[i], one, err)
			}
		}
		if changed != (string(values[len(values)-2]) == "changed") {
			t.Fatalf("%q", values[len(values)-2])
		}
	}
	noError(t, s.View(func(tx store.Tx) error { look(tx, false); return nil }))
	err := s.Update(func(tx store.Tx) error {
		look(tx, false)
		noError(t, tx.Put(name(3), []byte("changed")))
		noError(t, tx.Delete(name(6)))
		look(tx, true)
		return errOwn
	})
	if !errors.Is(err, errOwn) {
		t.Fatal(err)
	}
	noError(t, s.View(func(tx store.Tx) error {
		look(tx, false)
		if none, err := tx.GetAll(nil); err != nil || len(none) != 0 {
			t.Errorf("%v, %v", none, err)
		}
		if _, err := tx.GetAll([]string{"a", ""}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("an empty key: %v", err)
		}
		return nil
	}))
}

// scansAgainstOracle compares transactions of random writes and scans with a map.
func scansAgainstOracle(t *testing.T, k kind) {
	s := k.fresh(t)
	rng := rand.New(rand.NewPCG(1, 2))
	key := func() string {
		b := make([]byte, 1+rng.IntN(3))
		for i := range b {
			b[i] = "abc"[rng.IntN(3)]
		}
		return string(b)
	}
	oracle := map[string]string{}
	for i := range 30 {
		trial := map[string]string{}
		for key, v := range oracle {
			trial[key] = v
		}
		fails := rng.IntN(4) == 0
		err := s.Update(func(tx store.Tx) error {
			for j := range 12 {
				switch key := key(); rng.IntN(4) {
				case 0, 1:
					v := fmt.Sprint(i, ".", j)
					trial[key] = v
					noError(t, tx.Put(key, []byte(v)))
				case 2:
					delete(trial, key)
					noError(t, tx.Delete(key))
				default:
					compareScan(t, tx, trial, key[:rng.IntN(len(key))], key)
				}
			}
			if fails {
				return errOwn
			}
			return nil
		})
		if fails {
			wantError(t, err, errOwn)
			continue
		}
		noError(t, err)
		oracle = trial
		noError(t, s.View(func(tx store.Tx) error {
			compareScan(t, tx, oracle, "", "")
			compareScan(t, tx, oracle, key(), key())
			return nil
		}))
	}
}

func compareScan(t *testing.T, tx store.Tx, oracle map[string]string, prefix, after string) {
	t.Helper()
	var got, wanted []string
	noError(t, tx.ScanAfter(prefix, after, func(key string, value []byte) (bool, error) {
		got = append(got, key+"="+string(value))
		return true, nil
	}))
	for key, v := range oracle {
		if strings.HasPrefix(key, prefix) && key > after {
			wanted = append(wanted, key+"="+v)
		}
	}
	slices.SortFunc(wanted, func(a, b string) int {
		return strings.Compare(a[:strings.Index(a, "=")], b[:strings.Index(b, "=")])
	})
	if !slices.Equal(got, wanted) {
		t.Fatalf("prefix %q after %q: %q, want %q", prefix, after, got, wanted)
	}
}

func snapshot(t *testing.T, k kind) {
	s := k.fresh(t)
	putAll(t, s, "a", "1", "b", "1")
	noError(t, s.View(func(tx store.Tx) error {
		first, err := tx.Get("a")
		noError(t, err)
		putAll(t, s, "a", "2", "b", "2", "c", "2")
		second, err := tx.Get("b")
		noError(t, err)
		if string(first) != "1" || string(second) != "1" {
			t.Errorf("a view saw a=%s, and b=%s after an update", first, second)
		}
		got, err := dump(tx, "")
		if fmt.Sprint(got) != "[a=1 b=1]" {
			t.Errorf("a view's scan after an update: %q", got)
		}
		return err
	}))
	want(t, s, "", "a=2", "b=2", "c=2")
}

func readOnly(t *testing.T, k kind) {
	s := k.fresh(t)
	putAll(t, s, "a", "1")
	var kept store.Tx
	noError(t, s.View(func(tx store.Tx) error {
		kept = tx
		wantError(t, tx.Put("a", nil), store.ErrReadOnly)
		wantError(t, tx.Delete("a"), store.ErrReadOnly)
		return nil
	}))
	_, err := kept.Get("a")
	wantError(t, err, store.ErrEnded)
	noError(t, s.Update(func(tx store.Tx) error { kept = tx; return nil }))
	wantError(t, kept.Put("a", nil), store.ErrEnded)
	wantError(t, kept.Scan("", func(string, []byte) error { return nil }), store.ErrEnded)
	if err := s.View(func(store.Tx) error { return errOwn }); err != errOwn {
		t.Fatalf("a view's error: %v", err)
	}
	want(t, s, "", "a=1")
}

func limits(t *testing.T, k kind) {
	s := k.fresh(t)
	longest := strings.Repeat("é", store.MaxKey/2)
	noError(t, s.Update(func(tx store.Tx) error {
		for _, key := range []string{"", longest + "x", "zero\x00byte", "not \xff text"} {
			_, err := tx.Get(key)
			for _, err := range []error{err, tx.Put(key, nil), tx.Delete(key)} {
				wantError(t, err, store.ErrInvalid)
			}
			if key != "" {
				wantError(t, tx.Scan(key, func(string, []byte) error { return nil }), store.ErrInvalid)
			}
		}
		wantError(t, tx.Put("large", make([]byte, store.MaxValue+1)), store.ErrInvalid)
		return tx.Put(longest, []byte("v"))
	}))
	want(t, s, longest, longest+"=v")
	long := strings.Repeat("x", store.MaxName+1)
	for _, name := range []string{"", ".", "..", ".hidden", "tmp-1", "a/b", "a b", "é", long} {
		_, err := s.Create(name)
		wantError(t, err, store.ErrInvalid)
		_, err = s.Open(name)
		wantError(t, err, store.ErrInvalid)
		wantError(t, s.Erase(name), store.ErrInvalid)
	}
}

func values(t *testing.T, k kind) {
	s := k.fresh(t)
	held := []byte("before")
	large := bytes.Repeat([]byte("0123456789abcdef"), store.MaxValue/16)
	noError(t, s.Update(func(tx store.Tx) error {
		copy(held, "before")
		noError(t, tx.Put("held", held))
		copy(held, "after!")
		noError(t, tx.Put("empty", nil))
		noError(t, tx.Put("bytes", []byte{0, 255, 1, '\\', 'x'}))
		return tx.Put("large", large)
	}))
	inspect := func(tx store.Tx) error {
		for key, wanted := range map[string][]byte{
			"held": []byte("before"), "empty": {}, "bytes": {0, 255, 1, '\\', 'x'}, "large": large,
		} {
			v, err := tx.Get(key)
			if err != nil || v == nil || !bytes.Equal(v, wanted) {
				t.Errorf("%s: %d bytes, nil %v, error %v", key, len(v), v == nil, err)
			}
		}
		v, err := tx.Get("absent")
		if err != nil || v != nil {
			t.Errorf("absent: %v, %v", v, err)
		}
		return nil
	}
	noError(t, s.View(inspect))
	noError(t, s.Update(inspect))
}

// concurrent runs updates of which some fail, at every point of their writes. No update is lost,
// and a failed one leaves no trace.
func concurrent(t *testing.T, k kind) {
	s := k.fresh(t)
	const workers, each = 16, 12
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := range each {
				fails := (w+i)%3 == 0
				err := s.Update(func(tx store.Tx) error {
					if err := tx.Put(fmt.Sprintf("r/%02d/%02d", w, i), []byte("v")); err != nil {
						return err
					}
					if err := tx.Put("last", []byte{byte(w), byte(i)}); err != nil {
						return err
					}
					if fails {
						return errOwn
					}
					return nil
				})
				if fails && err != errOwn || !fails && err != nil {
					t.Errorf("worker %d update %d: %v", w, i, err)
				}
			}
		})
	}
	wg.Wait()
	var wanted []string
	for w := range workers {
		for i := range each {
			if (w+i)%3 != 0 {
				wanted = append(wanted, fmt.Sprintf("r/%02d/%02d=v", w, i))
			}
		}
	}
	want(t, s, "r/", wanted...)
}

// counter: updates read the writes of earlier updates, also within a group.
func counter(t *testing.T, k kind) {
	s := k.fresh(t)
	const workers, each = 20, 10
	add := func(fail bool) error {
		return s.Update(func(tx store.Tx) error {
			v, err := tx.Get("n")
			if err != nil {
				return err
			}
			var n uint64
			if v != nil {
				n = binary.BigEndian.Uint64(v)
			}
			if err := tx.Put("n", binary.BigEndian.AppendUint64(nil, n+1)); err != nil || !fail {
				return err
			}
			return errOwn
		})
	}
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range each {
				if err := add(false); err != nil {
					t.Error(err)
				}
				if err := add(true); err != errOwn {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	noError(t, s.View(func(tx store.Tx) error {
		v, err := tx.Get("n")
		if err == nil && binary.BigEndian.Uint64(v) != workers*each {
			t.Errorf("%d of %d increments", binary.BigEndian.Uint64(v), workers*each)
		}
		return err
	}))
}

// panics: a function that panics or ends its goroutine is dropped, and blocks no other.
func panics(t *testing.T, k kind) {
	s := k.fresh(t)
	var wg sync.WaitGroup
	for i := range 30 {
		wg.Go(func() {
			defer func() {
				if r := recover(); (i%3 == 0) != (r == "own panic") {
					t.Errorf("update %d recovered %v", i, r)
				}
			}()
			err := s.Update(func(tx store.Tx) error {
				noError(t, tx.Put(fmt.Sprintf("%02d", i), nil))
				switch i % 3 {
				case 0:
					panic("own panic")
				case 1:
					runtime.Goexit()
				}
				return nil
			})
			if i%3 != 2 || err != nil {
				t.Errorf("update %d returned %v", i, err)
			}
		})
	}
	wg.Wait()
	want(t, s, "", "02=", "05=", "08=", "11=", "14=", "17=", "20=", "23=", "26=", "29=")
}

func reopen(t *testing.T, k kind) {
	address := k(t)
	var lineage string
	for i := range 3 {
		s, err := open(address)
		noError(t, err)
		if i == 0 {
			lineage = s.Lineage()
		} else {
			want(t, s, "gen/", []string{"gen/0=v", "gen/1=v"}[:i]...)
		}
		if s.Lineage() != lineage {
			t.Errorf("lineage %q became %q", lineage, s.Lineage())
		}
		putAll(t, s, fmt.Sprintf("gen/%d", i), "v")
		noError(t, s.Close())
		noError(t, s.Close())
	}
}

func twoOpeners(t *testing.T, k kind) {
	address := k(t)
	s := opened(t, address)
	putAll(t, s, "a", "1")
	other, err := open(address)
	if err == nil {
		noError(t, other.Close())
	}
	wantError(t, err, store.ErrInUse)
	putAll(t, s, "b", "2")
	noError(t, s.Close())
	other = opened(t, address)
	want(t, other, "", "a=1", "b=2")
}
