package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
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

// Every marker has tests.
func TestMarkersHaveTests(t *testing.T) {
	for _, m := range verifications(t) {
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

// Successive seeds go through all mutations, each share is of the size asked for, and nothing is
// lost between.
func TestSharesCoverAll(t *testing.T) {
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

// A module with checks of every outcome. Switches are nested in others and stand in copied
// functions.
var example = map[string]string{
	"go.mod": "module example\n\ngo 1.26\n",
	"a.go": `package a

import "time"

type set[T comparable] map[T]bool

var known = set[string]{
	//lodge:check a/element [run=TestKnown] one is unknown
	"one": true,
	"two": true,
}

//lodge:check a/has [return=true] [run=TestKnown] everything is known
func (s set[T]) has(x T) bool { return s[x] }

func sum[T int | float64](_ string, all ...T) (s T) {
	for _, x := range all {
		//lodge:check a/addend [swap=x=>1] [run=TestSum] the sum counts
		s += x
	}
	return
}

type empty struct{}

func (empty) add(list *[]int, x int) {
	//lodge:check a/argument [drop=x + 1] [run=TestAdd] numbers get lost
	*list = append(*list, x, x + 1)
}

func Check(x int) bool {
	//lodge:check a/negative [run=TestCheck|TestEnds] negative numbers pass
	if x < 0 {
		//lodge:check a/inner [run=TestInner] minus nine fails
		if x == -9 {
			return true
		}
		return false
	}
	//lodge:check a/crash [run=TestCrashes] 98 passes
	if x == 98 {
		return false
	}
	//lodge:check a/large [run=TestCheck|TestEnds] large numbers pass
	if x > 1000 {
		return false
	}
	//lodge:check a/untested [run=TestNothing] eight passes
	if x == 8 {
		return false
	}
	//lodge:check a/broken [swap=x == 6=>y == 6] [run=TestCheck] six passes
	if x == 6 {
		return false
	}
	for x == 7 {
		//lodge:check a/hung [run=TestEnds] seven never ends
		x++
		//lodge:check a/hangs [hangs] [as=x = 7] [run=TestEnds] seven never ends
		x += 0
		time.Sleep(time.Millisecond)
	}
	return true
}
`,
	"a_test.go": `package a

import (
	"os"
	"os/exec"
	"testing"
)

func TestKnown(t *testing.T) {
	if !known.has("one") || known.has("three") {
		t.Fatal(known)
	}
}

func TestSum(t *testing.T) {
	if sum("", 2, 3) != 5 {
		t.Fatal("not 5")
	}
}

func TestAdd(t *testing.T) {
	var list []int
	if (empty{}).add(&list, 1); len(list) != 2 {
		t.Fatal(list)
	}
}

func TestCheck(t *testing.T) {
	t.Run("negative", func(t *testing.T) {
		if Check(-1) {
			t.Fatal("-1 passes")
		}
	})
}

// TestInner runs the check in another process.
func TestInner(t *testing.T) {
	if os.Getenv("CHILD") != "" {
		if !Check(-9) {
			os.Exit(3)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestInner$")
	cmd.Env = append(os.Environ(), "CHILD=1")
	if err := cmd.Run(); err != nil {
		t.Fatal(err)
	}
}

func TestEnds(t *testing.T) { Check(7) }

func TestCrashes(t *testing.T) {
	done := make(chan bool)
	go func() {
		if Check(98) {
			panic("98 passes")
		}
		close(done)
	}()
	<-done
}

// TestPoor fails without a mutation too.
func TestPoor(t *testing.T) {
	if _, err := os.Stat("missing"); err != nil {
		t.Fatal(err)
	}
}
`,
}

// runExample runs mutations of the example in dir.
func runExample(t *testing.T, dir string, timeout time.Duration, names ...string) []result {
	t.Helper()
	all, err := marked(dir)
	if err != nil {
		t.Fatal(err)
	}
	chosen := filter(all, func(m mutation) bool { return slices.Contains(names, m.Name) })
	var said []string
	results, err := (&tester{root: dir, all: all, timeout: timeout, jobs: 1}).runAll(t.Context(), chosen, func(r result) {
		said = append(said, r.Name)
	})
	if err != nil || len(results) != len(names) || len(said) != len(names) {
		t.Fatalf("got %+v, %v and said %v", results, err, said)
	}
	return results
}

func TestOutcomes(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, example)
	by := map[string]string{
		"a/element": "TestKnown", "a/has": "TestKnown", "a/addend": "TestSum", "a/argument": "TestAdd",
		"a/negative": "TestCheck/negative", "a/inner": "TestInner", "a/crash": "TestCrashes",
	}
	outcomes := map[string]string{"a/large": survived, "a/untested": survived, "a/broken": broken}
	names := slices.Collect(maps.Keys(outcomes))
	for name := range by {
		if outcomes[name] == "" {
			names = append(names, name)
		}
	}
	for range 2 { // the second run begins with the tests that caught a mutation in the first
		results := runExample(t, dir, time.Minute, names...)
		for _, r := range results {
			want := cmp.Or(outcomes[r.Name], caught)
			if r.Outcome != want || r.By != by[r.Name] {
				t.Errorf("%s: %s by %q, want %s by %q: %s", r.Name, r.Outcome, r.By, want, by[r.Name], r.Detail)
			}
			var out bytes.Buffer
			err := conclude(&out, []result{r}, []string{"c/d"}, false)
			if (err == nil) != (want == caught) || !strings.Contains(out.String(), "left out 1: c/d") {
				t.Errorf("says %v and %q", err, &out)
			}
		}
	}
	source, err := os.ReadFile(filepath.Join(dir, "a.go"))
	if err != nil || string(source) != example["a.go"] {
		t.Errorf("the tree has changed: %v", err)
	}
}

// A test that does not end is an error, unless the marker says that it catches the mutation.
func TestHangs(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, example)
	results := runExample(t, dir, 5*time.Second, "a/hung", "a/hangs")
	if results[0].Outcome != hung || results[0].By != "TestEnds" || results[1].Outcome != caught {
		t.Errorf("got %+v", results)
	}
}

// The tests of one package can be those of mutations in several, with several files each.
func TestSeveralPackages(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"go.mod": example["go.mod"]})
	names := []string{}
	uses := "package all\n\nimport (\n\t\"testing\"\n"
	body := ""
	for _, pkg := range []string{"a", "b", "c"} {
		for _, name := range []string{"One", "Two", "Three"} {
			mutation := "x/" + pkg + "/" + strings.ToLower(name)
			names = append(names, mutation)
			write(t, dir, map[string]string{pkg + "/" + name + ".go": "package " + pkg + "\n\nfunc " + name + "(x int) bool {\n" +
				"\t//lodge:check " + mutation + " [tests=./all] zero passes\n\tif x == 0 {\n\t\treturn false\n\t}\n\treturn true\n}\n"})
			body += "\tif " + pkg + "." + name + "(0) {\n\t\tt.Error(0)\n\t}\n"
		}
		uses += "\t\"example/" + pkg + "\"\n"
	}
	write(t, dir, map[string]string{"all/all_test.go": uses + ")\n\nfunc TestAll(t *testing.T) {\n" + body + "}\n"})
	for _, r := range runExample(t, dir, time.Minute, names...) {
		if r.Outcome != caught || r.By != "TestAll" {
			t.Errorf("got %+v", r)
		}
	}
}

