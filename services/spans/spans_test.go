package spans

import (
	"math/rand/v2"
	"slices"
	"testing"
)

const universe = 40

// bits is a set in the plainest form.
type bits [universe]bool

func of(s Set) (b bits) {
	for _, x := range s {
		for i := x.First; i < x.End(); i++ {
			b[i] = true
		}
	}
	return b
}

func (b bits) set() (s Set) {
	for i := uint64(0); i < universe; i++ {
		switch {
		case !b[i]:
		case len(s) > 0 && s[len(s)-1].End() == i:
			s[len(s)-1].Count++
		default:
			s = append(s, Span{i, 1})
		}
	}
	return s
}

func equal(a, b Set) bool { return len(a) == 0 && len(b) == 0 || slices.Equal(a, b) }

// Every operation gives what it gives bit by bit, in the one form of a set.
func TestAgainstBits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() (b bits) {
		for i := range b {
			b[i] = r.IntN(3) == 0
		}
		return b
	}
	for range 20_000 {
		a, b := random(), random()
		first := r.Uint64N(universe)
		x := Span{first, r.Uint64N(universe - first + 1)}
		with, without, both, missing, n := a, a, a, bits{}, uint64(0)
		count := r.Uint64N(universe + 1)
		for i := range a {
			inside := uint64(i) >= x.First && uint64(i) < x.End()
			with[i] = a[i] || inside
			without[i] = a[i] && !inside
			both[i] = a[i] && b[i]
			missing[i] = uint64(i) < count && !a[i]
			if a[i] && inside {
				n++
			}
		}
		s := a.set()
		before := slices.Clone(s)
		switch {
		case !equal(s.With(x), with.set()):
			t.Fatalf("%v with %v: %v", s, x, s.With(x))
		case !equal(s.Without(x), without.set()):
			t.Fatalf("%v without %v: %v", s, x, s.Without(x))
		case !equal(s.And(b.set()), both.set()):
			t.Fatalf("%v and %v: %v", s, b.set(), s.And(b.set()))
		case !equal(s.Missing(count), missing.set()):
			t.Fatalf("%v missing below %d: %v", s, count, s.Missing(count))
		case s.Within(x) != n:
			t.Fatalf("%v within %v: %d", s, x, s.Within(x))
		case of(s) != a || !slices.Equal(s, before):
			t.Fatal("the set was changed")
		}
	}
}
