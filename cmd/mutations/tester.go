package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// What becomes of a mutation.
const (
	caught   = "caught"   // a test failed
	survived = "SURVIVED" // all tests passed: nothing tests this verification
	hung     = "HUNG"     // a test did not end
	broken   = "BROKEN"   // the edit does not apply or does not build: the table is out of date
	unsound  = "UNSOUND"  // the test fails without the mutation too
)

// result is the outcome of one mutation.
type result struct {
	Name, Outcome string
	By            string  // the test that failed first
	Seconds       float64 // including the build
	Detail        string  `json:",omitempty"`
	Protects      string
}

// tester runs mutations in the module at root.
type tester struct {
	root    string
	timeout time.Duration // of the tests of one package
	jobs    int
}

// moduleRoot is the directory of the go.mod above the working directory.
func moduleRoot() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if mod == "" || mod == os.DevNull {
		return "", errors.New("no go.mod here")
	}
	return filepath.Dir(mod), nil
}

// runAll runs the mutations, gives each result to done as it comes, and then makes sure that the tests that failed pass
// when nothing is switched off.
func (t tester) runAll(ctx context.Context, list []mutation, done func(result)) ([]result, error) {
	var (
		mu      sync.Mutex
		wg      sync.WaitGroup
		results = make([]result, len(list))
		by      = map[string][]string{} // tests that failed, by package
		room    = make(chan struct{}, t.jobs)
	)
	for i, m := range list {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			r, pkg := t.run(ctx, m)
			mu.Lock()
			defer mu.Unlock()
			results[i] = r
			if r.Outcome == caught && r.By != "" {
				top, _, _ := strings.Cut(r.By, "/")
				by[pkg] = append(by[pkg], top)
			}
			done(r)
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for pkg, tests := range by {
		slices.Sort(tests)
		tests = slices.Compact(tests)
		out, err := t.goTest(ctx, "", "^("+strings.Join(tests, "|")+")$", pkg)
		if err != nil {
			return nil, err
		}
		if out.failed != "" || out.timedOut || out.build != "" {
			r := result{Name: pkg, Outcome: unsound, By: out.failed, Detail: "fails with every verification on" + out.build}
			done(r)
			results = append(results, r)
		}
	}
	return results, nil
}

// run applies one mutation and runs its tests. It also gives the package of the test that failed.
func (t tester) run(ctx context.Context, m mutation) (result, string) {
	start := time.Now()
	r := result{Name: m.Name, Protects: m.Protects}
	outcome, pkg := t.outcome(ctx, m, &r)
	r.Outcome, r.Seconds = outcome, time.Since(start).Seconds()
	return r, pkg
}

func (t tester) outcome(ctx context.Context, m mutation, r *result) (outcome, pkg string) {
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		r.Detail = err.Error()
		return broken, ""
	}
	defer os.RemoveAll(dir)
	overlay, err := m.overlay(t.root, dir)
	if err != nil {
		r.Detail = err.Error()
		return broken, ""
	}
	out, err := t.goTest(ctx, overlay, m.Run, m.Tests...)
	switch {
	case err != nil:
		r.Detail = err.Error()
		return broken, ""
	case out.build != "":
		r.Detail = out.build
		return broken, ""
	case out.timedOut && !m.Hangs:
		r.Detail = "no end after " + t.timeout.String()
		return hung, ""
	case out.timedOut:
		return caught, ""
	case out.failed == "" && out.passed:
		return survived, ""
	case out.failed == "":
		r.Detail = out.tail
		return broken, ""
	}
	r.By = out.failed
	return caught, out.pkg
}

// verdict is what one run of go test said.
type verdict struct {
	failed, pkg string // the first test that failed, and its package
	build       string // why it did not build
	timedOut    bool
	passed      bool
	tail        string // the end of the output
}

// event is a line of go test -json.
type event struct{ Action, Package, Test, Output string }

// goTest runs the tests of packages that match pattern with an overlay, if any.
func (t tester) goTest(ctx context.Context, overlay, pattern string, packages ...string) (verdict, error) {
	// Without what a debugger needs a test is linked in half the time.
	args := []string{"test", "-json", "-vet=off", "-ldflags=-s -w", "-timeout", t.timeout.String()}
	if overlay != "" {
		args = append(args, "-count=1", "-failfast", "-overlay", overlay)
	}
	if pattern != "" {
		args = append(args, "-run", pattern)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, packages...)...)
	cmd.Dir = t.root
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return verdict{}, ctx.Err()
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return verdict{}, fmt.Errorf("go test: %w", err)
	}
	out := read(stdout.Bytes())
	out.passed = err == nil
	if stdout.Len() == 0 { // go test itself had something to say
		out.build = stderr.String()
	}
	return out, nil
}

// read reads the events of go test.
func read(stdout []byte) (out verdict) {
	lines := bufio.NewScanner(bytes.NewReader(stdout))
	lines.Buffer(nil, 16<<20)
	var said []string
	var running event // the last test that has begun and not ended
	building, crashed := false, false
	for lines.Scan() {
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		switch e.Action {
		case "build-output":
			out.build += e.Output
		case "build-fail":
			building = true
		case "output":
			said = append(said, e.Output)
			if strings.HasPrefix(e.Output, "panic: test timed out after") || strings.HasPrefix(e.Output, "*** Test killed") {
				out.timedOut = true
			}
			crashed = crashed || strings.HasPrefix(e.Output, "panic: ") || strings.HasPrefix(e.Output, "fatal error: ")
		case "run", "cont":
			running = e
		case "fail":
			if e.Test != "" && out.failed == "" {
				out.failed, out.pkg = e.Test, e.Package
			}
		}
	}
	if crashed && out.failed == "" && !out.timedOut { // the whole process, from a goroutine that is not the test's
		out.failed, out.pkg = running.Test, running.Package
	}
	if !building {
		out.build = "" // warnings
	}
	out.tail = strings.Join(said[max(0, len(said)-20):], "")
	return out
}
