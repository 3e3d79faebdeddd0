package wire

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/kind"
)

// decides lists the files that may decide by the name of one kind, with reasons. The test fails for
// a file that no longer does.
var decides = map[string]string{
	"engine/kind/table.go":        "the table itself",
	"cmd/lodge-bench/protocol.go": "the benchmark measures two kinds",
}

// Code outside the table reads the properties of a kind and never asks which kind it is. Otherwise
// a new kind would have to be added there too. See docs/internals/adding-a-kind.md.
func TestNoCodeDecidesByTheNameOfAKind(t *testing.T) {
	root := filepath.Join("..", "..")
	used := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name != ".." && strings.HasPrefix(name, ".") || name == "bin" || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, ".pb.go") {
			return nil
		}
		file, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, at := range decisions(parsed) {
			if used[file] = true; decides[file] == "" {
				t.Errorf("%s: %v: use a property of the kind's descriptor instead", files.Position(at.Pos()), text(at))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for file := range decides {
		if !used[file] {
			t.Errorf("%s decides by no kind: remove it from the list", file)
		}
	}
}

// decisions lists the names of kinds that are compared, or are cases of a switch or keys of a
// table.
func decisions(file *ast.File) (found []ast.Expr) {
	add := func(list ...ast.Expr) {
		for _, x := range list {
			if named(x) {
				found = append(found, x)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if n.Op == token.EQL || n.Op == token.NEQ {
				add(n.X, n.Y)
			}
		case *ast.CaseClause:
			add(n.List...)
		case *ast.KeyValueExpr:
			add(n.Key)
		}
		return true
	})
	return found
}

// words are names of kinds that also mean other things; as literals they are not looked for.
var words = []string{"input", "bit", "random", "square"}

// named reports whether an expression names one kind: as a string, or as a constant of kind, the
// messages or the tuple files.
func named(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(x.Value)
		return err == nil && kind.Of(s).Known() && !slices.Contains(words, s)
	case *ast.Ident: // in the table
		return kind.Of(strings.ToLower(x.Name)).Known() && ast.IsExported(x.Name) && x.Name == "Scalar"
	case *ast.SelectorExpr:
		from, ok := x.X.(*ast.Ident)
		if !ok {
			return false
		}
		switch from.Name {
		case "jobv1":
			return Kind(Of(strings.ToLower(strings.TrimPrefix(x.Sel.Name, "Kind_KIND_")))).Known()
		case "kind", "tuplefile", "mpspdz":
			return kind.Of(strings.ToLower(strings.TrimSuffix(x.Sel.Name, "Kind"))).Known()
		}
	}
	return false
}

func text(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.BasicLit:
		return x.Value
	case *ast.SelectorExpr:
		return fmt.Sprintf("%v.%s", x.X, x.Sel.Name)
	}
	return fmt.Sprint(x)
}

// Each row decides by one kind, or by none.
func TestDecisions(t *testing.T) {
	for code, want := range map[string]int{
		`switch k { case jobv1.Kind_KIND_MATRIX, jobv1.Kind_KIND_KEYS: }`: 1,
		`if k != kind.Input { }`:                                1,
		`if name == "convolution" { }`:                          1,
		`_ = map[string]int{tuplefile.ConvolutionKind: 1}`:      1,
		`_ = k.Shaped() && k == of(kind.Matrix)`:                0,
		`switch d.Form { case kind.Matrices: }`:                 0,
		`x := kind.Scalar`:                                      0,
		`if k == jobv1.Kind_KIND_MASKS || word == "random" { }`: 0,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "x.go", "package x\nfunc f() {\n"+code+"\n}", 0)
		if err != nil {
			t.Fatal(err)
		}
		if got := decisions(file); len(got) != want {
			t.Errorf("%s: %d decisions, want %d", code, len(got), want)
		}
	}
}
