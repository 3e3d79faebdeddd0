package vault

import "slices"

// Span is Count tuples of a batch from First on.
type Span struct {
	First uint64 `json:"first"`
	Count uint64 `json:"count"`
}

func (s Span) end() uint64 { return s.First + s.Count }

// Spans are disjoint, in order, and never touch each other, so that a million
// tuples in a row are one.
type Spans []Span

// Count of tuples in all spans.
func (s Spans) Count() (n uint64) {
	for _, x := range s {
		n += x.Count
	}
	return n
}

// from is the index of the first span that ends after a tuple.
func (s Spans) from(tuple uint64) int {
	i, _ := slices.BinarySearchFunc(s, tuple, func(x Span, t uint64) int {
		if x.end() <= t {
			return -1
		}
		return 1
	})
	return i
}

// within counts the tuples of a span that are in s.
func (s Spans) within(span Span) (n uint64) {
	for _, x := range s[s.from(span.First):] {
		if x.First >= span.end() {
			break
		}
		n += min(x.end(), span.end()) - max(x.First, span.First)
	}
	return n
}

// with is s and a span together, in spans of their own.
func (s Spans) with(span Span) Spans {
	if span.Count == 0 {
		return s
	}
	from := s.from(span.First)
	if from > 0 && s[from-1].end() == span.First {
		from--
	}
	to := from
	for ; to < len(s) && s[to].First <= span.end(); to++ {
		first := min(s[to].First, span.First)
		span = Span{first, max(s[to].end(), span.end()) - first}
	}
	return slices.Concat(s[:from], Spans{span}, s[to:])
}

// without is s less a span.
func (s Spans) without(span Span) Spans {
	if span.Count == 0 {
		return s
	}
	out := make(Spans, 0, len(s)+1)
	for _, x := range s {
		if n := min(x.end(), span.First); n > x.First {
			out = append(out, Span{x.First, n - x.First})
		}
		if from := max(x.First, span.end()); from < x.end() {
			out = append(out, Span{from, x.end() - from})
		}
	}
	return out
}

// and are the tuples of a span that are in s.
func (s Spans) and(span Span) (out Spans) {
	if span.Count == 0 {
		return nil
	}
	for _, x := range s[s.from(span.First):] {
		if x.First >= span.end() {
			break
		}
		first := max(x.First, span.First)
		out = append(out, Span{first, min(x.end(), span.end()) - first})
	}
	return out
}

// missing are the tuples of 0 to count that are not in s.
func (s Spans) missing(count uint64) Spans {
	var out Spans
	first := uint64(0)
	for _, x := range s {
		if x.First > first {
			out = append(out, Span{first, x.First - first})
		}
		first = x.end()
	}
	if first < count {
		out = append(out, Span{first, count - first})
	}
	return out
}
