package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// verdict is the outcome of one run of a test binary.
type verdict struct {
	passed   bool
	failed   string // the first test that failed
	running  string // the last test that began or continued
	timedOut bool
	tail     string // the end of the output
}

// test runs the tests of a suite that match pattern, with one mutation on, or none if number is 0.
func (t *tester) test(ctx context.Context, s *suite, number int, pattern string, limit time.Duration) (verdict, error) {
	// A process that does not react to its own limit is killed.
	ctx, cancel := context.WithTimeout(ctx, limit+20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, s.binary, "-test.v=test2json", "-test.failfast", "-test.paniconexit0",
		"-test.timeout="+limit.String(), "-test.run="+pattern)
	cmd.Dir = filepath.Join(t.root, filepath.FromSlash(s.pkg))
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", variable, number), "PWD="+cmd.Dir)
	// A test that crashes leaves processes behind. They are in its group.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return verdict{}, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) && !errors.Is(err, exec.ErrWaitDelay) {
		return verdict{}, fmt.Errorf("%s: %w", s.pkg, err)
	}
	out := read(said.String())
	out.passed = err == nil
	out.timedOut = out.timedOut || ctx.Err() != nil
	return out, nil
}

// read reads the output of a test binary with -test.v=test2json, which marks the lines of the
// framework with the character 0x16.
func read(said string) (out verdict) {
	crashed := false
	lines := strings.Split(said, "\n")
	for _, line := range lines {
		if i := strings.LastIndexByte(line, 0x16); i >= 0 {
			words := strings.Fields(line[i+1:])
			switch {
			case len(words) < 3:
			case words[0] == "===" && (words[1] == "RUN" || words[1] == "CONT"):
				out.running = words[2]
			case words[0] == "---" && words[1] == "FAIL:" && out.failed == "":
				out.failed = words[2]
			}
			continue
		}
		if strings.HasPrefix(line, "panic: test timed out after") {
			out.timedOut = true
		}
		crashed = crashed || strings.HasPrefix(line, "panic: ") || strings.HasPrefix(line, "fatal error: ") ||
			strings.HasPrefix(line, "SIG")
	}
	if crashed && out.failed == "" && !out.timedOut { // the whole process, from a goroutine that is not the test's
		out.failed = out.running
	}
	out.tail = strings.Join(lines[max(0, len(lines)-20):], "\n")
	return out
}

// exactly is a pattern that matches one test or subtest.
func exactly(test string) string {
	parts := strings.Split(test, "/")
	for i, p := range parts {
		parts[i] = "^" + regexp.QuoteMeta(p) + "$"
	}
	return strings.Join(parts, "/")
}
