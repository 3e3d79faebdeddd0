package kernel

import (
	"fmt"
	"runtime/debug"
	"strings"
	"testing"
)

// onPaths runs a test on every path that this processor supports.
func onPaths(t *testing.T, f func(t *testing.T)) {
	defer restore(Selected())
	for p := range best + 1 {
		restore(p)
		t.Run(p.String(), f)
	}
}

func restore(p Path) {
	if err := Select(p); err != nil {
		panic(err)
	}
}

func benchmarkPaths(b *testing.B, f func(b *testing.B)) {
	defer restore(Selected())
	for p := range best + 1 {
		restore(p)
		b.Run(p.String(), f)
	}
}

// A build tag removes the paths that it is meant to remove; the processor removes no others.
func TestBuildTags(t *testing.T) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		t.Fatal("the test binary has no build settings")
	}
	last := IFMA
	for _, s := range info.Settings {
		if s.Key != "-tags" {
			continue
		}
		for tag := range strings.SplitSeq(s.Value, ",") {
			switch tag {
			case "purego":
				last = min(last, Plain)
			case "avx2":
				last = min(last, AVX2)
			case "avx512":
				last = min(last, AVX512)
			}
		}
	}
	if Best() > last {
		t.Errorf("path %v runs in a build whose last path is %v", Best(), last)
	}
	t.Logf("paths up to %v run; this build has paths up to %v", Best(), last)
}

func TestSelect(t *testing.T) {
	defer restore(Selected())
	if Selected() != Best() {
		t.Errorf("a program starts on %v, not on %v", Selected(), Best())
	}
	for p := range IFMA + 1 {
		if err := Select(p); (err == nil) != (p <= Best()) {
			t.Errorf("%v, best %v: %v", p, Best(), err)
		}
		if q, err := ParsePath(p.String()); q != p || err != nil {
			t.Errorf("%v is parsed as %v, %v", p, q, err)
		}
	}
	if Select(IFMA+1) == nil || fmt.Sprint(IFMA+1) != "path(4)" {
		t.Error("an unknown path was accepted")
	}
	if _, err := ParsePath("sse"); err == nil {
		t.Error("sse was parsed")
	}
}
