package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// Every figure that docs/performance.md quotes by name is the one in docs/benchmarks.md, or in that of the other machine that it names.
func TestPerformanceQuotesTheBenchmarks(t *testing.T) {
	read := func(name string) string {
		b, err := os.ReadFile(filepath.Join("..", "..", "docs", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	measured := map[string]string{}
	for page, suffix := range map[string]string{
		"benchmarks.md": "", "benchmarks-multikey.md": "", "benchmarks-linear.md": "",
		"benchmarks-xeon.md": " on the Xeon", "benchmarks-busy.md": " on the busy EPYC",
	} {
		for _, m := range regexp.MustCompile("(?m)^\\| .* \\| `(\\w+)` \\| ([^|]*) \\| ([^|]*) \\| [^|]* \\|$").FindAllStringSubmatch(read(page), -1) {
			measured[m[1]+suffix], measured[m[1]+" against Lattigo"+suffix] = m[2], m[3]
		}
	}
	quoted := 0
	for _, m := range regexp.MustCompile("(?m)^\\| .* \\| ([^|]*) \\| `(\\w+)`((?: against Lattigo)?(?: on the Xeon| on the busy EPYC)?) \\|$").FindAllStringSubmatch(read("performance.md"), -1) {
		name := m[2] + m[3]
		if want, ok := measured[name]; !ok || m[1] != want {
			t.Errorf("performance.md says %q of %s, which measured %q", m[1], name, want)
		}
		quoted++
	}
	if quoted < 26 {
		t.Errorf("%d figures are quoted", quoted)
	}
}
