package sample

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// doubt is x in the bounds of the statistical tests. If the sampler is correct, a bound fails with
// probability at most exp(-x) on each side, about 10^-7. As seeds are fixed, it then fails always
// or never.
const doubt = 16

// chiSquare compares counts with expected numbers, all 10 or more. It returns the statistic and an
// interval for it by the inequalities of Laurent and Massart for the chi-square distribution
// (Annals of Statistics 28, 2000, lemma 1), which approximates the statistic well for such numbers.
func chiSquare(count []int, expected []float64) (statistic, low, high float64) {
	for i, e := range expected {
		d := float64(count[i]) - e
		statistic += d * d / e
	}
	df := float64(len(expected) - 1)
	return statistic, df - 2*math.Sqrt(df*doubt), df + 2*math.Sqrt(df*doubt) + 2*doubt
}

func checkFlat(t *testing.T, what string, count []int) {
	t.Helper()
	n := 0
	for _, c := range count {
		n += c
	}
	expected := slices.Repeat([]float64{float64(n) / float64(len(count))}, len(count))
	if s, low, high := chiSquare(count, expected); s < low || s > high {
		t.Errorf("%s: chi-square is %.1f, want %.1f to %.1f: %v", what, s, low, high, count)
	}
}

func TestFlatCountsAreToldFromOthers(t *testing.T) {
	if s, _, high := chiSquare([]int{10_300, 9_700, 10_000}, []float64{10_000, 10_000, 10_000}); s < 17 || s > high {
		t.Errorf("statistic %.1f, bound %.1f", s, high)
	}
	if s, _, high := chiSquare([]int{10_700, 9_300, 10_000}, []float64{10_000, 10_000, 10_000}); s < high {
		t.Errorf("a share that is 7 %% off passes with %.1f, within %.1f", s, high)
	}
}

func TestUniformIsUniform(t *testing.T) {
	s := source(9)
	for _, q := range []uint64{1, 2, 3, 5, 17, 64, 97} {
		dst := make([]uint64, 60_000)
		Uniform(dst, q, s.Stream("uniform", q))
		count := make([]int, q)
		for _, v := range dst {
			count[v]++ // panics when v >= q
		}
		if q > 1 {
			checkFlat(t, fmt.Sprint("uniform mod ", q), count)
		}
	}
	for _, q := range []uint64{562949953438721, 1<<61 - 1, 3 << 62, math.MaxUint64} {
		dst, high, low := make([]uint64, 60_000), make([]int, 64), make([]int, 64)
		Uniform(dst, q, s.Stream("large", q))
		for _, v := range dst {
			if v >= q {
				t.Fatalf("residue %d of modulus %d", v, q)
			}
			high[v/(q/64+1)]++
			low[v%64]++
		}
		checkFlat(t, fmt.Sprint("high bits mod ", q), high)
		checkFlat(t, fmt.Sprint("low bits mod ", q), low)
	}
}

func TestUniformRejects(t *testing.T) {
	dst := make([]uint64, 4)
	Uniform(dst, 97, scripted(96, 97, 127, 128+5, math.MaxUint64, 0, 1<<63+1))
	if want := []uint64{96, 5, 0, 1}; !slices.Equal(dst, want) {
		t.Errorf("residues %v, want %v", dst, want)
	}
	// Reading in pieces, across buffers, and after odd reads yields the same residues as word by
	// word.
	for _, odd := range []int{0, 1, 7, 8, 4091} {
		a, b := source(1).Stream("pieces"), source(1).Stream("pieces")
		a.Read(make([]byte, odd))
		b.Read(make([]byte, odd))
		for n := range 700 { // the last pieces are single residues, so that some call takes exactly the last word of a buffer
			dst := make([]uint64, 1)
			if n < 60 {
				dst = make([]uint64, 11*n)
			}
			Uniform(dst, 97, a)
			for i, v := range dst {
				want := b.Uint64() & 127
				for want >= 97 {
					want = b.Uint64() & 127
				}
				if v != want {
					t.Fatalf("after %d bytes, piece %d, residue %d is %d, want %d", odd, n, i, v, want)
				}
			}
		}
	}
}

func TestTernaryIsUniform(t *testing.T) {
	dst := make([]int64, 60_000)
	Ternary(dst, source(10).Stream("ternary"))
	var count [3]int
	var pairs [9]int
	for i, v := range dst {
		count[v+1]++
		if i%2 == 1 {
			pairs[3*(dst[i-1]+1)+v+1]++
		}
	}
	checkFlat(t, "ternary", count[:])
	checkFlat(t, "pairs of ternary", pairs[:])

	few := make([]int64, 5)
	Ternary(few, scripted(0b00_11_01_10_11_11_10_00))
	if want := []int64{-1, 1, 1, 0, -1}; !slices.Equal(few, want) {
		t.Errorf("the bits yield %v, want %v", few, want)
	}
}