// A test that caught a mutation once and no longer does is no reason to skip the others.
func TestKillersAreOnlyFirst(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, example)
	runExample(t, dir, time.Minute, "a/negative")
	file := filepath.Join(dir, killersFile)
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Contains(data, []byte("TestCheck/negative")) {
		t.Fatalf("got %s, %v", data, err)
	}
	for _, text := range []string{strings.Replace(string(data), "TestCheck/negative", "TestEnds", 1), "{"} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if r := runExample(t, dir, time.Minute, "a/negative"); r[0].Outcome != caught || r[0].By != "TestCheck/negative" {
			t.Errorf("got %+v", r)
		}
	}
}

// Tests that fail without a mutation show nothing. Tests that do not compile break all mutations.
func TestSuitesThatFail(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, example)
	write(t, dir, map[string]string{"a.go": strings.Replace(example["a.go"], "[run=TestKnown] one", "one", 1)})
	if r := runExample(t, dir, time.Minute, "a/element", "a/negative"); r[0].Outcome != unsound || r[1].Outcome != unsound || r[0].By != "TestPoor" {
		t.Errorf("got %+v", r)
	}
	write(t, dir, map[string]string{"b_test.go": "package a\n\nvar _ = nothing\n"})
	if r := runExample(t, dir, time.Minute, "a/negative"); r[0].Outcome != broken || !strings.Contains(r[0].Detail, "undefined: nothing") {
		t.Errorf("got %+v", r)
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
