package main

import (
	"bytes"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// root is that of the module, whose tests run in the directory of their package.
const root = "../.."

// The text of every edit is where the table says, the edited source is Go, and there are tests to miss it.
func TestTableIsOfThisTree(t *testing.T) {
	name := regexp.MustCompile(`^[a-z0-9-]+(/[a-z0-9-]+)+$`)
	seen := map[string]bool{}
	for _, m := range verifications(t) {
		if !name.MatchString(m.Name) || seen[m.Name] {
			t.Errorf("%q is no name, or of two mutations", m.Name)
		}
		seen[m.Name] = true
		if m.Protects == "" || !m.marked && m.Old == m.New {
			t.Errorf("%s says not what it protects, or changes nothing", m.Name)
		}
		source, err := os.ReadFile(filepath.Join(root, m.File))
		if err != nil {
			t.Fatal(err)
		}
		edited, err := m.apply(string(source))
		if err != nil {
			t.Error(err)
			continue
		}
		if _, err := parser.ParseFile(token.NewFileSet(), m.File, edited, 0); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
		pattern, err := regexp.Compile(m.Run)
		if err != nil {
			t.Errorf("%s: %v", m.Name, err)
			continue
		}
		for _, pkg := range m.Tests {
			if !slices.ContainsFunc(testsOf(t, pkg), pattern.MatchString) {
				t.Errorf("%s: no test of %s matches %q", m.Name, pkg, m.Run)
			}
		}
	}
}

var tests = map[string][]string{} // by package

// testsOf lists the tests and fuzz targets of a package.
func testsOf(t *testing.T, pkg string) []string {
	t.Helper()
	if list, ok := tests[pkg]; ok {
		return list
	}
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	list := []string{}
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && fn.Recv == nil && (strings.HasPrefix(fn.Name.Name, "Test") || strings.HasPrefix(fn.Name.Name, "Fuzz")) {
				list = append(list, fn.Name.Name)
			}
		}
	}
	tests[pkg] = list
	return list
}

// An edit whose text has gone, or is there twice, is an error.
func TestEditsApplyOnce(t *testing.T) {
	m := mutation{Name: "x/y", File: "f.go", Old: "if bad {", New: "if false {"}
	for source, ok := range map[string]bool{"if bad {}": true, "if worse {}": false, "if bad {} if bad {}": false} {
		if edited, err := m.apply(source); (err == nil) != ok || ok && edited != "if false {}" {
			t.Errorf("%q becomes %q, %v", source, edited, err)
		}
	}
}

// Successive seeds go through all mutations, each share is of the size asked for, and nothing is lost between.
func TestSharesCoverTheTable(t *testing.T) {
	all := verifications(t)
	for _, count := range []int{1, 7, len(all) - 1, len(all), 0} {
		ran := map[string]bool{}
		shares := 1
		if count > 0 {
			shares = (len(all) + count - 1) / count
		}
		for seed := range uint64(shares) {
			chosen, left := share(all, count, 1000*uint64(shares)+seed)
			if len(chosen)+len(left) != len(all) || count > 0 && len(chosen) > count {
				t.Fatalf("a share of %d has %d and leaves %d of %d", count, len(chosen), len(left), len(all))
			}
			for _, m := range chosen {
				ran[m.Name] = true
			}
		}
		if len(ran) != len(all) {
			t.Errorf("%d shares of %d run %d of %d", shares, count, len(ran), len(all))
		}
	}
}

// A module with a check that a test sees, one that no test sees, and one without which a test does not end.
var example = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"a.go": `package a

func Check(x int) bool {
	if x < 0 {
		return false
	}
	if x > 1000 {
		return false
	}
	for x == 7 {
		x++
	}
	return true
}
`,
	"a_test.go": `package a

import (
	"os"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Run("negative", func(t *testing.T) {
		if Check(-1) {
			t.Fatal("-1 passes")
		}
	})
}

func TestEnds(t *testing.T) { Check(7) }

func TestCrashes(t *testing.T) {
	done := make(chan bool)
	go func() {
		if Check(-2) {
			panic("-2 passes")
		}
		close(done)
	}()
	<-done
}

// TestPoor fails whatever is done to Check.
func TestPoor(t *testing.T) {
	if _, err := os.Stat("missing"); err != nil {
		t.Fatal(err)
	}
}
`,
}

func TestOutcomes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, example)
	const slow = time.Hour
	for _, c := range []struct {
		name, old, new, run string
		hangs               bool
		timeout             time.Duration
		want                []string // the second outcome is of the tests without the mutation
		by                  string
	}{
		{name: "caught", old: "x < 0", new: "false", run: "TestCheck|TestEnds", want: []string{caught}, by: "TestCheck/negative"},
		{name: "crashed", old: "x < 0", new: "false", run: "TestCrashes", want: []string{caught}, by: "TestCrashes"},
		{name: "survived", old: "x > 1000", new: "false", run: "TestCheck|TestEnds", want: []string{survived}},
		{name: "no test", old: "x < 0", new: "false", run: "TestNothing", want: []string{survived}},
		{name: "moved on", old: "x < -1", new: "false", run: "TestCheck", want: []string{broken}},
		{name: "does not build", old: "x < 0", new: "y < 0", run: "TestCheck", want: []string{broken}},
		{name: "hung", old: "x++", new: "x += 0", run: "TestEnds", timeout: time.Second, want: []string{hung}},
		{name: "may hang", old: "x++", new: "x += 0", run: "TestEnds", hangs: true, timeout: time.Second, want: []string{caught}},
		{name: "fails anyway", old: "x < 0", new: "false", run: "TestPoor", want: []string{caught, unsound}, by: "TestPoor"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.timeout == 0 {
				c.timeout = slow
			}
			m := mutation{Name: "a/b", File: "a.go", Old: c.old, New: c.new, Tests: []string{"."}, Run: c.run, Hangs: c.hangs}
			var said []string
			results, err := tester{root: dir, timeout: c.timeout, jobs: 1}.runAll(context.Background(), []mutation{m}, func(r result) {
				said = append(said, r.Outcome)
			})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(said, c.want) || len(results) != len(c.want) || results[0].By != c.by {
				t.Fatalf("got %+v", results)
			}
			var out bytes.Buffer
			err = conclude(&out, results, []string{"c/d"}, false)
			if (err == nil) != (len(c.want) == 1 && c.want[0] == caught) || !strings.Contains(out.String(), "left out 1: c/d") {
				t.Errorf("says %v and %q", err, &out)
			}
		})
	}
	source, err := os.ReadFile(filepath.Join(dir, "a.go"))
	if err != nil || string(source) != example["a.go"] {
		t.Errorf("the tree has changed: %v", err)
	}
}

// What is listed names every verification; asking for what makes no sense runs nothing.
func TestCommand(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), []string{"-list"}, &out); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(out.String(), "\n"); lines != len(verifications(t)) {
		t.Errorf("lists %d of %d", lines, len(verifications(t)))
	}
	for _, args := range [][]string{{"-run", "("}, {"-count", "many"}, {"-nonsense"}} {
		if err := run(context.Background(), args, &out); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); errors.Is(err, fs.ErrNotExist) {
		t.Error("there is no module where the tests look for one")
	}
}
