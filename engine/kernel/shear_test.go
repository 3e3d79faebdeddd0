package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// shifts gives numbers of rows to turn columns by: such as vectors can take, or any.
func shifts(r *rand.Rand, d int, regular bool) []int {
	s := make([]int, d)
	for p := range s {
		s[p] = r.IntN(d)
		if step := max(1, d/8); regular && p%8 > 0 {
			s[p] = (s[p-1] + r.IntN(8)*step) % d
		}
	}
	return s
}

// places gives offsets of d rows of d words in any order, with gaps, and the length of what holds them.
func places(r *rand.Rand, d int) (at []int, size int) {
	order := r.Perm(d)
	at = make([]int, d)
	for _, k := range order {
		size += r.IntN(3)
		at[k] = size
		size += d
	}
	return at, size + r.IntN(3)
}

func TestShear(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(61, 61))
		for d := 1; d <= 256; d *= 2 {
			for i := range 8 {
				shift := shifts(r, d, i < 6)
				s, err := NewShear(shift)
				if err != nil || i < 6 && d >= 8 && len(s.turns) != d/8 {
					t.Fatalf("%d columns: %d turns, %v", d, len(s.turns), err)
				}
				checkShear(t, r, s)
			}
		}
	})
}

func checkShear(t *testing.T, r *rand.Rand, s *Shear) {
	t.Helper()
	d := len(s.shift)
	from, size := places(r, d)
	to, room := places(r, d)
	src := make([]uint64, size)
	for i := range src {
		src[i] = r.Uint64()
	}
	want, got := fill(make([]uint64, room), ones), fill(make([]uint64, room), ones)
	for k := range d {
		for p := range d {
			want[to[(k+s.shift[p])%d]+p] = src[from[k]+p]
		}
	}
	s.Down(got, to, src, from)
	if !slices.Equal(got, want) {
		t.Fatalf("%d columns: down", d)
	}
	back := slices.Clone(src)
	for _, at := range from {
		clear(back[at : at+d])
	}
	s.Up(back, from, got, to)
	if !slices.Equal(back, src) {
		t.Fatalf("%d columns: up", d)
	}
}

func TestShearRefuses(t *testing.T) {
	for _, shift := range [][]int{{}, {0, 0, 0}, {0, 2}, {0, -1}} {
		if _, err := NewShear(shift); err == nil {
			t.Errorf("shifts %v were accepted", shift)
		}
	}
	s, err := NewShear(make([]int, 8))
	if err != nil {
		t.Fatal(err)
	}
	good := []int{0, 8, 16, 24, 32, 40, 48, 56}
	for name, f := range map[string]func(){
		"few rows":   func() { s.Down(make([]uint64, 64), good[:7], make([]uint64, 64), good) },
		"short to":   func() { s.Up(make([]uint64, 63), good, make([]uint64, 64), good) },
		"short from": func() { s.Up(make([]uint64, 64), good, make([]uint64, 63), good) },
		"negative":   func() { s.Down(make([]uint64, 64), good, make([]uint64, 64), []int{-1, 8, 16, 24, 32, 40, 48, 56}) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func BenchmarkShear(b *testing.B) {
	const d = 128
	r := rand.New(rand.NewPCG(62, 62))
	s, err := NewShear(shifts(r, d, true))
	if err != nil {
		b.Fatal(err)
	}
	for _, stride := range []int{d, 1 << 14} { // side by side, and as in polynomials
		from, to := make([]int, d), make([]int, d)
		for k := range d {
			from[k], to[k] = k*stride, k*d
		}
		src, dst := make([]uint64, d*stride), make([]uint64, d*d)
		b.Run(fmt.Sprintf("down/%d", stride), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for i := 0; b.Loop(); i += d {
					s.Down(dst, to, src[i%stride:], from)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/d/d, "ns/word")
			})
		})
		b.Run(fmt.Sprintf("up/%d", stride), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for i := 0; b.Loop(); i += d {
					s.Up(src[i%stride:], from, dst, to)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/d/d, "ns/word")
			})
		})
	}
}
