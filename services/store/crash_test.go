package store_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

const (
	childVar = "LODGE_STORE_CHILD" // the address of the store that a child process is to write until it is killed
	workers  = 4
	fields   = 5 // records of one update
)

// TestMain runs the tests, or, in a child process of a test, the program that the crash test kills.
func TestMain(m *testing.M) {
	if address := os.Getenv(childVar); address != "" {
		if err := child(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	storetest.Main(m)
}

// child writes records and blobs from several goroutines, and prints acknowledged operations on
// standard output: "update WORKER N", "blob WORKER N" and "erased WORKER N".
func child(address string) error {
	s, err := open(address)
	if err != nil {
		return err
	}
	errs := make(chan error)
	for w := range workers {
		go func() {
			n, err := lastOf(s, w)
			for err == nil {
				n++
				err = childStep(s, w, n)
			}
			errs <- err
		}()
	}
	return <-errs
}

func lastOf(s store.Store, w int) (n int, err error) {
	err = s.View(func(tx store.Tx) error {
		v, err := tx.Get(field(w, 0))
		if err != nil || v == nil {
			return err
		}
		_, err = fmt.Sscanf(string(v), "%d ", &n)
		return err
	})
	return n, err
}

func field(w, i int) string { return fmt.Sprintf("crash/%d/%d", w, i) }

func blobOf(w, n int) string { return fmt.Sprintf("crash-%d-%d", w, n) }

// fieldValue spans pages from time to time.
func fieldValue(n, i int) string {
	return fmt.Sprintf("%d %s", n, strings.Repeat("x", (n*37+i*911)%6000))
}

func blobContent(w, n int) []byte { return randomBytes(uint64(w*1000+n), 1000+(n*7919)%150_000) }

func childStep(s store.Store, w, n int) error {
	err := s.Update(func(tx store.Tx) error {
		for i := range fields {
			if err := tx.Put(field(w, i), []byte(fieldValue(n, i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Println("update", w, n)
	if n%2 != 0 {
		return nil
	}
	wr, err := s.Create(blobOf(w, n))
	if err != nil {
		return err
	}
	for rest := blobContent(w, n); len(rest) > 0; {
		m := min(len(rest), 20_000)
		if _, err := wr.Write(rest[:m]); err != nil {
			return err
		}
		rest = rest[m:]
	}
	if err := wr.Commit(); err != nil {
		return err
	}
	fmt.Println("blob", w, n)
	if n%6 != 0 {
		return nil
	}
	if err := s.Erase(blobOf(w, n)); err != nil {
		return err
	}
	fmt.Println("erased", w, n)
	return nil
}

// acknowledged holds the operations that a child printed.
type acknowledged struct {
	update        [workers]int
	blobs, erased map[string]bool
}

// crash kills a child again and again, each time at another moment of its writing.
func crash(t *testing.T, k kind) {
	address := k(t)
	said := acknowledged{blobs: map[string]bool{}, erased: map[string]bool{}}
	for round := range 5 {
		killChild(t, address, &said)
		s, err := open(address)
		for deadline := time.Now().Add(5 * time.Second); errors.Is(err, store.ErrInUse) && time.Now().Before(deadline); {
			time.Sleep(10 * time.Millisecond) // a server takes a moment to see that its client is dead
			s, err = open(address)
		}
		noError(t, err)
		inspectCrash(t, s, &said)
		noError(t, s.Close())
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	for w, n := range said.update {
		if n == 0 {
			t.Errorf("worker %d came to no update: the test tests nothing", w)
		}
	}
	if len(said.blobs) == 0 {
		t.Error("no blob was written: the test tests nothing")
	}
}

func killChild(t *testing.T, address string, said *acknowledged) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childVar+"="+address)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	noError(t, err)
	noError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	after := 1 + rand.IntN(50) // lines, and a little
	for n := 1; lines.Scan(); n++ {
		if n == after {
			time.AfterFunc(time.Duration(rand.IntN(10_000))*time.Microsecond, func() {
				_ = cmd.Process.Kill() // fails when it ended by itself, which the caller sees
			})
		}
		var what string
		var w, n int
		if _, err := fmt.Sscan(lines.Text(), &what, &w, &n); err != nil {
			continue // cut short
		}
		switch what {
		case "update":
			said.update[w] = n
		case "blob":
			said.blobs[blobOf(w, n)] = true
		case "erased":
			said.erased[blobOf(w, n)] = true
		}
	}
	_ = cmd.Wait() // killed
	if stderr.Len() > 0 {
		t.Fatalf("the child failed: %s", &stderr)
	}
}

// inspectCrash verifies that acknowledged data is stored, and that nothing is torn.
func inspectCrash(t *testing.T, s store.Store, said *acknowledged) {
	t.Helper()
	var now [workers]int
	for w := range workers {
		n, err := lastOf(s, w)
		noError(t, err)
		if now[w] = n; n < said.update[w] || n > said.update[w]+1 {
			t.Errorf("worker %d: update %d was acknowledged, the store has %d", w, said.update[w], n)
		}
		said.update[w] = n
		if n == 0 {
			continue
		}
		noError(t, s.View(func(tx store.Tx) error {
			for i := range fields {
				v, err := tx.Get(field(w, i))
				if err != nil {
					return err
				}
				if string(v) != fieldValue(n, i) {
					t.Errorf("worker %d update %d is torn at record %d", w, n, i)
				}
			}
			return nil
		}))
	}
	names, err := s.Blobs()
	noError(t, err)
	there := map[string]bool{}
	for _, name := range names {
		there[name] = true
		var w, n int
		if _, err := fmt.Sscanf(name, "crash-%d-%d", &w, &n); err != nil || n > now[w] {
			t.Errorf("blob %s is of no update", name)
			continue
		}
		if said.erased[name] {
			t.Errorf("blob %s was erased", name)
		}
		if !said.blobs[name] || n%3 == 0 { // not all of the old ones every time
			inspectBlob(t, s, name, blobContent(w, n))
		}
		said.blobs[name] = true
	}
	for name := range said.blobs {
		var w, n int
		_, err := fmt.Sscanf(name, "crash-%d-%d", &w, &n)
		noError(t, err)
		if n%6 == 0 { // may have been erased without being acknowledged
			if !there[name] {
				said.erased[name] = true
			}
		} else if !there[name] {
			t.Errorf("blob %s is lost", name)
		}
	}
}

func inspectBlob(t *testing.T, s store.Store, name string, wanted []byte) {
	t.Helper()
	b, err := s.Open(name)
	noError(t, err)
	got, err := io.ReadAll(io.NewSectionReader(b, 0, int64(len(wanted))+1))
	if err != nil || !bytes.Equal(got, wanted) {
		t.Errorf("blob %s is torn: %d bytes of %d, %v", name, len(got), len(wanted), err)
	}
	noError(t, b.Close())
}
