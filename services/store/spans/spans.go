// Package spans represents sets of integers as spans, so a million consecutive tuples need one
// span. A set is recorded as varints.
package spans

import (
	"cmp"
	"slices"
)

// Span contains Count consecutive numbers, starting with First.
type Span struct {
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

// End returns the number after the last one of the span.
func (s Span) End() uint64 { return s.First + s.Count }

// Set is a sorted list of nonempty spans that neither overlap nor touch. Its methods do not modify
// it.
type Set []Span

// Of returns the set of the numbers in spans, in any order. For many spans it is faster than With,
// which copies the set for each.
func Of(spans ...Span) Set {
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b Span) int { return cmp.Compare(a.First, b.First) })
	var out Set
	for _, x := range sorted {
		out = out.add(x)
	}
	return out
}

// add appends a span that does not start before the last span of s. It may modify that last span.
func (s Set) add(x Span) Set {
	if x.Count == 0 {
		return s
	}
	if n := len(s); n > 0 && x.First <= s[n-1].End() {
		s[n-1].Count = max(s[n-1].End(), x.End()) - s[n-1].First
		return s
	}
	return append(s, x)
}

// Count returns the number of elements.
func (s Set) Count() (n uint64) {
	for _, x := range s {
		n += x.Count
	}
	return n
}

// from returns the index of the first span that ends after a number.
func (s Set) from(n uint64) int {
	i, _ := slices.BinarySearchFunc(s, n, func(x Span, t uint64) int {
		if x.End() <= t {
			return -1
		}
		return 1
	})
	return i
}

// Within returns how many numbers of a span are in s.
func (s Set) Within(span Span) (n uint64) {
	for _, x := range s[s.from(span.First):] {
		if x.First >= span.End() {
			break
		}
		n += min(x.End(), span.End()) - max(x.First, span.First)
	}
	return n
}

// With returns the union of s and a span.
func (s Set) With(span Span) Set {
	if span.Count == 0 {
		return s
	}
	from := s.from(span.First)
	if from > 0 && s[from-1].End() == span.First {
		from--
	}
	to := from
	for ; to < len(s) && s[to].First <= span.End(); to++ {
		first := min(s[to].First, span.First)
		span = Span{first, max(s[to].End(), span.End()) - first}
	}
	return slices.Concat(s[:from], Set{span}, s[to:])
}

// Without returns s without the numbers of a span.
func (s Set) Without(span Span) Set {
	if span.Count == 0 {
		return s
	}
	out := make(Set, 0, len(s)+1)
	for _, x := range s {
		if n := min(x.End(), span.First); n > x.First {
			out = append(out, Span{x.First, n - x.First})
		}
		if from := max(x.First, span.End()); from < x.End() {
			out = append(out, Span{from, x.End() - from})
		}
	}
	return out
}

// Clip returns the numbers of a span that are in s.
func (s Set) Clip(span Span) (out Set) {
	if span.Count == 0 {
		return nil
	}
	for _, x := range s[s.from(span.First):] {
		if x.First >= span.End() {
			break
		}
		first := max(x.First, span.First)
		out = append(out, Span{first, min(x.End(), span.End()) - first})
	}
	return out
}

// Missing returns the numbers below count that are not in s.
func (s Set) Missing(count uint64) Set {
	var out Set
	first := uint64(0)
	for _, x := range s {
		if x.First > first {
			out = append(out, Span{first, x.First - first})
		}
		first = x.End()
	}
	if first < count {
		out = append(out, Span{first, count - first})
	}
	return out
}

// And returns the intersection of s and t.
func (s Set) And(t Set) Set {
	var out Set
	for i, j := 0, 0; i < len(s) && j < len(t); {
		first, end := max(s[i].First, t[j].First), min(s[i].End(), t[j].End())
		if first < end {
			out = append(out, Span{first, end - first})
		}
		if s[i].End() < t[j].End() {
			i++
		} else {
			j++
		}
	}
	return out
}

// Or returns the union of s and t.
func (s Set) Or(t Set) Set {
	out := make(Set, 0, len(s)+len(t))
	for len(s) > 0 && len(t) > 0 {
		if s[0].First <= t[0].First {
			out, s = out.add(s[0]), s[1:]
		} else {
			out, t = out.add(t[0]), t[1:]
		}
	}
	for _, x := range slices.Concat(s, t) { // the remaining spans of s or t
		out = out.add(x)
	}
	return out
}

// AndNot returns the numbers of s that are not in t.
func (s Set) AndNot(t Set) Set {
	var out Set
	for _, x := range s {
		for len(t) > 0 && t[0].End() <= x.First {
			t = t[1:]
		}
		first := x.First
		for i := 0; i < len(t) && t[i].First < x.End(); i++ {
			if t[i].First > first {
				out = append(out, Span{first, t[i].First - first})
			}
			first = t[i].End()
		}
		if first < x.End() {
			out = append(out, Span{first, x.End() - first})
		}
	}
	return out
}

// WellFormed reports whether the spans are sorted, disjoint, not touching, nonempty and within the
// batch.
func (s Set) WellFormed(count uint64) bool {
	end := uint64(0)
	for i, x := range s {
		if x.Count == 0 || x.First > count || x.Count > count-x.First || i > 0 && x.First <= end {
			return false
		}
		end = x.End()
	}
	return true
}

// Includes reports whether all of other is in s.
func (s Set) Includes(other Set) bool {
	return !slices.ContainsFunc(other, func(x Span) bool { return s.Within(x) != x.Count })
}
