package store_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

const (
	damageVar  = "LODGE_STORE_DAMAGE" // directory of a store that a child process opens
	runningVar = "LODGE_STORE_DAMAGE_RUNNING"
)

// outcome of a child that opened a store.
type outcome struct {
	Fault string // its error
	Typed bool   // it is ErrDamaged
	Wrong string // data that differs from the stored data
}

// damageRecords are the records of the stores in these tests: values that name their keys, so that
// a reader sees whether they belong there.
func damageRecords() map[string]string {
	r := rand.New(rand.NewPCG(7, 11))
	all := map[string]string{}
	for i := range 300 {
		key := fmt.Sprintf("kind-%d/%06d", i%3, i*i)
		all[key] = key + strings.Repeat("=", r.IntN(300))
	}
	all["large"] = "large" + strings.Repeat("=", 40<<10) // a page with overflow
	return all
}

// makeDamageable writes a store of several levels of pages, with free pages from records that were
// deleted.
func makeDamageable(t *testing.T) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "store")
	s, err := store.OpenDir(dir)
	must(t, err)
	must(t, s.Update(func(tx store.Tx) error {
		var errs []error
		for key, value := range damageRecords() {
			errs = append(errs, tx.Put(key, []byte(value)), tx.Put("gone/"+key, []byte(value)))
		}
		return errors.Join(errs...)
	}))
	must(t, s.Update(func(tx store.Tx) error {
		var errs []error
		for key := range damageRecords() {
			errs = append(errs, tx.Delete("gone/"+key))
		}
		return errors.Join(errs...)
	}))
	must(t, s.Close())
	path := filepath.Join(dir, "records.db")
	b, err := os.ReadFile(path)
	must(t, err)
	used := uint64(0) // pages; bbolt grows the file by 16 MiB
	for meta := range 2 {
		used = max(used, binary.LittleEndian.Uint64(b[meta*os.Getpagesize()+16+40:]))
	}
	must(t, os.Truncate(path, int64(used)*int64(os.Getpagesize())))
	return dir
}

// fault is one way to damage the records file.
type fault struct {
	name string
	do   func(b []byte) []byte
}

// faultsOf lists faults for a file of the given size: every page zeroed, swapped for its neighbour
// and cut off at, every field of the headers of all pages and of the meta pages flipped, and random
// bits anywhere.
func faultsOf(size int) (list []fault) {
	const page = 4096
	add := func(name string, do func([]byte) []byte) { list = append(list, fault{name, do}) }
	flip := func(at, bit int) {
		add(fmt.Sprintf("flip bit %d of byte %d of page %d", bit, at%page, at/page), func(b []byte) []byte {
			b[at] ^= 1 << bit
			return b
		})
	}
	for p := range size / page {
		add(fmt.Sprintf("zero page %d", p), func(b []byte) []byte {
			clear(b[p*page : (p+1)*page])
			return b
		})
		add(fmt.Sprintf("page %d in place of its neighbour", p), func(b []byte) []byte {
			copy(b[(p^1)*page:min(len(b), (p^1)*page+page)], b[p*page:(p+1)*page])
			return b
		})
	}
	for p := 0; p < size/page; p += 5 {
		add(fmt.Sprintf("cut within page %d", p), func(b []byte) []byte { return b[:p*page+100] })
	}
	r := rand.New(rand.NewPCG(1, 2))
	for p := range size / page {
		for _, field := range []int{0, 8, 10, 12, 16, 20, 24, 28} { // of the header and the first element
			flip(p*page+field, r.IntN(8))
		}
	}
	for at := 16; at < 80; at += 3 {
		flip(at, r.IntN(8))
		flip(page+at, r.IntN(8))
	}
	for range 200 {
		flip(r.IntN(size), r.IntN(8))
	}
	return list
}

// A damaged records.db never makes a process panic: OpenDir, reads and writes return ErrDamaged, or
// records that were stored. Values are not the store's to authenticate, so a flip within one is the
// caller's to find.
func TestDamage(t *testing.T) {
	if dir := os.Getenv(damageVar); dir != "" {
		useDamaged(dir)
		return
	}
	dir := makeDamageable(t)
	whole, err := os.ReadFile(filepath.Join(dir, "records.db"))
	must(t, err)
	list := faultsOf(len(whole))
	if len(list) < 400 {
		t.Fatalf("%d faults in %d bytes", len(list), len(whole))
	}
	refused, broken := 0, filepath.Join(t.TempDir(), "store")
	for _, f := range list {
		must(t, os.MkdirAll(filepath.Join(broken, "objects"), 0o700))
		must(t, os.WriteFile(filepath.Join(broken, "records.db"), f.do(append([]byte(nil), whole...)), 0o600))
		o := openDamaged(broken)
		switch {
		case o.Wrong != "":
			t.Errorf("%s: %s", f.name, o.Wrong)
		case o.Fault != "" && !o.Typed:
			t.Errorf("%s: %s is not ErrDamaged", f.name, o.Fault)
		case o.Fault != "":
			refused++
		}
	}
	if refused < len(list)/3 {
		t.Errorf("%d of %d faults were found", refused, len(list))
	}
	t.Logf("%d faults: %d found, %d in bytes that nothing reads or in values", len(list), refused, len(list)-refused)
}

