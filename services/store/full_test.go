package store_test

import (
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
)

const fullVar = "LODGE_STORE_FULL"

// On a full disk updates fail as a whole, and work again when there is room. A limit on the size of
// files stands for the disk; the limit applies to a process, so the test runs in a separate one.
func TestDirFull(t *testing.T) {
	if os.Getenv(fullVar) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestDirFull$")
		cmd.Env = append(os.Environ(), fullVar+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	signal.Ignore(syscall.SIGXFSZ)
	dir := t.TempDir()
	s, err := store.OpenDir(dir)
	must(t, err)
	must(t, put(s, "a", "1"))
	var limit syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit))
	room := limit.Cur
	info, err := os.Stat(dir + "/records.db")
	must(t, err)
	limit.Cur = uint64(info.Size())
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	large := strings.Repeat("x", store.MaxValue)
	for range 3 {
		err := s.Update(func(tx store.Tx) error {
			return errors.Join(tx.Put("a", []byte("2")), tx.Put("large", []byte(large)))
		})
		if err == nil || errors.Is(err, store.ErrUncertain) {
			t.Fatalf("an update without room: %v", err)
		}
		must(t, s.Healthy())
		if v := get(t, s, "a"); v != "1" {
			t.Fatalf("a failed update wrote %q", v)
		}
	}
	limit.Cur = room
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit))
	must(t, put(s, "large", large))
	must(t, s.Close())
	s, err = store.OpenDir(dir)
	must(t, err)
	if a, b := get(t, s, "a"), get(t, s, "large"); a != "1" || b != large {
		t.Errorf("a=%q, and %d bytes", a, len(b))
	}
	must(t, s.Close())
}
