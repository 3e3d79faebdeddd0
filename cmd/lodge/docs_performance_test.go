package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every figure that docs/performance.md quotes by name is the one in docs/benchmarks.md.
func TestPerformanceQuotesTheBenchmarks(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	measured := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| .* \\| `(\\w+)` \\| ([^|]*) \\| ([^|]*) \\| [^|]* \\|$").FindAllStringSubmatch(read("benchmarks.md"), -1) {
		measured[m[1]], measured[m[1]+" lattigo"] = m[2], m[3]
	}
	quoted := 0
	for _, m := range regexp.MustCompile("(?m)^\\| .* \\| ([^|]*) \\| `(\\w+)`( against Lattigo)? \\|$").FindAllStringSubmatch(read("performance.md"), -1) {
		name := m[2]
		if m[3] != "" {
			name += " lattigo"
		}
		if want, ok := measured[name]; !ok || m[1] != want {
			t.Errorf("performance.md says %q of %s, benchmarks.md %q", m[1], name, want)
		}
		quoted++
	}
	if quoted < 12 {
		t.Errorf("%d figures are quoted", quoted)
	}
}
