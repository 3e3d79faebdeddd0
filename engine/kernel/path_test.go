package kernel

import (
	"fmt"
	"testing"
)

// onPaths runs a test on every path that this processor has.
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
		t.Error("an unknown path")
	}
	if _, err := ParsePath("sse"); err == nil {
		t.Error("sse was parsed")
	}
}
