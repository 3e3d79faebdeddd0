package try

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// devRestarts waits 0.5, 1, 2 and 4 seconds.
var devRestarts = cluster.Restarts{Settled: 30 * time.Second, Pause: 500 * time.Millisecond, Quick: 5}

// dirLock locks a directory for this process. The kernel releases it when the process ends.
type dirLock struct {
	dir *os.File
}

// signature is the file in a locked directory that holds the process id of the owner.
const signature = "dev.pid"

// lockDir makes a directory and locks it. It writes no file, because clusters are written to empty
// directories.
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
		who = " (pid " + cli.OneLine(strings.TrimSpace(string(b))) + ")"
	}
	return nil, rpc.Errorf(rpc.Conflict, "use that one, stop it, or name another directory with --dir", "another lodge dev runs on %s%s", path, who)
}

// sign writes the process id of the owner, for the error of another process.
func (l *dirLock) sign() error {
	return os.WriteFile(filepath.Join(l.dir.Name(), signature), fmt.Appendln(nil, os.Getpid()), 0o600)
}

// release unlocks the directory.
func (l *dirLock) release() {
	_ = os.Remove(filepath.Join(l.dir.Name(), signature))
	l.dir.Close()
}
