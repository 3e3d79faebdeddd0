package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedFigure is a row of a table with a benchmark's name, and a figure beside it.
var namedFigure = regexp.MustCompile("(?m)^\\|.*`([a-z0-9]+_[a-z0-9_]+)`.*\\|.*[0-9].*\\|$")

// TestFiguresStandInOnePlace checks that no page except docs/measurements/benchmarks.md repeats a
// measured figure by its name, and that the benchmarks have every name that a page mentions.
func TestFiguresStandInOnePlace(t *testing.T) {
	root := filepath.Join("..", "..")
	measured := measuredFigures(t)
	if len(measured) < 200 {
		t.Fatalf("docs/measurements/benchmarks.json has %d figures", len(measured))
	}
	mentioned := 0
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".md") || strings.HasSuffix(file, "benchmarks.md") {
			return err
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		for _, m := range namedFigure.FindAllStringSubmatch(string(text), -1) {
			if _, ok := measured[m[1]]; ok {
				t.Errorf("%s repeats the figure of %s", file, m[1])
			}
		}
		for _, m := range regexp.MustCompile("`((?:scalar|matrix|linear_vector|popk|multikey_memory|multikey_nand)_[a-z0-9_]+)`").FindAllStringSubmatch(string(text), -1) {
			mentioned++
			if _, ok := measured[m[1]]; !ok {
				t.Errorf("%s mentions %s, which the benchmarks do not have", file, m[1])
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if mentioned < 6 {
		t.Errorf("%d figures are mentioned", mentioned)
	}
}
