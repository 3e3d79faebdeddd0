package main

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// verifications gives the mutations of this tree.
func verifications(t *testing.T) []mutation {
	t.Helper()
	all, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var tree = sync.OnceValues(func() ([]mutation, error) { return marked(root) })

func TestParseMarker(t *testing.T) {
	m, err := parseMarker("a/b-c/d [tests=./x,./y] [run=Test[AB]|TestC] [hangs] [drop=s[0] > 1] " +
		"[swap=f(\"]\")=>g(x[1:])] [return=nil, err] [redundant=c says so] the party [1] accepts nonsense")
	if err != nil {
		t.Fatal(err)
	}
	if m.Name != "a/b-c/d" || strings.Join(m.Tests, " ") != "./x ./y" || m.Run != "Test[AB]|TestC" || !m.Hangs ||
		m.Redundant != "c says so" || m.Protects != "the party [1] accepts nonsense" {
		t.Errorf("got %+v", m)
	}
	want := []operator{{"drop", "s[0] > 1", ""}, {"swap", `f("]")`, "g(x[1:])"}, {"return", "", "nil, err"}}
	if len(m.edits) != len(want) {
		t.Fatalf("got %+v", m.edits)
	}
	for i, o := range want {
		if m.edits[i] != o {
			t.Errorf("operator %d is %+v, want %+v", i, m.edits[i], o)
		}
	}
	if m, err = parseMarker("a/b tests=./x run=TestA text"); err != nil || m.Tests[0] != "./x" || m.Run != "TestA" || m.Protects != "text" {
		t.Errorf("bare options: got %+v, %v", m, err)
	}
	for text, want := range map[string]string{
		"":                   "is not a name",
		"Area/name text":     "is not a name",
		"area text":          "is not a name",
		"a/b":                "what goes wrong",
		"a/b [hangs]":        "what goes wrong",
		"a/b [run=] text":    "has no value",
		"a/b [nope=1] text":  "is not an option",
		"a/b [nope] text":    "is not an option",
		"a/b [swap=x] text":  "want swap=",
		"a/b [run=Test text": "no closing bracket",
	} {
		if _, err := parseMarker(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
		}
	}
}

// Each operator gives the text that is expected, which compiles: a condition around the code, or an
// edited copy of the function.
func TestOperators(t *testing.T) {
	for _, c := range []struct{ name, marker, code, want string }{
		{"if", "", "if x < 0 {\n\t\treturn 1\n\t}", "if !lodgeMutated(1) && (x < 0) {\n\t\treturn 1\n\t}"},
		{"if with an init", "", "if y := f(x); y < 0 || y > 5 {\n\t\treturn 1\n\t}",
			"if y := f(x); !lodgeMutated(1) && (y < 0 || y > 5) {\n\t\treturn 1\n\t}"},
		{"else if", "", "", ""},
		{"statement", "", "f(z)", "if !lodgeMutated(1) { f(z) }"},
		{"assignment", "", "x = z", "if !lodgeMutated(1) { x = z }"},
		{"operand of ||", "[drop=z > 1]", "if x < 0 || z > 1 || x > 9 {\n\t\treturn 1\n\t}",
			"if x < 0 || !lodgeMutated(1) && (z > 1) || x > 9 {\n\t\treturn 1\n\t}"},
		{"operand of &&", "[drop=z>1]", "if x < 0 && z > 1 {\n\t\treturn 1\n\t}", "if x < 0 && (lodgeMutated(1) || z > 1) {\n\t\treturn 1\n\t}"},
		{"two operands", "[drop=z > 1] [drop=x > 9]", "if x < 0 || z > 1 || x > 9 {\n\t\treturn 1\n\t}",
			"if x < 0 || !lodgeMutated(1) && (z > 1) || !lodgeMutated(1) && (x > 9) {\n\t\treturn 1\n\t}"},
		{"operand in parentheses", "[drop=z > 1]", "if x < 0 || (z > 1) {\n\t\treturn 1\n\t}",
			"if x < 0 || !lodgeMutated(1) && ((z > 1)) {\n\t\treturn 1\n\t}"},
		{"term", "[drop=z]", "x = x + z", "_ = z; x = x"},
		{"first argument", "[drop=z]", "g(z, x)", "_ = z; g(x)"},
		{"last argument", "[drop=z]", "g(x, z)", "_ = z; g(x)"},
		{"argument that is used elsewhere", "[drop=x]", "g(x, z)", "g(z)"},
		{"element", "[drop=z]", "g([]int{x, z}...)", "_ = z; g([]int{x}...)"},
		{"element with a key", "[drop=B: z]", "_ = pair{A: x, B: z}", "_ = z; _ = pair{A: x}"},
		{"swap", "[swap=z=>0]", "x = z", "_ = z; x = 0"},
		{"swap binds", "[swap=z=>z+1]", "x = 2 * z", "x = 2 * (z+1)"},
		{"swap for two", "[swap=B: z=>A: x, B: 2]", "_ = pair{B: z}", "_ = z; _ = pair{A: x, B: 2}"},
		{"swap of the header first", "[swap=x=>0]", "if x < 0 {\n\t\tx++\n\t}", "if 0 < 0 {\n\t\tx++\n\t}"},
		{"swap in a call over lines", "[swap=g(x,z)=>g(z)]", "g(\n\t\tx,\n\t\tz,\n\t)", "g(z)"},
		{"neighbours", "[drop=z] [drop=5]", "g(x, z, 5)", "_ = z; g(x, )"},
		{"other statement", "[as=x = 4]", "x = z", "_ = z; x = 4"},
		{"return", "[return=2]", "f(z)", "if lodgeMutated(1) { return 2 }; f(z)"},
		{"import", "[swap=strings.Count(\"a\", \"a\")=>0]", "x = strings.Count(\"a\", \"a\")", "x = 0"},
		{"case", "", "", ""},
		{"case with a tag", "", "", ""},
		{"default", "", "", ""},
		{"body of a case", "[as=x = 4]", "", ""},
		{"element alone", "", "", ""},
		{"function", "", "", ""},
	} {
		marker := strings.TrimSpace("//lodge:check a/b "+c.marker) + " it breaks"
		source := "package a\n\nimport \"strings\"\n\nfunc k() { _ = 0 }\n\nfunc h(x int) int {\n\tz := 3\n\t" + marker + "\n\t" + c.code + "\n\treturn x\n}\n"
		want := strings.Replace(source, c.code, c.want, 1)
		if !strings.Contains(c.code, "strings.") {
			source, want = strings.Replace(source, "import \"strings\"\n", "", 1), strings.Replace(want, "import \"strings\"\n", "", 1)
		}
		if !strings.Contains(c.code, "z") {
			source, want = strings.Replace(source, "z := 3", "z := 3; _ = z", 1), strings.Replace(want, "z := 3", "z := 3; _ = z", 1)
		}
		switch c.name {
		case "else if":
			source = "package a\nfunc h(x int) int {\n\tif x < 0 {\n\t\treturn 1\n\t\t" + marker + "\n\t} else if x > 5 {\n\t\treturn 2\n\t}\n\treturn x\n}\n"
			want = strings.Replace(source, "x > 5", "!lodgeMutated(1) && (x > 5)", 1)
		case "case":
			source = "package a\nfunc h(x int) int {\n\tswitch {\n\t" + marker + "\n\tcase x > 5, x < 0:\n\t\treturn 2\n\t}\n\treturn x\n}\n"
			want = strings.Replace(source, "x > 5, x < 0", "!lodgeMutated(1) && (x > 5), !lodgeMutated(1) && (x < 0)", 1)
		case "case with a tag":
			source = "package a\nfunc h(x int) int {\n\tswitch x {\n\t" + marker + "\n\tcase 5:\n\t\treturn 2\n\t}\n\treturn x\n}\n"
			want = strings.Replace(source, "case 5:\n\t\treturn 2", "", 1)
		case "default", "body of a case":
			source = "package a\nfunc h(x int) int {\n\tswitch x {\n\tcase 5:\n\t\treturn 2\n\t" + marker + "\n\tdefault:\n\t\tx++\n\t}\n\treturn x\n}\n"
			if want = strings.Replace(source, "default:\n\t\tx++", "", 1); c.marker != "" {
				want = strings.Replace(source, "default:\n\t\tx++", "default: x = 4", 1)
			}
		case "element alone":
			source = "package a\nvar l = []int{\n\t1,\n\t" + marker + "\n\t2,\n\t3,\n}\n"
			want = strings.Replace(source, "[]int{\n\t1", "lodgePick(lodgeMutated(1), lodgeCopy1, []int{\n\t1", 1)
			want = strings.TrimSuffix(want, "\n") + ")\n\n//line :2:1\nvar lodgeCopy1 = []int{\n\t1,\n\t" + marker + "\n\t3,\n}\n"
		case "function":
			marker = "//lodge:check a/b [return=0] it breaks"
			source = "package a\n\n// h is h.\n//\n" + marker + "\nfunc h(x int) int { return x }\n"
			want = strings.Replace(source, "{ return x", "{ if lodgeMutated(1) { return 0 }; return x", 1)
		}
		if !strings.Contains(want, "lodgeMutated") { // the function that want has is the copy
			line := 1 + strings.Count(source[:strings.Index(source, "func h")], "\n")
			copied := strings.Replace(want[strings.Index(want, "func h"):], "func h", "func lodgeCopy1h", 1)
			want = strings.Replace(source, "func h(x int) int {", "func h(x int) int { if lodgeMutated(1) { return lodgeCopy1h(x) };", 1) +
				fmt.Sprintf("\n//line :%d:1\n%s", line, copied)
		}
		got, span, err := switchOff("a.go", source, "a/b")
		if err != nil || got != want {
			t.Errorf("%s: got %v\n%s\nwant\n%s", c.name, err, got, want)
			continue
		}
		if span[0] < strings.Index(source, marker) || span[1] < span[0] {
			t.Errorf("%s: edits %v", c.name, span)
		}
		rest := "package a\nfunc f(int) int { return 0 }\nfunc g(...int) {}\ntype pair struct{ A, B int }\n"
		p := sources{fset: token.NewFileSet(), declarations: map[string]*ast.File{}, imports: importer.Default()}
		if p.declarations["b.go"], err = parser.ParseFile(p.fset, "b.go", rest, 0); err != nil {
			t.Fatal(err)
		}
		f, err := parser.ParseFile(p.fset, "a.go", got, 0)
		if err == nil {
			err = p.check("a.go", f)
		}
		if err != nil {
			t.Errorf("%s does not compile: %v\n%s", c.name, err, got)
		}
	}
}

// A marker that cannot be applied is an error that says where it is.
func TestMarkersThatAreWrong(t *testing.T) {
	const marker = "//lodge:check a/b"
	function := func(body string) string { return "package a\n\nfunc f(x int) int {\n" + body + "\n\treturn x\n}\n" }
	for _, c := range []struct{ name, source, want string }{
		{"no code below", function("\t" + marker + " it breaks\n\n\tx++"), "a.go:4: a/b: line 5 holds no code"},
		{"behind the code", function("\tx++ " + marker + " it breaks\n\tx++"), "a.go:4:6: a/b: the marker does not begin its line"},
		{"at the end of a block", function("\tif x > 0 {\n\t\tx++\n\t\t" + marker + " it breaks\n\t}"), "holds no code"},
		{"several elements", function("\tx = max(\n\t\t" + marker + " it breaks\n\t\tx, 1)"), "several elements"},
		{"a declaration as a statement", "package a\n\n" + marker + " [as=f()] it breaks\nvar x = 1\n", "as= wants"},
		{"before a declaration", "package a\n\n" + marker + " it breaks\nvar x = 1\n", "only a statement"},
		{"no such expression", function("\t" + marker + " [drop=y] it breaks\n\tx++"), "does not contain y"},
		{"several such expressions", function("\t" + marker + " [drop=x] it breaks\n\tx = x + x"), "contains x 3 times"},
		{"not an expression", function("\t" + marker + " [drop=x:=] it breaks\n\tx++"), "not an expression"},
		{"cannot be dropped", function("\t" + marker + " [drop=x] it breaks\n\tx++"), "use swap="},
		{"overlap", function("\t" + marker + " [swap=x+1=>1] [swap=x+1=>2] it breaks\n\tx = x+1"), "two options"},
		{"no change", function("\t" + marker + " [swap=x+1=>x+1] it breaks\n\tx = x+1"), "changes nothing"},
		{"twice in a file", function("\t" + marker + " it breaks\n\tx++\n\t" + marker + " it breaks\n\tx++"), "already the name of a check at a.go:4"},
		{"unknown group", function("\t" + marker + " [run=@all] it breaks\n\tx++"), "no line //lodge:tests all"},
		{"no name", function("\t//lodge:check it breaks\n\tx++"), "a.go:4"},
		{"group without a pattern", "package a\n\n//lodge:tests all\n", "NAME PATTERN"},
	} {
		dir := t.TempDir()
		write(t, dir, map[string]string{"a.go": c.source})
		if _, err := marked(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.name, err, c.want)
		}
	}
	dir := t.TempDir()
	one := "package a\n\nfunc f() {\n\t" + marker + " it breaks\n\tf()\n}\n"
	write(t, dir, map[string]string{"x/a.go": one, "y/a.go": one})
	if _, err := marked(dir); err == nil || !strings.Contains(err.Error(), "y/a.go:4: a/b is already the name of a check at x/a.go:4") {
		t.Errorf("two packages: got %v", err)
	}
}

// The markers of a module are found with the tests that must fail.
func TestMarked(t *testing.T) {
	dir := t.TempDir()
	const code = "\nfunc f() {\n\t//lodge:check a/NAME OPTIONS it\n\t//  breaks\n\tf()\n}\n"
	file := func(name, options string) string {
		return "package a\n" + strings.NewReplacer("NAME", name, "OPTIONS", options).Replace(code)
	}
	write(t, dir, map[string]string{
		"a.go": file("one", ""), "b/b.go": file("two", "[tests=./c] [run=@all|TestB]"), "b/c.go": "package a\n\n//lodge:tests all TestA|TestC\n",
		"b/b_test.go": file("three", ""), "b/testdata/a.go": file("four", ""), ".git/a.go": file("five", ""),
	})
	all, err := marked(dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("got %+v, %v", all, err)
	}
	if m := all[0]; m.Name != "a/one" || m.File != "a.go" || m.Tests[0] != "./." || m.Protects != "it breaks" {
		t.Errorf("got %+v", m)
	}
	if m := all[1]; m.Name != "a/two" || m.File != "b/b.go" || m.Tests[0] != "./c" || m.Run != "TestA|TestC|TestB" {
		t.Errorf("got %+v", m)
	}
}

// write writes files below a directory.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
