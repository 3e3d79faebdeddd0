package rpc

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestErrorReference checks that docs/reference/errors.md describes every code with a meaning and a
// next step, in alphabetical order, and no other code.
func TestErrorReference(t *testing.T) {
	b, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "errors.md"))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Sorted(maps.Keys(grpcCodes))
	if got := describedCodes(string(b)); !slices.Equal(got, want) {
		t.Errorf("docs/reference/errors.md describes %v, the codes are %v", got, want)
	}
	spoiled := strings.Replace(string(b), "\n| `busy` | a limit", "\n| `busy` | | a limit", 1)
	if slices.Equal(describedCodes(spoiled), want) {
		t.Error("a code without a meaning is not noticed")
	}
}

// describedCodes returns the codes of the rows that have a meaning and a next step.
func describedCodes(page string) (list []Code) {
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\| [^|]{10,} \\| [^|]{5,} \\|$").FindAllStringSubmatch(page, -1) {
		list = append(list, Code(row[1]))
	}
	return list
}
