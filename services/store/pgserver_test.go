package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/storetest"
)

// set changes a setting of a server, and waits until sessions see it.
func set(t testing.TB, s *storetest.Server, name, value string) {
	t.Helper()
	s.Exec(t, fmt.Sprintf("ALTER SYSTEM SET %s = '%s'", name, value))
	s.Exec(t, "SELECT pg_reload_conf()")
	s.Await(t, fmt.Sprintf("SELECT (current_setting('%s') = '%s')::text", name, value), "true")
}

// promote makes a standby a primary.
func promote(t testing.TB, s *storetest.Server) {
	t.Helper()
	s.Exec(t, "SELECT pg_promote()")
	s.Await(t, "SELECT pg_is_in_recovery()::text", "false")
}

// freeze stops the processes of a server until thaw is called.
func freeze(t *testing.T, s *storetest.Server) (thaw func()) {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(s.Host(), "data", "postmaster.pid"))
	must(t, err)
	first, _, _ := bytes.Cut(file, []byte("\n"))
	main, err := strconv.Atoi(string(first))
	must(t, err)
	pids := []int{main}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", main, main))
	must(t, err)
	for _, field := range bytes.Fields(children) {
		pid, err := strconv.Atoi(string(field))
		must(t, err)
		pids = append(pids, pid)
	}
	signal := func(to syscall.Signal) {
		for _, pid := range pids {
			_ = syscall.Kill(pid, to) // a process that ended meanwhile
		}
	}
	signal(syscall.SIGSTOP)
	return sync.OnceFunc(func() { signal(syscall.SIGCONT) })
}
