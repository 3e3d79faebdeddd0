// Package spans has sets of whole numbers as spans, so that a million tuples in
// a row are one.
package spans

import "slices"

// Span is Count numbers from First on.
type Span struct {
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

// End is the number after the last.
func (s Span) End() uint64 { return s.First + s.Count }

// Set has spans that are not empty, in order, and that neither overlap nor touch each other.
type Set []Span

// Count of numbers.
func (s Set) Count() (n uint64) {
	for _, x := range s {
		n += x.Count
	}
	return n
}

// Within counts the numbers of a span that are in s.
func (s Set) Within(span Span) (n uint64) {
	from, _ := slices.BinarySearchFunc(s, span.First, func(x Span, first uint64) int {
		if x.End() <= first {
			return -1
		}
		return 1
	})
	for _, x := range s[from:] {
		if x.First >= span.End() {
			break
		}
		n += min(x.End(), span.End()) - max(x.First, span.First)
	}
	return n
}

// With is s and a span together. It does not change s.
func (s Set) With(span Span) Set {
	if span.Count == 0 {
		return s
	}
	out := make(Set, 0, len(s)+1)
	for i, x := range s {
		switch {
		case x.End() < span.First:
			out = append(out, x)
		case x.First > span.End():
			return append(append(out, span), s[i:]...)
		default:
			first := min(x.First, span.First)
			span = Span{first, max(x.End(), span.End()) - first}
		}
	}
	return append(out, span)
}

// Without is s less a span. It does not change s.
func (s Set) Without(span Span) Set {
	if span.Count == 0 {
		return s
	}
	out := make(Set, 0, len(s)+1)
	for _, x := range s {
		if end := min(x.End(), span.First); end > x.First {
			out = append(out, Span{x.First, end - x.First})
		}
		if first := max(x.First, span.End()); first < x.End() {
			out = append(out, Span{first, x.End() - first})
		}
	}
	return out
}

// Missing are the numbers below count that are not in s.
func (s Set) Missing(count uint64) Set {
	var out Set
	next := uint64(0)
	for _, x := range s {
		if end := min(x.First, count); end > next {
			out = append(out, Span{next, end - next})
		}
		next = max(next, x.End())
	}
	if next < count {
		out = append(out, Span{next, count - next})
	}
	return out
}

// And are the numbers in both.
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