// openDamaged opens a store in this process, which a panic would end with a failing test.
func openDamaged(dir string) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			o = outcome{Wrong: fmt.Sprintf("panic: %v", p)}
		}
	}()
	s, err := store.OpenDir(dir)
	if err == nil {
		err = errors.Join(exercise(s, &o), s.Close())
	}
	if err != nil {
		o.Fault, o.Typed = err.Error(), errors.Is(err, store.ErrDamaged)
	}
	return o
}

// exercise reads everything, one by one and in order, and writes.
func exercise(s store.Store, o *outcome) error {
	want := damageRecords()
	err := s.View(func(tx store.Tx) error {
		found := 0
		err := tx.Scan("", func(key string, value []byte) error {
			if found++; len(want[key]) != len(value) && want[key] != "" {
				o.Wrong = fmt.Sprintf("record %q has %d bytes, want %d", key, len(value), len(want[key]))
			}
			return nil
		})
		if err == nil && found != len(want) {
			o.Wrong = fmt.Sprintf("%d of %d records", found, len(want))
		}
		return err
	})
	for key := range want {
		if err != nil {
			return err
		}
		err = s.View(func(tx store.Tx) error {
			_, err := tx.Get(key)
			return err
		})
	}
	if err != nil {
		return err
	}
	return s.Update(func(tx store.Tx) error {
		var errs []error
		for i := range 50 {
			errs = append(errs, tx.Put(fmt.Sprintf("kind-1/new-%d", i), make([]byte, 200)), tx.Delete(fmt.Sprintf("kind-2/%06d", (3*i+2)*(3*i+2))))
		}
		return errors.Join(errs...)
	})
}

// useDamaged is the child: it opens a whole store, has it damaged while it is open, and goes on
// using it.
func useDamaged(dir string) {
	var o outcome
	defer func() { check(json.NewEncoder(os.Stdout).Encode(&o)) }()
	s, err := store.OpenDir(dir)
	if err != nil {
		o.Wrong = "the store is whole, and does not open: " + err.Error()
		return
	}
	path := filepath.Join(dir, "records.db")
	info, err := os.Stat(path)
	check(err)
	var number int
	fmt.Sscan(os.Getenv(runningVar), &number)
	f := faultsOf(int(info.Size()))[number]
	b, err := os.ReadFile(path)
	check(err)
	before := append([]byte(nil), b...)
	after := f.do(b)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	check(err)
	for at := range after { // in place: the map sees it
		if after[at] != before[at] {
			_, err := file.WriteAt(after[at:at+1], int64(at))
			check(err)
		}
	}
	check(file.Truncate(int64(len(after))))
	for range 3 {
		if err = exercise(s, &o); err != nil {
			o.Fault, o.Typed = err.Error(), errors.Is(err, store.ErrDamaged)
			if healthy := s.Healthy(); o.Typed && !errors.Is(healthy, store.ErrDamaged) {
				o.Wrong = fmt.Sprintf("it met damage and is healthy: %v", healthy)
			}
		}
	}
	if err := s.Close(); err != nil && !errors.Is(err, store.ErrDamaged) {
		o.Wrong = "closing it: " + err.Error()
	}
}

// A records.db that is damaged while a process has it open gives errors and no crash. A fault in
// the mapped file can end a process in ways that it cannot recover from, so every fault runs in a
// separate process.
func TestDamageWhileRunning(t *testing.T) {
	whole := makeDamageable(t)
	info, err := os.Stat(filepath.Join(whole, "records.db"))
	must(t, err)
	b, err := os.ReadFile(filepath.Join(whole, "records.db"))
	must(t, err)
	list, found := faultsOf(int(info.Size())), 0
	dir := filepath.Join(t.TempDir(), "store")
	for n := 0; n < len(list); n += 4 {
		must(t, os.MkdirAll(filepath.Join(dir, "objects"), 0o700))
		must(t, os.WriteFile(filepath.Join(dir, "records.db"), b, 0o600))
		cmd := exec.Command(os.Args[0], "-test.run=^TestDamage$")
		cmd.Env = append(os.Environ(), damageVar+"="+dir, fmt.Sprint(runningVar, "=", n))
		out, err := cmd.Output()
		var o outcome
		if err == nil {
			err = json.Unmarshal([]byte(strings.SplitN(string(out), "\n", 2)[0]), &o)
		}
		switch {
		case err != nil:
			text := string(out)
			if e := (*exec.ExitError)(nil); errors.As(err, &e) {
				text += string(e.Stderr)
			}
			t.Errorf("%s: %v\n%.3000s", list[n].name, err, text)
		case strings.HasPrefix(o.Wrong, "it met") || strings.HasPrefix(o.Wrong, "closing") || strings.HasPrefix(o.Wrong, "the store"):
			t.Errorf("%s: %s", list[n].name, o.Wrong)
		case o.Fault != "" && !o.Typed:
			t.Errorf("%s: %s is not ErrDamaged", list[n].name, o.Fault)
		case o.Fault != "":
			found++
		}
	}
	if found < len(list)/4/8 {
		t.Errorf("%d of %d faults were met", found, (len(list)+3)/4)
	}
	t.Logf("%d faults, %d met", (len(list)+3)/4, found)
}

// check ends the child.
func check(err error) {
	if err != nil {
		panic(err)
	}
}
