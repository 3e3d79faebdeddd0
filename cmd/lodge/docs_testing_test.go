package main

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Every test that docs/testing.md names exists, and every fuzz target of the tree is named there.
func TestTestingDocument(t *testing.T) {
	root := filepath.Join("..", "..")
	text, err := os.ReadFile(filepath.Join(root, "docs", "testing.md"))
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

// checkTestingDocument says what is wrong with the document. Tests are named by the last element of their package's
// directory, `popk.TestX`; fuzz targets in a row that begins with the directory.
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
			problems = append(problems, name+" is not in docs/testing.md")
		}
	}
	return problems
}
