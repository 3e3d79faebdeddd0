package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// Outcomes of a mutation.
const (
	caught   = "caught"   // a test failed
	survived = "SURVIVED" // all tests passed: nothing tests this check
	hung     = "HUNG"     // a test did not end
	broken   = "BROKEN"   // the edit or the tests do not compile
	unsound  = "UNSOUND"  // the tests fail without the mutation too
)

// result is the outcome of one mutation.
type result struct {
	Name, Outcome string
	By            string  // the test that failed first
	Seconds       float64 // without the build
	Detail        string  `json:",omitempty"`
	Protects      string
}

// tester runs mutations in the module at root.
type tester struct {
	root    string
	all     []mutation    // of the module: a test binary has switches for all that its package must catch
	timeout time.Duration // of the tests of one package
	jobs    int

	dir     string // for binaries and overlays
	suites  map[string]*suite
	mu      sync.Mutex
	killers map[string]killer // by mutation.key: the test that caught a mutation in an earlier run
}

// killer is a test that caught a mutation.
type killer struct{ Package, Test string }

// suite is the test binary of a package.
type suite struct {
	pkg      string
	numbered map[int]mutation // the mutations that have a switch in the binary
	patterns []string         // the tests that the chosen mutations run
	prepare  func() error

	binary  string
	broken  map[int]string // why mutations do not compile
	unsound *verdict       // the tests fail without a mutation
	hangs   time.Duration  // a time in which the tests end if no mutation makes them hang
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

// runAll runs the mutations and passes each result to done as it comes.
func (t *tester) runAll(ctx context.Context, list []mutation, done func(result)) ([]result, error) {
	var err error
	if t.dir, err = os.MkdirTemp("", "mutations"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(t.dir)
	t.loadKillers()
	defer t.saveKillers()
	t.plan(ctx, list)
	var (
		wg      sync.WaitGroup
		results = make([]result, len(list))
		room    = make(chan struct{}, t.jobs)
	)
	for i, m := range list {
		room <- struct{}{}
		wg.Go(func() {
			defer func() { <-room }()
			r := t.run(ctx, m)
			t.mu.Lock()
			defer t.mu.Unlock()
			results[i] = r
			if ctx.Err() == nil {
				done(r)
			}
		})
	}
	wg.Wait()
	return results, ctx.Err()
}

// plan notes which packages' tests are needed. They are built when the first mutation runs them.
func (t *tester) plan(ctx context.Context, list []mutation) {
	t.suites = map[string]*suite{}
	for _, m := range list {
		for _, pkg := range m.Tests {
			s := t.suites[pkg]
			if s == nil {
				s = &suite{pkg: pkg, numbered: map[int]mutation{}, binary: filepath.Join(t.dir, fmt.Sprintf("%d.test", len(t.suites)))}
				s.prepare = sync.OnceValue(func() error { return t.prepare(ctx, s) })
				t.suites[pkg] = s
			}
			s.patterns = append(s.patterns, m.Run)
		}
	}
	for i, m := range t.all {
		for _, pkg := range m.Tests {
			if s := t.suites[pkg]; s != nil {
				s.numbered[i+1] = m
			}
		}
	}
}

// prepare builds the binary and runs the tests without a mutation.
func (t *tester) prepare(ctx context.Context, s *suite) (err error) {
	if s.broken, err = t.build(ctx, s.pkg, s.binary, s.numbered); err != nil {
		return err
	}
	pattern := ""
	if !slices.Contains(s.patterns, "") {
		slices.Sort(s.patterns)
		pattern = strings.Join(slices.Compact(s.patterns), "|")
	}
	start := time.Now()
	out, err := t.test(ctx, s, 0, pattern, t.timeout)
	if err != nil {
		return err
	}
	if !out.passed {
		s.unsound = &out
	}
	// The other jobs and the rest of the machine may be less idle than now.
	s.hangs = min(t.timeout, 30*time.Second+5*time.Since(start))
	return nil
}

// run runs the tests of one mutation.
func (t *tester) run(ctx context.Context, m mutation) result {
	r := result{Name: m.Name, Protects: m.Protects}
	for _, pkg := range m.Tests {
		if err := t.suites[pkg].prepare(); err != nil {
			r.Outcome, r.Detail = broken, err.Error()
			return r
		}
	}
	start := time.Now()
	t.outcome(ctx, m, &r)
	r.Seconds = time.Since(start).Seconds()
	return r
}

func (t *tester) outcome(ctx context.Context, m mutation, r *result) {
	number := slices.IndexFunc(t.all, func(x mutation) bool { return x.Name == m.Name }) + 1
	t.mu.Lock()
	known := t.killers[m.key()]
	t.mu.Unlock()
	type attempt struct {
		s       *suite
		pattern string
	}
	var attempts []attempt
	if s := t.suites[known.Package]; s != nil && slices.Contains(m.Tests, known.Package) {
		attempts = append(attempts, attempt{s, exactly(known.Test)})
	}
	for _, pkg := range m.Tests {
		attempts = append(attempts, attempt{t.suites[pkg], m.Run})
	}
	for _, a := range attempts {
		if a.s.unsound != nil {
			r.Outcome, r.By = unsound, a.s.unsound.failed
			r.Detail = "the tests of " + a.s.pkg + " fail with every check on\n" + a.s.unsound.tail
			return
		}
		if reason, ok := a.s.broken[number]; ok {
			r.Outcome, r.Detail = broken, reason
			return
		}
		limit := t.timeout
		if m.Hangs {
			limit = a.s.hangs
		}
		out, err := t.test(ctx, a.s, number, a.pattern, limit)
		switch {
		case err != nil:
			r.Outcome, r.Detail = broken, err.Error()
			return
		case out.timedOut && !m.Hangs:
			r.Outcome, r.By, r.Detail = hung, out.running, "no end after "+limit.String()
			return
		case out.timedOut:
			r.Outcome = caught
			return
		case !out.passed && out.failed == "":
			r.Outcome, r.Detail = broken, out.tail
			return
		case !out.passed:
			r.Outcome, r.By = caught, out.failed
			t.mu.Lock()
			t.killers[m.key()] = killer{a.s.pkg, out.failed}
			t.mu.Unlock()
			return
		}
	}
	r.Outcome = survived
}

// key identifies a mutation with its tests.
func (m mutation) key() string {
	return m.Name + " " + strings.Join(m.Tests, ",") + " " + m.Run
}

// killersFile keeps what caught each mutation, below the root.
const killersFile = "bin/mutations.json"

// loadKillers reads what caught each mutation. That file only saves time, so a damaged one does not
// matter.
func (t *tester) loadKillers() {
	t.killers = map[string]killer{}
	data, err := os.ReadFile(filepath.Join(t.root, killersFile))
	if err != nil || json.Unmarshal(data, &t.killers) != nil {
		t.killers = map[string]killer{}
	}
}

func (t *tester) saveKillers() {
	keep := map[string]bool{}
	for _, m := range t.all {
		keep[m.key()] = true
	}
	maps.DeleteFunc(t.killers, func(key string, _ killer) bool { return !keep[key] })
	data, err := json.MarshalIndent(t.killers, "", "\t")
	if err != nil {
		return
	}
	file := filepath.Join(t.root, killersFile)
	if os.MkdirAll(filepath.Dir(file), 0o750) == nil {
		_ = os.WriteFile(file, data, 0o600)
	}
}
