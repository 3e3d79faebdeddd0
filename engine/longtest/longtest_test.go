package longtest

import (
	"slices"
	"testing"
)

func TestSamples(t *testing.T) {
	defer func(old string) { *which = old }(*which)
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	pick := func(flag string) (ran []string) {
		*which = flag
		cases := []Case{{Name: "always", Everyday: true}}
		for _, n := range names {
			cases = append(cases, Case{Name: n})
		}
		left := omitted(t, cases)
		for _, c := range cases {
			if !left[c.Name] {
				ran = append(ran, c.Name)
			}
		}
		return ran
	}
	if got := pick(""); !slices.Equal(got, []string{"always"}) {
		t.Errorf("without -long: runs %v", got)
	}
	if got := pick("all"); len(got) != 1+len(names) {
		t.Errorf("all runs %v", got)
	}
	covered := map[string]bool{}
	for _, seed := range []string{"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15", "16"} {
		got := pick("2@" + seed)
		if len(got) != 3 || !slices.Equal(got, pick("2@"+seed)) {
			t.Errorf("a sample of 2 runs %v", got)
		}
		for _, n := range got {
			covered[n] = true
		}
	}
	if len(covered) != 1+len(names) {
		t.Errorf("16 seeds select only %v", covered)
	}
	*which = "2@1"
	if got := Left(t, names...); len(got) != len(names)-2 || !slices.IsSorted(got) {
		t.Errorf("a sample of 2 omits %v", got)
	}
	if got := pick("100@x"); len(got) != 1+len(names) {
		t.Errorf("a sample larger than the group runs %v", got)
	}
}
