// Package longtest runs tests that take too long for every run: either all long tests, or a sample
// selected by a seed. It logs the omitted tests.
package longtest

import (
	"cmp"
	"flag"
	"hash/fnv"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var which = flag.String("long", "", `long tests to run: "all", or COUNT@SEED for COUNT of them in each group`)

// All reports whether every long test runs.
func All() bool { return *which == "all" }

// A Case is one test of a group.
type Case struct {
	Name     string
	Everyday bool // short enough to run always
	Run      func(t *testing.T)
}

// Run runs the everyday cases, and those of the others that -long selects, in order.
func Run(t *testing.T, cases []Case) {
	t.Helper()
	left := omitted(t, cases)
	for _, c := range cases {
		if !left[c.Name] {
			t.Run(c.Name, c.Run)
		}
	}
	if *which != "" && len(left) > 0 {
		var names []string
		for _, c := range cases {
			if left[c.Name] {
				names = append(names, c.Name)
			}
		}
		t.Logf("left out %d of %d: %s", len(names), len(cases), strings.Join(names, " "))
	}
}

// Left returns the long tests among names that -long does not select, in order. It is for tests
// that another framework runs.
func Left(t *testing.T, names ...string) (left []string) {
	t.Helper()
	cases := make([]Case, len(names))
	for i, name := range names {
		cases[i].Name = name
	}
	out := omitted(t, cases)
	for _, name := range names {
		if out[name] {
			left = append(left, name)
		}
	}
	return left
}

// omitted returns the names of the cases that do not run.
func omitted(t *testing.T, cases []Case) map[string]bool {
	left := map[string]bool{}
	if All() {
		return left
	}
	count, seed := 0, ""
	if *which != "" {
		number, rest, ok := strings.Cut(*which, "@")
		n, err := strconv.Atoi(number)
		if !ok || err != nil || n < 0 {
			t.Fatalf(`-long %q is invalid: want "all" or COUNT@SEED`, *which)
		}
		count, seed = n, rest
	}
	var long []string
	for _, c := range cases {
		if !c.Everyday {
			long = append(long, c.Name)
		}
	}
	slices.SortFunc(long, func(a, b string) int { return cmp.Compare(rank(seed, a), rank(seed, b)) })
	for _, name := range long[min(count, len(long)):] {
		left[name] = true
	}
	return left
}

// rank orders names differently for every seed.
func rank(seed, name string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(seed + "\x00" + name))
	v := h.Sum64() // the last bytes hardly affect the high bits, so mix them
	v ^= v >> 32
	v *= 0xd6e8feb86659fd93
	v ^= v >> 32
	v *= 0xd6e8feb86659fd93
	return v ^ v>>32
}
