package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// restarts say how processes that die are started again.
type restarts struct {
	settled time.Duration // what has run for so long has not died quickly
	pause   time.Duration // before the first start, and twice as long after each quick death that follows
	quick   int           // deaths in a row after which a process stays down
}

// devRestarts wait 0.5, 1, 2 and 4 seconds.
var devRestarts = restarts{settled: 30 * time.Second, pause: 500 * time.Millisecond, quick: 5}

// tend starts processes again that die, until ctx is done. It fails when none is left.
func (c *cluster) tend(ctx context.Context, r restarts) error {
	var wg sync.WaitGroup
	for i := range c.procs {
		wg.Go(func() { c.keepUp(ctx, i, r) })
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return errors.New("no process stays up; their logs are in " + c.dir)
}

// keepUp starts process i again when it dies, until ctx is done or it has died quickly too often. Nobody else changes
// the process meanwhile.
func (c *cluster) keepUp(ctx context.Context, i int, r restarts) {
	for quick := 0; ; {
		p := c.procs[i]
		select {
		case <-ctx.Done():
			return
		case <-p.done:
		}
		if quick++; time.Since(p.begun) >= r.settled {
			quick = 1
		}
		if quick >= r.quick {
			c.progress.note("%s, %d times in a row: it stays down, and the others go on; see %s", p.ending(), quick, p.log)
			return
		}
		pause := r.pause << (quick - 1)
		after := ""
		if pause >= time.Second {
			after = " in " + pause.String()
		}
		c.progress.note("%s; starting it again%s", p.ending(), after)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		fresh, err := p.run()
		if err != nil {
			c.progress.note("%s cannot be started: %v", p.name, err)
			p.begun = time.Now()
			continue
		}
		c.procs[i] = fresh
	}
}

// dirLock keeps a directory for this process. The kernel ends it with the process.
type dirLock struct {
	dir *os.File
}

// signature is the file in a locked directory that names the process which has it.
const signature = "dev.pid"

// lockDir makes a directory and locks it. It writes nothing to it: clusters are written to empty directories.
func lockDir(path string) (*dirLock, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	dir, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(dir.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		return &dirLock{dir}, nil
	}
	dir.Close()
	if !errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	who := ""
	if b, err := os.ReadFile(filepath.Join(path, signature)); err == nil {
		who = " (pid " + oneLine(strings.TrimSpace(string(b))) + ")"
	}
	return nil, rpc.Errorf(rpc.Conflict, "use that one, stop it, or name another directory with --dir", "another lodge dev runs on %s%s", path, who)
}

// sign says which process has the directory, for others that want it.
func (l *dirLock) sign() error {
	return os.WriteFile(filepath.Join(l.dir.Name(), signature), fmt.Appendln(nil, os.Getpid()), 0o600)
}

// release unlocks the directory.
func (l *dirLock) release() {
	_ = os.Remove(filepath.Join(l.dir.Name(), signature))
	l.dir.Close()
}