func TestFloodIsUniformOnItsInterval(t *testing.T) {
	s := source(11)
	for _, bound := range []int64{1, 2, 4, 7, 40} {
		p := intpoly.New(40_000, 2)
		Flood(p, big.NewInt(bound), s.Stream("flood", uint64(bound)))
		count := make([]int, 2*bound+1)
		for k := range p.N() {
			count[p.Big(k).Int64()+bound]++
		}
		checkFlat(t, fmt.Sprint("flooding with ", bound), count)
	}
	one := big.NewInt(1)
	for _, bits := range []uint{61, 62, 63, 64, 65, 101, 126, 127, 128, 190} {
		power := new(big.Int).Lsh(one, bits)
		odd := new(big.Int).Add(power, new(big.Int).Rsh(power, 2)) // more than 5/4 of the power
		for i, e := range []*big.Int{power, new(big.Int).Sub(power, one), odd.Add(odd, big.NewInt(12345))} {
			p := intpoly.New(6000, 3)
			Flood(p, e, s.Stream("wide", uint64(bits), uint64(i)))
			high, low := make([]int, 32), make([]int, 32)
			size := new(big.Int).Lsh(e, 1)
			size.Add(size, one)
			for k := range p.N() {
				v := p.Big(k)
				if v.CmpAbs(e) > 0 {
					t.Fatalf("flooding %v is outside of %v", v, e)
				}
				v.Add(v, e)
				low[v.Bit(0)|v.Bit(1)<<1|v.Bit(2)<<2|v.Bit(3)<<3|v.Bit(4)<<4]++
				high[v.Lsh(v, 5).Quo(v, size).Int64()]++
			}
			checkFlat(t, fmt.Sprintf("high part for bound %v", e), high)
			checkFlat(t, fmt.Sprintf("low bits for bound %v", e), low)
		}
	}
}

func TestFloodAtItsEdges(t *testing.T) {
	const top = math.MaxUint64
	for _, c := range []struct {
		bound  string
		w      int
		words  []uint64
		values []string
	}{
		// Candidates 0 and 2E are kept, 2E+1 and larger ones are not, and bits above those of 2E do
		// not count.
		{"5", 1, []uint64{0, 10, 11, 15, top, 1<<60 + 5, 16}, []string{"-5", "5", "0", "-5"}},
		{"5", 3, []uint64{0, 10, 11, 15}, []string{"-5", "5"}},
		{"9223372036854775807", 1, []uint64{0, top, top - 1, 1 << 63}, []string{"-9223372036854775807", "9223372036854775807", "1"}},
		{"9223372036854775808", 2, []uint64{0, 0, 0, 1, 1, 1, top, 0, 0, 3}, []string{"-9223372036854775808", "9223372036854775808", "9223372036854775807", "9223372036854775808"}},
		{"18446744073709551616", 2, []uint64{0, 2, 1, 2, top, 1, 7, top - 3}, []string{"18446744073709551616", "18446744073709551615", "-18446744073709551609"}},
	} {
		bound, _ := new(big.Int).SetString(c.bound, 10)
		p := intpoly.New(len(c.values), c.w)
		for i := range p.C {
			p.C[i] = 0xdead
		}
		Flood(p, bound, scripted(c.words...))
		for k, want := range c.values {
			if got := p.Big(k).String(); got != want {
				t.Errorf("bound %s in %d words: coefficient %d is %s, want %s", c.bound, c.w, k, got, want)
			}
		}
	}
	for _, bits := range []uint{63, 64} {
		checkPanics(t, "a bound that leaves no sign", func() {
			Flood(intpoly.New(1, 1), new(big.Int).Lsh(big.NewInt(1), bits), source(1).Stream("x"))
		})
	}
	for _, bound := range []int64{0, -1} {
		checkPanics(t, "a bound below 1", func() { Flood(intpoly.New(1, 1), big.NewInt(bound), source(1).Stream("x")) })
	}
}

func BenchmarkExpand(b *testing.B) {
	dst := [][]uint64{make([]uint64, 16384)}
	b.SetBytes(16384 * 8)
	for i := range b.N {
		Expand(dst, []uint64{562949953438721}, make([]byte, 32), "bench", uint64(i))
	}
}

func BenchmarkTernary(b *testing.B) {
	dst, s := make([]int64, 1024), source(1).Stream("bench")
	for range b.N {
		Ternary(dst, s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/sample")
}

func BenchmarkFlood(b *testing.B) {
	dst, s := intpoly.New(1024, 2), source(1).Stream("bench")
	bound := new(big.Int).Lsh(big.NewInt(1), 101)
	for range b.N {
		Flood(dst, bound, s)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1024, "ns/sample")
}

// Whole words are the words from which residues modulo 2^63 are cut.
func TestExpandWords(t *testing.T) {
	seed := make([]byte, SeedSize)
	words, residues := make([]uint64, 1000), [][]uint64{make([]uint64, 1000)}
	ExpandWords(words, seed, "words", 4, 2)
	Expand(residues, []uint64{1 << 63}, seed, "words", 4, 2)
	high := 0
	for i, w := range words {
		if w&(1<<63-1) != residues[0][i] {
			t.Fatalf("word %d is %x, and the residue %x", i, w, residues[0][i])
		}
		high += int(w >> 63)
	}
	if high < 400 || high > 600 {
		t.Errorf("the upper bit is 1 in %d words", high)
	}
}
