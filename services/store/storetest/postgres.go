// Package storetest runs PostgreSQL servers for tests of stores.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// requireVar makes a missing PostgreSQL a failure.
const requireVar = "LODGE_REQUIRE_POSTGRES"

// Server is a PostgreSQL server that a test runs in a temporary directory, reached by a socket
// there. Its superuser is postgres; stores are to use the role lodge, which may do nothing special,
// in the database lodge.
type Server struct {
	dir     string // data/, socket and log
	bin     string
	process *exec.Cmd
	args    []string
	held    int // the walwriter's pid after HoldWAL
}

var (
	shared struct {
		sync.Mutex
		server *Server
	}
	schemas atomic.Int64
)

// Postgres gives the DSN of a store that nothing is in, on a server that all tests of the package
// share until Main ends it. Without PostgreSQL on the machine the test is skipped, or fails when
// LODGE_REQUIRE_POSTGRES is 1.
func Postgres(t testing.TB) (dsn string, server *Server) {
	t.Helper()
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil {
		shared.server = start(t)
	}
	return shared.server.DSN(), shared.server
}

// NewPostgres starts a server for one test, with further settings as "name=value".
func NewPostgres(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := start(t, settings...)
	t.Cleanup(s.remove)
	return s
}

// Main runs a package's tests and then stops the shared server.
func Main(m *testing.M) {
	code := m.Run()
	stopShared()
	os.Exit(code)
}

func stopShared() {
	shared.Lock()
	defer shared.Unlock()
	if shared.server != nil {
		shared.server.remove()
	}
}

// DSN is that of a new schema.
func (s *Server) DSN() string {
	return fmt.Sprintf("host=%s user=lodge dbname=lodge search_path=t%d", s.Host(), schemas.Add(1))
}

// Host is the directory of the socket.
func (s *Server) Host() string { return s.dir }

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// binaries finds the directory of PostgreSQL's programs.
func binaries(t testing.TB) string {
	t.Helper()
	dirs, err := filepath.Glob("/usr/lib/postgresql/*/bin") // Debian's, which are not on the PATH
	check(t, err)
	for _, dir := range append(dirs, filepath.SplitList(os.Getenv("PATH"))...) {
		complete := true
		for _, program := range []string{"initdb", "postgres", "pg_basebackup"} {
			_, err := os.Stat(filepath.Join(dir, program))
			complete = complete && err == nil
		}
		if complete {
			return dir
		}
	}
	const missing = "PostgreSQL is not installed: no initdb, postgres and pg_basebackup on the PATH " +
		"or in /usr/lib/postgresql/*/bin"
	if os.Getenv(requireVar) == "1" {
		t.Fatal(missing)
	}
	t.Skip(missing + "; set " + requireVar + "=1 to make this a failure")
	return ""
}

// as is whom the server runs as: not root, which PostgreSQL refuses. It dies with the test.
func as() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() != 0 {
		return attr, nil
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		account, err = user.Lookup("nobody")
	}
	if err != nil {
		return nil, err
	}
	uid, uidErr := strconv.ParseUint(account.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(account.Gid, 10, 32)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, errors.Join(uidErr, gidErr)
}

// directory is short, because the path of a socket must be.
func directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "lodge-pg-")
	check(t, err)
	attr, err := as()
	check(t, err)
	if c := attr.Credential; c != nil {
		check(t, os.Chown(dir, int(c.Uid), int(c.Gid)))
	}
	return dir
}

func (s *Server) command(t testing.TB, program string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(filepath.Join(s.bin, program), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "TZ=UTC")
	var err error
	cmd.SysProcAttr, err = as()
	check(t, err)
	return cmd
}

func (s *Server) run(t testing.TB, program string, args ...string) {
	t.Helper()
	if out, err := s.command(t, program, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", program, err, out)
	}
}

func start(t testing.TB, settings ...string) *Server {
	t.Helper()
	s := &Server{bin: binaries(t)}
	s.dir = directory(t)
	s.run(t, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	for _, setting := range append([]string{"max_connections=200", "shared_buffers=32MB"}, settings...) {
		s.args = append(s.args, "-c", setting)
	}
	s.Start(t)
	s.Exec(t, "CREATE ROLE lodge LOGIN")
	s.Exec(t, "CREATE DATABASE lodge OWNER lodge")
	return s
}

// Start starts a server that is stopped, and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	args := append([]string{"-D", s.data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "port=5432"}, s.args...)
	cmd := s.command(t, "postgres", args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	check(t, cmd.Start())
	s.process = cmd
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := s.try("SELECT 1")
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			s.kill(syscall.SIGQUIT)
			t.Fatalf("PostgreSQL does not answer: %v\n%s", err, &log)
		}
	}
}

