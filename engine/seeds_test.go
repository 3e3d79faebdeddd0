package engine_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The rules for seeds: outside tests, sample.Draw makes a source of secrets from crypto/rand's
// Reader. Only the files in this list may call sample.NewSource, which accepts any seed.

// given lists the files or packages that use existing seeds, with reasons.
var given = map[string]string{
	"bench":                           "benchmarks, whose secrets do not matter",
	"engine/ot/base.go":               "expands the keys that base transfers give to two parties",
	"engine/protocol/triple/input.go": "expands the seeds that two parties exchange, each from its sender's source",

	"engine/protocol/threshold/internal/dealing":   "expands the seeds that dealers send, each from its dealer's source",
	"engine/protocol/threshold/bgvdecrypt/zero.go": "expands the seeds that two parties exchange, each from its sender's source",
}

const samplePath = module + "engine/sample"

// misuses returns the violations of the rules for package sample in a file. name is its path in the
// module.
func misuses(name string, file *ast.File) (found []string) {
	if forTests(path.Dir(name)) || strings.HasSuffix(name, "_test.go") || path.Dir(name) == "engine/sample" {
		return nil
	}
	_, listed := given[name]
	if _, dir := given[path.Dir(name)]; dir {
		listed = true
	}
	as := func(wanted string) string {
		for _, i := range file.Imports {
			if p, _ := strconv.Unquote(i.Path.Value); p == wanted {
				if i.Name != nil {
					return i.Name.Name
				}
				return path.Base(p)
			}
		}
		return ""
	}
	sample, random := as(samplePath), as("crypto/rand")
	if sample == "." {
		return []string{name + ": imports sample without its name"}
	}
	selects := func(n ast.Node, pkg, what string) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok || pkg == "" || s.Sel.Name != what {
			return false
		}
		x, ok := s.X.(*ast.Ident)
		return ok && x.Name == pkg
	}
	draws := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if selects(n, sample, "NewSource") && !listed {
			found = append(found, name+": sample.NewSource accepts any seed; use sample.Draw")
		}
		if selects(n, sample, "Draw") {
			draws++
		}
		if c, ok := n.(*ast.CallExpr); ok && selects(c.Fun, sample, "Draw") && len(c.Args) > 0 {
			_, passedOn := c.Args[0].(*ast.Ident) // a parameter; review must check the callers' arguments
			if selects(c.Args[0], random, "Reader") || passedOn && name == "services/session/drive.go" {
				draws--
			}
		}
		return true
	})
	if draws != 0 {
		found = append(found, name+": sample.Draw must be called with crypto/rand's Reader")
	}
	return found
}

func TestSeedLaw(t *testing.T) {
	used, files := map[string]bool{}, 0
	err := fs.WalkDir(os.DirFS(".."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "bin" || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../"+name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		for _, m := range misuses(name, file) {
			t.Error(m)
		}
		for g := range given {
			if (name == g || path.Dir(name) == g) && uses(file, "NewSource") {
				used[g] = true
			}
		}
		return nil
	})
	if err != nil || files < 200 {
		t.Fatalf("%d files: %v", files, err)
	}
	for g := range given {
		if !used[g] {
			t.Errorf("%s does not need to be in the list any more", g)
		}
	}
}

// uses reports whether a file selects this name.
func uses(file *ast.File, name string) (found bool) {
	ast.Inspect(file, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		found = found || ok && s.Sel.Name == name
		return true
	})
	return found
}

func TestSeedLawCatches(t *testing.T) {
	const body = `package p
import (
	%s
	%q
)
func f(random io.Reader) { %s }
`
	for _, c := range []struct {
		name, rand, call string
		found            int
	}{
		{"services/x/x.go", `"crypto/rand"`, `sample.Draw(rand.Reader, "x")`, 0},
		{"services/x/x.go", `r "crypto/rand"`, `sample.Draw(r.Reader, "x")`, 0},
		{"services/x/x.go", `"math/rand"`, `sample.Draw(rand.Reader, "x")`, 1},
		{"services/x/x.go", `"crypto/rand"`, `sample.Draw(random, "x")`, 1},
		{"services/x/x.go", `"crypto/rand"`, `sample.Draw(bytes.NewReader(nil), "x")`, 1},
		{"services/x/x.go", `"crypto/rand"`, `draw := sample.Draw; draw(nil)`, 1},
		{"services/x/x.go", `"crypto/rand"`, `sample.NewSource(nil)`, 1},
		{"services/x/x.go", `"crypto/rand"`, `g := sample.NewSource; g(nil)`, 1},
		{"services/x/x.go", `"crypto/rand"`, `other.NewSource(nil)`, 0},
		{"services/x/x_test.go", `"crypto/rand"`, `sample.NewSource(nil)`, 0},
		{"engine/gbfv/gbfvtest/x.go", `"crypto/rand"`, `sample.NewSource(nil)`, 0},
		{"bench/x.go", `"crypto/rand"`, `sample.NewSource(nil)`, 0},
		{"engine/protocol/triple/input.go", `"crypto/rand"`, `sample.NewSource(nil)`, 0},
		{"engine/protocol/triple/other.go", `"crypto/rand"`, `sample.NewSource(nil)`, 1},
	} {
		file, err := parser.ParseFile(token.NewFileSet(), c.name, fmt.Sprintf(body, c.rand, samplePath, c.call), parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if found := misuses(c.name, file); len(found) != c.found {
			t.Errorf("%s: %s with %s: %v", c.name, c.call, c.rand, slices.Clip(found))
		}
	}
}
