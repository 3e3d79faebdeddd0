package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// shifts returns numbers of rows to turn columns by, either restricted to the form that vectors
// support or arbitrary.
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

// matrixRows returns d rows of d random words each, which start at word at of longer rows, in
// random order in memory.
func matrixRows(r *rand.Rand, d int) (rows [][]uint64, at int) {
	rows, at = make([][]uint64, d), r.IntN(3)
	words := make([]uint64, d*(d+5))
	for i := range words {
		words[i] = r.Uint64()
	}
	for i, k := range r.Perm(d) {
		rows[k] = words[i*(d+5):][:at+d+r.IntN(3)]
	}
	return rows, at
}

func cloneRows(rows [][]uint64) (out [][]uint64) {
	for _, r := range rows {
		out = append(out, slices.Clone(r))
	}
	return out
}

func equalRows(a, b [][]uint64) bool { return slices.EqualFunc(a, b, slices.Equal[[]uint64]) }

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
	src, from := matrixRows(r, d)
	got, to := matrixRows(r, d)
	want := cloneRows(got)
	for k := range d {
		for p := range d {
			want[(k+s.shift[p])%d][to+p] = src[k][from+p]
		}
	}
	s.Down(got, to, src, from)
	if !equalRows(got, want) {
		t.Fatalf("%d columns: Down is wrong", d)
	}
	back := cloneRows(src)
	for _, row := range back {
		clear(row[from : from+d])
	}
	s.Up(back, from, got, to)
	if !equalRows(back, src) {
		t.Fatalf("%d columns: Up is wrong", d)
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
	rows := func(d, length int) [][]uint64 {
		m := make([][]uint64, d)
		for k := range m {
			m[k] = make([]uint64, length)
		}
		return m
	}
	for name, f := range map[string]func(){
		"few rows":   func() { s.Down(rows(7, 8), 0, rows(8, 8), 0) },
		"short to":   func() { s.Up(rows(8, 7), 0, rows(8, 8), 0) },
		"short from": func() { s.Up(rows(8, 9), 1, rows(8, 8), 1) },
		"negative":   func() { s.Down(rows(8, 8), 0, rows(8, 8), -1) },
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
	for _, length := range []int{d, 1 << 14} { // as in a matrix and in polynomials
		var src, dst [][]uint64
		for range d {
			src, dst = append(src, make([]uint64, length)), append(dst, make([]uint64, d))
		}
		b.Run(fmt.Sprintf("down/%d", length), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for i := 0; b.Loop(); i += d {
					s.Down(dst, 0, src, i%length)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/d/d, "ns/word")
			})
		})
		b.Run(fmt.Sprintf("up/%d", length), func(b *testing.B) {
			benchmarkPaths(b, func(b *testing.B) {
				for i := 0; b.Loop(); i += d {
					s.Up(src, i%length, dst, 0)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/d/d, "ns/word")
			})
		})
	}
}
