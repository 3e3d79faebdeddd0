package coredump

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const childVariable = "LODGE_TEST_COREDUMP"

// TestMain acts as the child process of TestOff if requested: it may disable core dumps, and prints
// the resulting state.
func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "off":
		if err := Off(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fallthrough
	case "on":
		dumpable, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		limits, _ := os.ReadFile("/proc/self/limits")
		fmt.Printf("dumpable %d %v\n%s", dumpable, err, limits)
		_ = syscall.Kill(os.Getpid(), syscall.SIGQUIT) // with GOTRACEBACK=crash the runtime requests a dump
		select {}
	}
	os.Exit(m.Run())
}

// A process that disabled core dumps makes none when it crashes. Its parent and other processes
// still can.
func TestOff(t *testing.T) {
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &before); err != nil {
		t.Fatal(err)
	}
	off := regexp.MustCompile(`Max core file size +0 +0 `)
	for mode, want := range map[string]bool{"off": true, "on": false} {
		cmd := exec.Command(os.Args[0])
		cmd.Dir = t.TempDir()
		cmd.Env = append(os.Environ(), childVariable+"="+mode, "GOTRACEBACK=crash")
		var out bytes.Buffer
		cmd.Stdout = &out
		err := cmd.Run()
		state, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if !ok || !state.Signaled() {
			t.Fatalf("%s: the process did not crash: %v\n%s", mode, err, out.String())
		}
		if got := strings.Contains(out.String(), "dumpable 0 <nil>"); got != want {
			t.Errorf("%s: %s", mode, out.String())
		}
		if got := off.MatchString(out.String()); got != want && before.Max != 0 {
			t.Errorf("%s: %s", mode, out.String())
		}
		if want && state.CoreDump() {
			t.Errorf("%s: a core was dumped", mode)
		}
	}
	var after unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &after); err != nil || after != before {
		t.Errorf("the test's own limit is %v, was %v: %v", after, before, err)
	}
}

// The log contains failures only.
func TestWarn(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	if warn(log, nil); out.Len() > 0 {
		t.Errorf("without a failure: %s", out.String())
	}
	warn(log, errors.New("coredump: limit: not allowed"))
	if text := out.String(); !strings.Contains(text, "level=WARN") || !strings.Contains(text, "not allowed") {
		t.Errorf("%q", text)
	}
}
