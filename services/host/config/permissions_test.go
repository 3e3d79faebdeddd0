package config

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPermissionsAreDescribed checks that docs/operations/access.md has a row for every permission,
// and no other.
func TestPermissionsAreDescribed(t *testing.T) {
	f, err := parser.ParseFile(token.NewFileSet(), "load.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	ast.Inspect(f, func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Perm") {
			value, err := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, value)
		}
		return true
	})
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "access.md"))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]{10,} \\| (parties|coordinator|parties, coordinator) \\|$").FindAllSubmatch(page, -1) {
		got = append(got, string(row[1]))
	}
	slices.Sort(want)
	slices.Sort(got)
	if len(want) < 10 || !slices.Equal(got, want) {
		t.Errorf("docs/operations/access.md describes the permissions %v, and there are %v", got, want)
	}
}
