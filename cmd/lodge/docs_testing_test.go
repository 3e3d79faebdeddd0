package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every test that docs/internals/testing.md names exists, and every fuzz target of the tree is
// named there.
func TestTestingDocument(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "internals", "testing.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]bool{} // "DIR.Name"
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(\w+ \*testing\.[TF]\) `)
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || file == filepath.Join(root, "bin")) {
			return fs.SkipDir // as Go does, and what was built
		}
		if err != nil || !strings.HasSuffix(file, "_test.go") {
			return err
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		dir, err := filepath.Rel(root, filepath.Dir(file))
		for _, m := range declared.FindAllSubmatch(source, -1) {
			tests[filepath.ToSlash(dir)+"."+string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	problems := checkTestingDocument(string(text), tests)
	for _, p := range problems {
		t.Error(p)
	}
	if len(tests) < 100 {
		t.Errorf("%d tests were found in the tree", len(tests))
	}
	// A name that does not exist, and a target that is missing, are noticed.
	spoiled := strings.NewReplacer("popk.TestReplayIsRefused", "popk.TestReplayIsAccepted", "`FuzzDeliver`", "").Replace(string(text))
	if got := checkTestingDocument(spoiled, tests); len(got) != len(problems)+2 {
		t.Errorf("a spoiled document has the problems %q", got)
	}
}

// checkTestingDocument says what is wrong with the document. Tests are named by the last element of
// their package's directory, `popk.TestX`; fuzz targets in a row that begins with the directory.
func checkTestingDocument(text string, tests map[string]bool) (problems []string) {
	short := map[string]bool{}
	for name := range tests {
		short[path.Base(name)] = true
	}
	cheats := 0
	for _, m := range regexp.MustCompile("`([a-z0-9]+\\.(?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(text, -1) {
		cheats++
		if !short[m[1]] {
			problems = append(problems, m[1]+" does not exist")
		}
	}
	if cheats < 30 {
		problems = append(problems, fmt.Sprintf("%d tests are named", cheats))
	}
	named := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+)` \\|(.*)$").FindAllStringSubmatch(text, -1) {
		for _, m := range regexp.MustCompile("`(Fuzz\\w+)`").FindAllStringSubmatch(row[2], -1) {
			name := row[1] + "." + m[1]
			named[name] = true
			if !tests[name] {
				problems = append(problems, name+" does not exist")
			}
		}
	}
	for name := range tests {
		if strings.Contains(name, ".Fuzz") && !named[name] {
			problems = append(problems, name+" is not in docs/internals/testing.md")
		}
	}
	return problems
}

// Every test of which a part is left out every day is one of those that make slow runs whole, but
// for those that have a command of their own.
func TestLongTestsAreRun(t *testing.T) {
	root := filepath.Join("..", "..")
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(makefile), "\\\n", "")
	value := func(name string) string {
		_, rest, _ := strings.Cut(text, "\n"+name+" := ")
		line, _, _ := strings.Cut(rest, "\n")
		return line
	}
	names, packages := regexp.MustCompile(value("LONG")), strings.Fields(value("LONGPKG"))
	own := map[string]bool{"engine/protocol/cheattest": true, "e2e/byzantine": true, "services/internal/histories": true, "engine/longtest": true}
	declared := regexp.MustCompile(`(?m)^func (\w+)\(`)
	found := 0
	for _, top := range []string{"engine", "services", "e2e", "clients", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(file string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(file, "_test.go") || strings.HasSuffix(file, "docs_testing_test.go") {
				return err
			}
			source, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			rel, _ := filepath.Rel(root, filepath.Dir(file))
			dir := filepath.ToSlash(rel)
			for rest := string(source); ; {
				before, after, more := strings.Cut(rest, "longtest.Run(")
				if !more || own[dir] {
					return nil
				}
				list := declared.FindAllStringSubmatch(string(source[:len(source)-len(after)]), -1)
				name := list[len(list)-1][1]
				found++
				if !slices.Contains(packages, "./"+dir) {
					t.Errorf("%s has long tests and is not in LONGPKG", dir)
				}
				if !names.MatchString(strings.ToUpper(name[:1]) + name[1:]) {
					t.Errorf("LONG has no pattern for %s.%s", dir, name)
				}
				_, rest = before, after
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 15 {
		t.Errorf("%d tests have long parts", found)
	}
}
