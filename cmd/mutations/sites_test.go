package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// site is a place in the source where somebody is refused.
type site struct {
	file, function string // a method as Receiver.Name
	line           int
	from, to       int // the condition that leads there, as offsets in the file
}

func (s site) key() string { return s.file + " " + s.function }

// guarded are the sources in which every refusal has a marker or an excuse.
var guarded = []struct {
	files  string // a pattern of paths below the root
	refuse []string
}{
	{"engine/protocol/round/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/popk/*.go", []string{"Blame", "Abort", "Malformed", "ErrProof"}},
	{"engine/protocol/keygen/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/maccheck/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/triple/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/verdict/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/ddec/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/masks/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/decrypt/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/bgvkeys/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/bgvdecrypt/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/internal/dealing/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"engine/protocol/threshold/internal/complaint/*.go", []string{"Blame", "Abort", "Malformed"}},
	{"services/session/evidence/*.go", []string{"unproven", "unreadable", "problem"}},
	{"engine/multikey/*.go", []string{"ErrCiphertext", "ErrKeys", "ErrSecret", "ErrSet", "ErrCRS", "ErrOwner", "ErrUnknownKey",
		"ErrParties", "ErrGate", "ErrRotation", "ErrTruncated", "ErrTrailing"}},
	{"engine/codec/*.go", []string{"ErrTruncated", "ErrTrailing", "ErrRange"}},
	{"engine/linear/*.go", []string{"ErrShape", "ErrRange", "ErrNoise", "ErrKeys", "ErrForeign", "ErrCiphertext", "ErrAnswer"}},
}

// sitesOf finds the uses of these names in a file, apart from their declarations, one for each
// condition.
func sitesOf(t *testing.T, file string, names []string) []site {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join(root, file), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	offset := func(p token.Pos) int { return fset.Position(p).Offset }
	var found []site
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || fn.Body == nil || slices.Contains(names, fn.Name.Name) {
			continue
		}
		var path []ast.Node
		ast.Inspect(fn.Body, func(n ast.Node) bool {
			if n == nil {
				path = path[:len(path)-1]
				return true
			}
			path = append(path, n)
			id, ok := n.(*ast.Ident)
			if !ok || !slices.Contains(names, id.Name) || names != nil && !refuses(path) {
				return true
			}
			s := site{file: file, function: functionName(fn), line: fset.Position(n.Pos()).Line}
			s.from, s.to = condition(fn, path, offset)
			if len(found) == 0 || found[len(found)-1].from != s.from {
				found = append(found, s)
			}
			return true
		})
	}
	return found
}

// refuses reports whether the name at the end of a path makes an error there: a literal, a call, or
// an argument of one. Types in signatures and comparisons with errors that others made do not.
func refuses(path []ast.Node) bool {
	for i := len(path) - 2; i >= 0; i-- {
		switch n := path[i].(type) {
		case *ast.SelectorExpr, *ast.UnaryExpr:
			continue
		case *ast.CompositeLit:
			return n.Type == path[i+1]
		case *ast.CallExpr:
			if fun, ok := n.Fun.(*ast.SelectorExpr); ok && (fun.Sel.Name == "Is" || fun.Sel.Name == "As") {
				return false
			}
			return true
		case *ast.ReturnStmt:
			return true
		case *ast.AssignStmt:
			return slices.Contains(n.Rhs, path[i+1].(ast.Expr))
		default:
			return false
		}
	}
	return false
}

// condition is the source of the innermost if or case around the end of a path, or of the function.
func condition(fn *ast.FuncDecl, path []ast.Node, offset func(token.Pos) int) (from, to int) {
	for i := len(path) - 2; i >= 0; i-- {
		switch n := path[i].(type) {
		case *ast.CaseClause:
			return offset(n.Pos()), offset(n.End())
		case *ast.IfStmt:
			if path[i+1] == n.Body {
				return offset(n.Pos()), offset(n.Body.End())
			}
		}
	}
	return offset(fn.Pos()), offset(fn.End())
}

func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	typ := fn.Recv.List[0].Type
	for {
		switch x := typ.(type) {
		case *ast.StarExpr:
			typ = x.X
		case *ast.IndexExpr:
			typ = x.X
		case *ast.Ident:
			return x.Name + "." + fn.Name.Name
		default:
			return fn.Name.Name
		}
	}
}

// Every place where the guarded sources refuse something has a mutation that reaches its condition,
// or an excuse, and every excuse is of a place that needs one.
func TestEveryRefusalIsMarked(t *testing.T) {
	edits := map[string][][2]int{} // by file
	for _, m := range verifications(t) {
		source, err := os.ReadFile(filepath.Join(root, m.File))
		if err != nil {
			t.Fatal(err)
		}
		if _, span, err := switchOff(m.File, string(source), m.Name); err == nil {
			edits[m.File] = append(edits[m.File], span)
		}
	}
	needed := map[string][]int{}
	for _, g := range guarded {
		files, err := filepath.Glob(filepath.Join(root, g.files))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, %v", g.files, err)
		}
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := filepath.Rel(root, path)
			if err != nil {
				t.Fatal(err)
			}
			file = filepath.ToSlash(file)
			for _, s := range sitesOf(t, file, g.refuse) {
				reached := slices.ContainsFunc(edits[file], func(e [2]int) bool { return e[0] < s.to && s.from < e[1] })
				if !reached {
					needed[s.key()] = append(needed[s.key()], s.line)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(needed)) {
		if excused[key] == "" {
			t.Errorf("%s, lines %s: no mutation switches this off, and it has no excuse", key, fmt.Sprint(needed[key]))
		}
	}
	for key := range excused {
		if needed[key] == nil {
			t.Errorf("%s needs no excuse", key)
		}
	}
}

// Every check that can be blamed has a mutation of its own file, or of the package that it is in.
func TestEveryCheckIsMarked(t *testing.T) {
	all := verifications(t)
	var files []string
	for _, pattern := range []string{"engine/protocol/*/*.go", "engine/protocol/threshold/*/*.go"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no protocols", pattern)
		}
		files = append(files, found...)
	}
	checks := 0
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(filepath.Dir(path), "test") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		dir, err := filepath.Rel(root, filepath.Dir(path))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST {
				continue
			}
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					if !strings.HasPrefix(name.Name, "Check") {
						continue
					}
					checks++
					key := filepath.ToSlash(dir) + " " + name.Name
					if len(checked[key]) == 0 {
						t.Errorf("%s: no mutation is noted for this check", key)
					}
					for _, m := range checked[key] {
						if !slices.ContainsFunc(all, func(x mutation) bool { return x.Name == m }) {
							t.Errorf("%s: there is no mutation %s", key, m)
						}
					}
				}
			}
		}
	}
	if checks != len(checked) {
		t.Errorf("%d checks are noted, and there are %d", len(checked), checks)
	}
}