func (s *Server) kill(signal syscall.Signal) {
	if s.process != nil {
		_ = s.process.Process.Signal(signal) // a server that ended by itself
		if s.held != 0 {
			_ = syscall.Kill(s.held, syscall.SIGKILL) // stopped, it hears nothing else
			s.held = 0
		}
		_ = s.process.Wait() // its status is that of the signal
		s.process = nil
	}
}

// Stop ends sessions and writes everything down.
func (s *Server) Stop() { s.kill(syscall.SIGINT) }

// Crash ends all at once; the next start has to recover.
func (s *Server) Crash() { s.kill(syscall.SIGQUIT) }

// HoldWAL makes that the next Crash, like one of the machine, forgets all that no commit waited
// for: it stops the process that writes WAL in the background. The server needs the settings
// Forgetful.
func (s *Server) HoldWAL(t testing.TB) {
	t.Helper()
	const waits = "SELECT coalesce(wait_event, '') FROM pg_stat_activity WHERE backend_type = 'walwriter'"
	pid, err := strconv.Atoi(s.Query(t, "SELECT pid::text FROM pg_stat_activity WHERE backend_type = 'walwriter'"))
	check(t, err)
	for {
		s.Await(t, waits, "WalWriterMain")
		check(t, syscall.Kill(pid, syscall.SIGSTOP))
		if s.Query(t, waits) == "WalWriterMain" { // idle, and so without locks
			s.held = pid
			return
		}
		check(t, syscall.Kill(pid, syscall.SIGCONT))
	}
}

// Forgetful are settings under which only a commit and the walwriter write WAL, as long as it is
// less than 32 MB.
var Forgetful = []string{"wal_buffers=32MB", "bgwriter_lru_maxpages=0", "autovacuum=off"}

func (s *Server) remove() {
	s.Crash()
	_ = os.RemoveAll(s.dir) // a temporary directory
}

// connect is a session of the superuser.
func (s *Server) connect(ctx context.Context, database string) (*pgx.Conn, error) {
	return pgx.Connect(ctx, fmt.Sprintf("host=%s user=postgres dbname=%s", s.dir, database))
}

func (s *Server) try(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := s.connect(ctx, "postgres")
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, sql)
	return errors.Join(err, conn.Close(ctx))
}

// Exec runs SQL as the superuser.
func (s *Server) Exec(t testing.TB, sql string) {
	t.Helper()
	if err := s.try(sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

// Query gives the one value that the SQL asks for, as the superuser in the database lodge.
func (s *Server) Query(t testing.TB, sql string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	conn, err := s.connect(ctx, "lodge")
	check(t, err)
	var value string
	if err := conn.QueryRow(ctx, sql).Scan(&value); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	check(t, conn.Close(ctx))
	return value
}

// Await waits until a query gives the value.
func (s *Server) Await(t testing.TB, sql, value string) {
	t.Helper()
	var got string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if got = s.Query(t, sql); got == value {
			return
		}
	}
	t.Fatalf("%s: %s, and not %s", sql, got, value)
}

// Standby starts a streaming standby of that application_name, and waits until it follows.
func (s *Server) Standby(t testing.TB, name string) *Server {
	t.Helper()
	standby := s.BaseBackup(t, name)
	standby.Start(t)
	s.Await(t, fmt.Sprintf(`SELECT count(*)::text FROM pg_stat_replication
		WHERE application_name = '%s' AND state = 'streaming'`, name), "1")
	return standby
}

// BaseBackup makes a server that will be a standby of that application_name once it is started.
func (s *Server) BaseBackup(t testing.TB, name string) *Server {
	t.Helper()
	standby := &Server{bin: s.bin, dir: directory(t), args: s.args}
	t.Cleanup(standby.remove)
	standby.run(t, "pg_basebackup", "-D", standby.data(), "-R", "-X", "stream", "-c", "fast", "--no-sync",
		"-d", fmt.Sprintf("host=%s user=postgres application_name=%s", s.dir, name))
	return standby
}

// Backup runs pg_basebackup, with further arguments, until end: so slowly that it does not end by
// itself.
func (s *Server) Backup(t testing.TB, args ...string) (end func()) {
	t.Helper()
	dir := directory(t)
	host := fmt.Sprintf("host=%s user=postgres", s.dir)
	cmd := s.command(t, "pg_basebackup", append([]string{"-D", dir, "-c", "fast", "-r", "32k", "-d", host}, args...)...)
	cmd.SysProcAttr.Setpgid = true // it is two processes
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	check(t, cmd.Start())
	return sync.OnceFunc(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // a server that ended by itself
		_ = cmd.Wait()                                      // killed
		_ = os.RemoveAll(dir)
		if log.Len() > 0 {
			t.Errorf("pg_basebackup: %s", &log)
		}
	})
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
