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
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Every file compiles with each switch alone and with all of them. go/types checks that in
// milliseconds.
func TestEditsBuild(t *testing.T) {
	files, directories := map[string][]mutation{}, map[string]bool{}
	for _, m := range verifications(t) {
		files[m.File] = append(files[m.File], m)
		directories["./"+path.Dir(m.File)] = true
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
	for _, file := range slices.Sorted(maps.Keys(files)) {
		p, name := packages[modulePath+"/"+path.Dir(file)], path.Base(file)
		if p == nil || p.files[name] == nil {
			t.Errorf("%s: it has markers and does not belong to the build", file)
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		s, err := parseSource(file, text)
		if err != nil {
			t.Error(err)
			continue
		}
		together := map[string]int{}
		for i, m := range files[file] {
			together[m.Name] = i
			if err := p.compiles(s, name, map[string]int{m.Name: 1}); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
		if err := p.compiles(s, name, together); err != nil {
			t.Errorf("%s with all switches: %v", file, err)
		}
	}
}

// compiles returns the errors of a file that has switches for some of its markers.
func (p *sources) compiles(s *source, name string, numbers map[string]int) error {
	edited, err := s.switched(numbers)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(p.fset, name, edited, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	return p.check(name, f)
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
	cmd := exec.Command("go", append([]string{"list", "-deps", "-export", "-json=ImportPath,Dir,Export,GoFiles", "os", "strconv"}, paths...)...)
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

// check returns the type errors of f, which takes the place of the file called name. Of the
// package's other files it reads only the declarations.
func (p *sources) check(name string, f *ast.File) error {
	others := map[string]*ast.File{}
	maps.Copy(others, p.declarations)
	delete(others, name)
	added, err := parser.ParseFile(p.fset, "lodge_mutated.go", fmt.Sprintf(switches, f.Name.Name), 0)
	if err != nil {
		return err
	}
	others["lodge_mutated.go"] = added
	var wrong []error
	config := types.Config{Importer: p.imports, GoVersion: "go1.26", Error: func(err error) {
		if at := err.(types.Error); p.fset.File(at.Pos) == p.fset.File(f.FileStart) { // in others imports are without use
			wrong = append(wrong, err)
		}
	}}
	_, _ = config.Check("edited", p.fset, append(slices.Collect(maps.Values(others)), f), nil)
	return errors.Join(wrong...)
}

// declarations parses a file and removes the bodies of functions where go/types allows that.
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
