package sample

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/big"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

func TestNamesSeparateStreams(t *testing.T) {
	s := source(7)
	seen := map[string]string{}
	for _, c := range []struct {
		name   string
		stream *Stream
	}{
		{"a", s.Stream("a")},
		{"a 0", s.Stream("a", 0)},
		{"a 0 0", s.Stream("a", 0, 0)},
		{"a 1", s.Stream("a", 1)},
		{"empty", s.Stream("")},
		{"b", s.Stream("b")},
		{"sub a", s.Sub("a").Stream("")},
		{"sub a a", s.Sub("a").Stream("a")},
		{"other seed", source(8).Stream("a")},
		{"crs", newStream(derive("lodge common reference string", bytes.Repeat([]byte{7}, 32), "a", nil))},
	} {
		first := make([]byte, 32)
		io.ReadFull(c.stream, first)
		if other, ok := seen[string(first)]; ok {
			t.Errorf("streams %q and %q are the same", c.name, other)
		}
		seen[string(first)] = c.name
	}
	a, b := make([]byte, 3*bufferSize), make([]byte, 3*bufferSize)
	io.ReadFull(s.Stream("same"), a)
	pieces := s.Stream("same")
	for at, n := 0, 1; at < len(b); at, n = at+n, n+37 {
		n = min(n, len(b)-at)
		pieces.Read(b[at : at+n])
	}
	if !bytes.Equal(a, b) {
		t.Error("a stream depends on how it is read")
	}
}

func TestSourceShowsNoSeed(t *testing.T) {
	s := source('s')
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(verb, s); bytes.Contains([]byte(got), []byte("sss")) || bytes.Contains([]byte(got), []byte("115")) {
			t.Errorf("%s prints %s", verb, got)
		}
	}
	s.Wipe()
	if !bytes.Equal(s.seed, make([]byte, SeedSize)) {
		t.Error("the seed survives Wipe")
	}
}

func TestUniformIsUniform(t *testing.T) {
	s := source(9)
	for _, q := range []uint64{3, 5, 17, 64} {
		dst := make([]uint64, 60_000)
		Uniform(dst, q, s.Stream("uniform", q))
		count := make([]int, q)
		for _, v := range dst {
			count[v]++ // panics when v >= q
		}
		checkFlat(t, fmt.Sprint("uniform mod ", q), count)
	}
	const q = 562949953438721
	big1, small := make([]uint64, 20_000), 0
	Uniform(big1, q, s.Stream("large"))
	for _, v := range big1 {
		if v >= q {
			t.Fatalf("residue %d of modulus %d", v, uint64(q))
		}
		if v < q/2 {
			small++
		}
	}
	checkFlat(t, "halves", []int{small, len(big1) - small})
}

func checkFlat(t *testing.T, what string, count []int) {
	t.Helper()
	n := 0
	for _, c := range count {
		n += c
	}
	e, stat := float64(n)/float64(len(count)), 0.0
	for _, c := range count {
		stat += (float64(c) - e) * (float64(c) - e) / e
	}
	df := float64(len(count) - 1)
	if d := (stat - df) / math.Sqrt(2*df); d > 5 {
		t.Errorf("%s: chi-square is %.1f deviations off: %v", what, d, count)
	}
}

func TestExpandIsFixed(t *testing.T) {
	primes := []uint64{97, 562949953438721}
	get := func(seed byte, label string, index ...uint64) []uint64 {
		dst := [][]uint64{make([]uint64, 4), make([]uint64, 4)}
		Expand(dst, primes, bytes.Repeat([]byte{seed}, 32), label, index...)
		return append(dst[0], dst[1]...)
	}
	want := fmt.Sprint(get(1, "a", 2))
	if got := fmt.Sprint(get(1, "a", 2)); got != want {
		t.Errorf("Expand gives %s, then %s", want, got)
	}
	for _, other := range [][]uint64{get(2, "a", 2), get(1, "b", 2), get(1, "a", 3), get(1, "a")} {
		if fmt.Sprint(other) == want {
			t.Error("Expand ignores a part of its name")
		}
	}
}

func TestTernaryIsUniform(t *testing.T) {
	dst := make([]int64, 60_000)
	Ternary(dst, source(10).Stream("ternary"))
	var count [3]int
	for _, v := range dst {
		count[v+1]++
	}
	checkFlat(t, "ternary", count[:])
}

func TestFloodIsUniformOnItsInterval(t *testing.T) {
	s := source(11)
	for _, bound := range []int64{1, 2, 4, 7} {
		p := intpoly.New(40_000, 2)
		Flood(p, big.NewInt(bound), s.Stream("flood", uint64(bound)))
		count := make([]int, 2*bound+1)
		for k := range p.N() {
			count[p.Big(k).Int64()+bound]++
		}
		checkFlat(t, fmt.Sprint("flooding with ", bound), count)
	}
	for _, bits := range []uint{62, 63, 64, 65, 126, 127, 128, 190} {
		bound := new(big.Int).Lsh(big.NewInt(1), bits)
		for _, e := range []*big.Int{bound, new(big.Int).Sub(bound, big.NewInt(1))} {
			p := intpoly.New(2000, 3)
			Flood(p, e, s.Stream("wide", uint64(bits)))
			positive, large := 0, 0
			half := new(big.Int).Rsh(e, 1)
			for k := range p.N() {
				v := p.Big(k)
				if v.CmpAbs(e) > 0 {
					t.Fatalf("flooding %v is outside of %v", v, e)
				}
				if v.Sign() > 0 {
					positive++
				}
				if v.CmpAbs(half) > 0 {
					large++
				}
			}
			checkFlat(t, "signs", []int{positive, p.N() - positive})
			checkFlat(t, "halves", []int{large, p.N() - large})
		}
	}
}

func TestFloodRefusesWhatDoesNotFit(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a bound of 64 bits went into one signed word")
		}
	}()
	Flood(intpoly.New(1, 1), new(big.Int).Lsh(big.NewInt(1), 63), source(1).Stream("x"))
}

func BenchmarkExpand(b *testing.B) {
	dst := [][]uint64{make([]uint64, 16384)}
	b.SetBytes(16384 * 8)
	for i := range b.N {
		Expand(dst, []uint64{562949953438721}, make([]byte, 32), "bench", uint64(i))
	}
}
