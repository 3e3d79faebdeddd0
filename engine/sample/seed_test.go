package sample

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// uniform returns the nth draw of a working generator.
func uniform(n uint64) []byte {
	b := make([]byte, drawSize)
	source(42).Stream("draws", n).Read(b)
	return b
}

// Bytes that are visibly not random are refused, with their flaw. Random bytes pass, and so do
// bytes that barely avoid a flaw.
func TestWeakness(t *testing.T) {
	fill := func(of func(i int) byte) []byte {
		b := make([]byte, drawSize)
		for i := range b {
			b[i] = of(i)
		}
		return b
	}
	random := uniform(0)
	text := []byte(strings.Repeat("It was a dark and stormy night; the rain fell in torrents. ", 2))[:drawSize]
	for name, c := range map[string]struct {
		seed []byte
		flaw string
	}{
		"zeros":                  {make([]byte, drawSize), "it repeats itself"},
		"one byte":               {bytes.Repeat([]byte{0xa5}, drawSize), "it repeats itself"},
		"two words":              {bytes.Repeat(random[:8], 8), "it repeats itself"},
		"a cycle of 7":           {fill(func(i int) byte { return random[i%7] }), "it repeats itself"},
		"a cycle of 31":          {fill(func(i int) byte { return random[i%31] }), "it repeats itself"},
		"equal halves":           {bytes.Repeat(random[:SeedSize], 2), "it repeats itself"},
		"text":                   {text, "a bit is the same in all bytes"},
		"no lowest bit":          {fill(func(i int) byte { return random[i] &^ 1 }), "a bit is the same in all bytes"},
		"sixteen values":         {fill(func(i int) byte { return random[i] & 15 * 17 }), "few bytes differ"},
		"mostly zeros":           {slices.Concat(make([]byte, drawSize-SeedSize/2), random[:SeedSize/2]), "few bytes differ"},
		"a counter":              {fill(func(i int) byte { return byte(100 + i) }), "it counts"},
		"a counter by seven":     {fill(func(i int) byte { return byte(7 * i) }), "it counts"},
		"random":                 {random, ""},
		"nearly equal halves":    {slices.Concat(random[:SeedSize], random[:SeedSize-1], []byte{^random[SeedSize-1]}), ""},
		"a counter, half random": {slices.Concat(fill(func(i int) byte { return byte(7 * i) })[:SeedSize], random[:SeedSize]), ""},
	} {
		if got := weakness(c.seed); got != c.flaw {
			t.Errorf("%s: %q, want %q", name, got, c.flaw)
		}
		_, err := Draw(bytes.NewReader(c.seed), "test")
		if refused := errors.Is(err, ErrWeakSeed); refused != (c.flaw != "") {
			t.Errorf("%s: %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), fmt.Sprint(c.seed[:2])) {
			t.Errorf("%s: the error shows the seed: %v", name, err)
		}
	}
	for n := range uint64(20000) {
		if flaw := weakness(uniform(n)); flaw != "" {
			t.Fatalf("draw %d: %s", n, flaw)
		}
	}
}

func TestDistinct(t *testing.T) {
	for n := range uint64(50) {
		b := uniform(n)[:n]
		for i := range b {
			b[i] %= 40
		}
		values := map[byte]bool{}
		for _, v := range b {
			values[v] = true
		}
		if got := distinct(b); got != len(values) {
			t.Errorf("%d values of %v", got, b)
		}
	}
	all := make([]byte, 256)
	for i := range all {
		all[i] = byte(i)
	}
	if got := distinct(all); got != 256 {
		t.Errorf("distinct counts %d of all 256 bytes", got)
	}
}

func TestDrawNeedsAllBytes(t *testing.T) {
	for _, n := range []int{0, 1, SeedSize, drawSize - 1} {
		if s, err := Draw(bytes.NewReader(uniform(1)[:n]), "test"); err == nil || s != nil {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	r := bytes.NewReader(slices.Concat(uniform(1), uniform(2)))
	if _, err := Draw(r, "test"); err != nil || r.Len() != drawSize {
		t.Errorf("%d bytes are left unread: %v", r.Len(), err)
	}
}

// If a generator repeats itself, uses bound to different data have unrelated sources, and the same
// use has the same source.
func TestRepeatedDrawsAreBound(t *testing.T) {
	first := func(seed uint64, purpose string, bind ...[]byte) string {
		t.Helper()
		s, err := Draw(bytes.NewReader(uniform(seed)), purpose, bind...)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 32)
		io.ReadFull(s.Stream("mask"), b)
		return string(b)
	}
	a, b := []byte("a"), []byte("b")
	seen := map[string]string{}
	for name, got := range map[string]string{
		"nothing":            first(1, "use"),
		"another seed":       first(2, "use"),
		"another purpose":    first(1, "misuse"),
		"empty":              first(1, "use", nil),
		"a":                  first(1, "use", a),
		"b":                  first(1, "use", b),
		"a, b":               first(1, "use", a, b),
		"b, a":               first(1, "use", b, a),
		"ab":                 first(1, "use", []byte("ab")),
		"a in the purpose":   first(1, "usea"),
		"a, nothing":         first(1, "use", a, nil),
		"without the domain": func() string { b := make([]byte, 32); NewSource(uniform(1)).Stream("mask").Read(b); return string(b) }(),
	} {
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have the same source", name, other)
		}
		seen[got] = name
	}
	if again := first(1, "use", a); seen[again] != "a" {
		t.Error("the same draw for the same use yields a different source")
	}
}
