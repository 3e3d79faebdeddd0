package spans

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// bitmap is the reference implementation for spans.
type bitmap []bool

func (b bitmap) set(s Span, value bool) {
	for i := s.First; i < s.End(); i++ {
		b[i] = value
	}
}

func (b bitmap) count(s Span) (n uint64) {
	for i := s.First; i < s.End(); i++ {
		if b[i] {
			n++
		}
	}
	return n
}

// check fails if the spans differ from the bitmap or are not in canonical form.
func (b bitmap) check(t *testing.T, s Set) {
	t.Helper()
	got := make(bitmap, len(b))
	for i, x := range s {
		if x.Count == 0 || x.End() > uint64(len(b)) || i > 0 && x.First <= s[i-1].End() {
			t.Fatalf("span %d of %v", i, s)
		}
		got.set(x, true)
	}
	for i := range b {
		if b[i] != got[i] {
			t.Fatalf("at %d: %v, want %v, in %v", i, got[i], b[i], s)
		}
	}
	all := Span{0, uint64(len(b))}
	if s.Count() != b.count(all) {
		t.Fatalf("%d in %v", s.Count(), s)
	}
}

// play applies operations, encoded as three numbers each, to spans and to a bitmap.
func play(t *testing.T, size uint64, ops []byte) {
	t.Helper()
	var s Set
	b := make(bitmap, size)
	for ; len(ops) >= 3; ops = ops[3:] {
		first := uint64(ops[1]) % (size + 1)
		x := Span{first, uint64(ops[2]) % (size - first + 1)}
		before := s.Count()
		switch ops[0] % 3 {
		case 0:
			s = s.With(x)
			b.set(x, true)
		case 1:
			s = s.Without(x)
			b.set(x, false)
		case 2:
			if got := s.Within(x); got != b.count(x) {
				t.Fatalf("%d of %v within %v", got, s, x)
			}
			part := s.Clip(x)
			inside := make(bitmap, size)
			for i := x.First; i < x.End(); i++ {
				inside[i] = b[i]
			}
			inside.check(t, part)
			if s.Count() != before {
				t.Fatal("a query modified the spans")
			}
		}
		b.check(t, s)
		rest := make(bitmap, size)
		for i := range b {
			rest[i] = !b[i]
		}
		rest.check(t, s.Missing(size))
	}
}

// Tests all pairs of operations on a few tuples.
func TestSpansExhaustively(t *testing.T) {
	const size = 6
	var all [][]byte
	for op := range byte(3) {
		for first := range byte(size + 1) {
			for count := range size - first + 1 {
				all = append(all, []byte{op, first, count})
			}
		}
	}
	start := [][]byte{nil, {0, 1, 1, 0, 3, 1, 0, 5, 1}, {0, 0, 6, 1, 2, 2}}
	for _, s := range start {
		for _, x := range all {
			for _, y := range all {
				play(t, size, append(append(append([]byte(nil), s...), x...), y...))
			}
		}
	}
}

func TestSpansAtRandom(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		ops := make([]byte, 60)
		for i := range ops {
			ops[i] = byte(r.Uint32())
		}
		play(t, 1+uint64(r.IntN(80)), ops)
	}
}

func FuzzSpans(f *testing.F) {
	f.Add(byte(40), []byte{0, 3, 5, 0, 8, 2, 1, 4, 5, 2, 0, 40})
	f.Fuzz(func(t *testing.T, size byte, ops []byte) { play(t, uint64(size), ops[:min(len(ops), 300)]) })
}

func TestSpansRecorded(t *testing.T) {
	for _, s := range []Set{nil, {{0, 1}}, {{5, 7}}, {{0, 1}, {2, 1}, {1 << 40, 1 << 60}}, {{0, ^uint64(0)}}} {
		b, err := json.Marshal(s)
		var got Set
		if err == nil {
			err = json.Unmarshal(b, &got)
		}
		if err != nil || !slices.Equal(got, s) {
			t.Errorf("%v becomes %s and %v: %v", s, b, got, err)
		}
	}
	for name, bad := range map[string][]byte{
		"touching": {1, 1, 0, 1}, "empty": {1, 0}, "half": {1}, "cut": {1, 0x80}, "not the shortest": {1, 0x81, 0},
		"too far": append(binary.AppendUvarint([]byte{1}, ^uint64(0)), 1), "too long": binary.AppendUvarint([]byte{1}, ^uint64(0)),
	} {
		var got Set
		err := json.Unmarshal([]byte(`"`+base64.RawStdEncoding.EncodeToString(bad)+`"`), &got)
		if !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	var got Set
	for _, bad := range []string{`[]`, `"AQ="`, `"!"`, `3`} {
		if err := json.Unmarshal([]byte(bad), &got); err == nil {
			t.Errorf("%s: %v", bad, got)
		}
	}
}

func FuzzSpansRecorded(f *testing.F) {
	f.Add([]byte{1, 1, 1, 1})
	f.Add([]byte{0x80, 1, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		text := `"` + base64.RawStdEncoding.EncodeToString(b) + `"`
		var s Set
		if json.Unmarshal([]byte(text), &s) != nil {
			return
		}
		if again, err := json.Marshal(s); err != nil || string(again) != text || !s.WellFormed(^uint64(0)) {
			t.Errorf("%s becomes %v and %s, %v", text, s, again, err)
		}
	})
}

// Compares operations on two sets with bitmaps.
func TestSetsTogether(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	random := func(size uint64) (list []Span, b bitmap) {
		b = make(bitmap, size)
		for range r.IntN(12) {
			first := r.Uint64N(size)
			x := Span{first, r.Uint64N(min(4, size-first) + 1)}
			list = append(list, x)
			b.set(x, true)
		}
		return list, b
	}
	for range 5000 {
		size := 1 + r.Uint64N(30)
		list, a := random(size)
		before := slices.Clone(list)
		s := Of(list...)
		a.check(t, s)
		if !slices.Equal(list, before) {
			t.Fatal("Of modifies its arguments")
		}
		other, b := random(size)
		u := Of(other...)
		both, either, less := make(bitmap, size), make(bitmap, size), make(bitmap, size)
		for i := range a {
			both[i], either[i], less[i] = a[i] && b[i], a[i] || b[i], a[i] && !b[i]
		}
		both.check(t, s.And(u))
		either.check(t, s.Or(u))
		less.check(t, s.AndNot(u))
		a.check(t, s)
		b.check(t, u)
	}
	if got := Of(Span{7, 0}); got != nil {
		t.Errorf("%v of an empty span", got)
	}
}
