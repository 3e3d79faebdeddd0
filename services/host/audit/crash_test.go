package audit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

const crashDir = "LODGE_AUDIT_CRASH_DIR"

// TestMain also acts as the process that TestKilled kills: it appends until it is killed, and
// prints the acknowledged entries.
func TestMain(m *testing.M) {
	dir := os.Getenv(crashDir)
	if dir == "" {
		os.Exit(m.Run())
	}
	l, err := Open(dir, Options{Party: "alice", FileSize: 20_000})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	var out sync.Mutex
	for range 16 {
		go func() {
			for i := uint64(0); ; i++ {
				h, err := l.Append(Entry{Actor: "mpc", Event: Delivered, Count: i, Note: strings.Repeat("n", int(i%maxNote))})
				if err != nil {
					panic(err)
				}
				out.Lock()
				fmt.Println(h.Hash)
				out.Unlock()
			}
		}()
	}
	select {}
}

// Entries acknowledged before a SIGKILL are in the log, and the log can be continued.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	var known []Hash
	for round := range 8 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), crashDir+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		// The first processes are killed while they open the log, the others after this time from
		// their first entry.
		after, early := time.Duration(40+23*round)*time.Millisecond, round < 3
		var stop *time.Timer
		kill := func() { stop = time.AfterFunc(after, func() { cmd.Process.Kill() }) }
		if early {
			kill()
		}
		before := len(known)
		for {
			text, err := lines.ReadString('\n')
			if stop == nil && err == nil {
				kill()
			}
			if err != nil {
				if err != io.EOF {
					t.Error(err)
				}
				break
			}
			h, err := ParseHash(strings.TrimSpace(text))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			known = append(known, h)
		}
		if stop == nil {
			t.Fatal("it ends by itself, and has logged nothing")
		}
		stop.Stop()
		cmd.Wait() // killed
		l := open(t, dir, Options{Known: known})
		if l.Head().Seq < uint64(len(known)) || !early && len(known) == before {
			t.Errorf("%d acknowledged, head %d", len(known), l.Head().Seq)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
	}
	sum, err := Verify(dir, known...)
	if err != nil || sum.Files < 2 {
		t.Errorf("%+v, %v", sum, err)
	}
	t.Logf("%d acknowledged in 8 lives, %d in the log of %d files", len(known), sum.Entries, sum.Files)
}
