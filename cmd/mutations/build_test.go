package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every edit leaves a file that builds, which go/types finds out in milliseconds: what does not build, no test can miss.
func TestEditsBuild(t *testing.T) {
	directories := map[string]bool{}
	for _, m := range verifications(t) {
		directories["./"+filepath.ToSlash(filepath.Dir(m.File))] = true
	}
	packages, err := load(slices.Sorted(maps.Keys(directories)))
	if err != nil {
		t.Fatal(err)
	}
	for path, p := range packages {
		for name, f := range p.files {
			if err := p.check(name, f); err != nil {
				t.Fatalf("%s without an edit: %v", path, err)
			}
		}
	}
	for _, m := range verifications(t) {
		p := packages[modulePath+"/"+filepath.ToSlash(filepath.Dir(m.File))]
		name := filepath.Base(m.File)
		if p == nil || p.files[name] == nil {
			t.Errorf("%s: %s is not built here", m.Name, m.File)
			continue
		}
		source, err := os.ReadFile(filepath.Join(root, m.File))
		if err != nil {
			t.Fatal(err)
		}
		edited, err := m.apply(string(source))
		if err != nil {
			continue // as TestTableIsOfThisTree says
		}
		f, err := parser.ParseFile(p.fset, name, edited, parser.SkipObjectResolution)
		if err != nil {
			continue
		}
		if err := p.check(name, f); err != nil {
			t.Errorf("%s: %v", m.Name, err)
		}
	}
}

// An edit that does not build is found.
func TestUnbuildableEdits(t *testing.T) {
	for source, ok := range map[string]bool{
		"package a\nfunc f(l []int) {\n\tfor i := range l {\n\t\t_ = i\n\t}\n}": true,
		"package a\nfunc f(l []int) {\n\tfor i := range l {\n\t}\n}":            false,
		"package a\nimport \"fmt\"":                                             false,
	} {
		p := sources{fset: token.NewFileSet(), imports: importer.Default()}
		f, err := parser.ParseFile(p.fset, "a.go", source, 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.check("a.go", f); (err == nil) != ok {
			t.Errorf("%q: %v", source, err)
		}
	}
}

const modulePath = "github.com/lodge-mpc/lodge"

// sources are those of a package.
type sources struct {
	fset         *token.FileSet
	files        map[string]*ast.File // by name
	declarations map[string]*ast.File
	imports      types.Importer
}

// load reads the packages at the paths, relative to the root of the module, by their import paths.
func load(paths []string) (map[string]*sources, error) {
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles"}, paths...)...)
	cmd.Dir = root
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, &problems)
	}
	fset := token.NewFileSet()
	exports, packages := map[string]string{}, map[string]*sources{}
	imports := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var listed struct {
			ImportPath, Dir, Export string
			GoFiles                 []string
		}
		if err := decoder.Decode(&listed); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		exports[listed.ImportPath] = listed.Export
		if !slices.Contains(paths, "."+strings.TrimPrefix(listed.ImportPath, modulePath)) {
			continue
		}
		p := &sources{fset: fset, files: map[string]*ast.File{}, declarations: map[string]*ast.File{}, imports: imports}
		for _, name := range listed.GoFiles {
			path := filepath.Join(listed.Dir, name)
			if p.files[name], err = parser.ParseFile(fset, path, nil, parser.SkipObjectResolution); err != nil {
				return nil, err
			}
			if p.declarations[name], err = declarations(fset, path); err != nil {
				return nil, err
			}
		}
		packages[listed.ImportPath] = p
	}
}

// check says what does not build of a file when it is f. Of the package's other files it reads what they declare.
func (p *sources) check(name string, f *ast.File) error {
	others := map[string]*ast.File{}
	maps.Copy(others, p.declarations)
	delete(others, name)
	var wrong []error
	config := types.Config{Importer: p.imports, GoVersion: "go1.26", Error: func(err error) {
		if at := err.(types.Error); p.fset.File(at.Pos) == p.fset.File(f.FileStart) { // in others imports are without use
			wrong = append(wrong, err)
		}
	}}
	_, _ = config.Check("edited", p.fset, append(slices.Collect(maps.Values(others)), f), nil)
	return errors.Join(wrong...)
}

// declarations of a file are without what its functions do, but for those that must say it.
func declarations(fset *token.FileSet, path string) (*ast.File, error) {
	f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Type.TypeParams == nil && fn.Name.Name != "init" && fn.Name.Name != "main" {
			fn.Body = nil
		}
	}
	return f, nil
}
