package sample

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

func source(b byte) *Source { return NewSource(bytes.Repeat([]byte{b}, SeedSize)) }

// scripted returns a stream that begins with the given words.
func scripted(words ...uint64) *Stream {
	s := source(0).Stream("after the script")
	s.fill()
	for i, w := range words {
		binary.LittleEndian.PutUint64(s.buffer[8*i:], w)
	}
	return s
}

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
		{"a 256", s.Stream("a", 256)},
		{"a 1 0", s.Stream("a", 1, 0)},
		{"a 0 1", s.Stream("a", 0, 1)},
		{"a and a zero index as bytes", s.Stream("a\x08\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00")},
		{"a NUL", s.Stream("a\x00")},
		{"empty", s.Stream("")},
		{"b", s.Stream("b")},
		{"sub a", s.Sub("a").Stream("")},
		{"sub a a", s.Sub("a").Stream("a")},
		{"sub a 0 a", s.Sub("a", 0).Stream("a")},
		{"other seed", source(8).Stream("a")},
		{"longer seed", NewSource(bytes.Repeat([]byte{7}, 64)).Stream("a")},
		{"crs", newStream(derive("lodge common reference string", bytes.Repeat([]byte{7}, 32), "a", nil))},
	} {
		first := make([]byte, 32)
		io.ReadFull(c.stream, first)
		if other, ok := seen[string(first)]; ok {
			t.Errorf("streams %q and %q are the same", c.name, other)
		}
		seen[string(first)] = c.name
	}
}

func TestStreamDoesNotDependOnHowItIsRead(t *testing.T) {
	s := source(7)
	a, b := make([]byte, 3*bufferSize), make([]byte, 3*bufferSize)
	io.ReadFull(s.Stream("same"), a)
	pieces := s.Stream("same")
	for at, n := 0, 1; at < len(b); at, n = at+n, n+37 {
		n = min(n, len(b)-at)
		pieces.Read(b[at : at+n])
	}
	if !bytes.Equal(a, b) {
		t.Error("the bytes depend on the lengths of reads")
	}
	words := s.Stream("same")
	for at := 0; at < len(a); at += 8 {
		if want := binary.LittleEndian.Uint64(a[at:]); words.Uint64() != want {
			t.Fatalf("word %d differs from the bytes", at/8)
		}
	}
}

func TestPinnedVectors(t *testing.T) {
	raw, err := os.ReadFile("testdata/expand.json")
	if err != nil {
		t.Fatal(err)
	}
	var vectors struct {
		Expand []struct {
			Seed, Label, SHA256 string
			Index, Primes       []json.Number
			First               []json.Number
			N                   int
		}
		Stream string
	}
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}
	numbers := func(in []json.Number) (out []uint64) {
		for _, v := range in {
			var x uint64
			if _, err := fmt.Sscan(v.String(), &x); err != nil {
				t.Fatal(err)
			}
			out = append(out, x)
		}
		return out
	}
	for i, c := range vectors.Expand {
		seed, err := hex.DecodeString(c.Seed)
		if err != nil {
			t.Fatal(err)
		}
		primes, first := numbers(c.Primes), numbers(c.First)
		dst := make([][]uint64, len(primes))
		for i := range dst {
			dst[i] = make([]uint64, c.N)
		}
		Expand(dst, primes, seed, c.Label, numbers(c.Index)...)
		h := sha256.New()
		for l, row := range dst {
			binary.Write(h, binary.LittleEndian, row)
			if row[0] != first[l] {
				t.Errorf("vector %d: prime %d begins with %d, want %d", i, primes[l], row[0], first[l])
			}
		}
		if got := hex.EncodeToString(h.Sum(nil)); got != c.SHA256 {
			t.Errorf("vector %d: digest %s, want %s", i, got, c.SHA256)
		}
	}
	seed := make([]byte, 32)
	for i := range seed {
		seed[i] = byte(i)
	}
	first := make([]byte, 16384)
	NewSource(seed).Stream("name", 1, 2).Read(first)
	if got := fmt.Sprintf("%x", sha256.Sum256(first)); got != vectors.Stream {
		t.Errorf("stream begins with %s, want %s", got, vectors.Stream)
	}
}

func TestExpandReadsItsWholeName(t *testing.T) {
	get := func(seed byte, label string, index ...uint64) string {
		dst := [][]uint64{make([]uint64, 4), make([]uint64, 4)}
		Expand(dst, []uint64{562949953438721, 562949953438721}, bytes.Repeat([]byte{seed}, 32), label, index...)
		if fmt.Sprint(dst[0]) == fmt.Sprint(dst[1]) {
			t.Error("two primes get the same residues")
		}
		return fmt.Sprint(dst)
	}
	want := get(1, "a", 2)
	for _, other := range []string{get(2, "a", 2), get(1, "b", 2), get(1, "a", 3), get(1, "a"), get(1, "a", 2, 0)} {
		if other == want {
			t.Error("Expand ignores part of its name")
		}
	}
}

func TestSourcesAndStreamsShowNothing(t *testing.T) {
	s := source('s')
	stream := scripted(0x7373737373737373, 0x7373737373737373)
	held := struct {
		s      *Source
		value  Source
		stream *Stream
	}{s, *s, stream}
	for _, v := range []any{s, *s, stream, held, &held, []any{s, stream}} {
		for verb := 'A'; verb <= 'z'; verb++ {
			for _, flag := range []string{"", "+", "#", " "} {
				got := fmt.Sprintf("%"+flag+string(verb), v)
				for _, leak := range []string{"sss", "115 115", "73737373", "73 73", "0x73, 0x73", "163 163", "1110011 1110011"} {
					if strings.Contains(got, leak) {
						t.Errorf("%T with %%%s%c shows %s", v, flag, verb, leak)
					}
				}
			}
		}
	}
	//lint:ignore SA9005 that nothing is exported is what is tested
	if out, err := json.Marshal(s); err != nil || string(out) != "{}" {
		t.Errorf("JSON is %s, %v", out, err)
	}
}

// Reading many words at once yields the results of successive calls of Uint64, at every position of
// the buffer.
func TestWordsAreThoseOfUint64(t *testing.T) {
	for _, before := range []int{0, 1, 8, 13, bufferSize - 16, bufferSize - 9, bufferSize - 8, bufferSize - 7, bufferSize - 1, bufferSize} {
		for _, n := range []int{0, 1, 2, bufferSize / 8, bufferSize/8 + 1, 3*bufferSize/8 + 5} {
			all, single, skip := source(3).Stream("x"), source(3).Stream("x"), make([]byte, before)
			all.Read(skip)
			single.Read(skip)
			got := make([]uint64, n)
			all.words(got)
			for i, w := range got {
				if want := single.Uint64(); w != want {
					t.Fatalf("word %d of %d after %d bytes is %#x, want %#x", i, n, before, w, want)
				}
			}
			if *all.buffer != *single.buffer || all.Uint64() != single.Uint64() {
				t.Errorf("%d words after %d bytes leave a different buffer", n, before)
			}
		}
	}
}

func TestWipe(t *testing.T) {
	seed := bytes.Repeat([]byte{9}, 32)
	s := NewSource(seed)
	held := s.seed.Open()
	sub, stream := s.Sub("sub"), s.Stream("stream")
	s.Wipe()
	s.Wipe()
	if !bytes.Equal(held, make([]byte, 32)) {
		t.Error("the seed survives Wipe")
	}
	if seed[0] != 9 {
		t.Error("Wipe erases the caller's seed")
	}
	if sub.Stream("x").Uint64() == 0 || stream.Uint64() == 0 {
		t.Error("streams derived before Wipe do not work")
	}
	for range 9 {
		stream.Uint64()
		stream.Read(make([]byte, 5))
	}
	if stream.at != 8+9*(8+5) || !bytes.Equal(stream.buffer[:stream.at], make([]byte, stream.at)) {
		t.Error("the buffer still holds bytes already read")
	}
	stream.Wipe()
	if *stream.buffer != [bufferSize]byte{} || stream.ctr != nil {
		t.Error("the buffer survives Wipe")
	}
	for what, use := range map[string]func(){
		"Stream of a wiped source": func() { s.Stream("x") },
		"Sub of a wiped source":    func() { s.Sub("x") },
		"word of a wiped stream":   func() { stream.Uint64() },
		"bytes of a wiped stream":  func() { stream.Read(make([]byte, 1)) },
		"residue, wiped stream":    func() { Uniform(make([]uint64, 1), 3, stream) },
		"short seed":               func() { NewSource(make([]byte, SeedSize-1)) },
		"modulus 0":                func() { Uniform(make([]uint64, 1), 0, source(1).Stream("x")) },
		"primes without rows":      func() { Expand(nil, []uint64{3}, seed, "x") },
	} {
		checkPanics(t, what, use)
	}
}

func checkPanics(t *testing.T, what string, f func()) {
	t.Helper()
	defer func() {
		if recover() == nil {
			t.Errorf("%s does not panic", what)
		}
	}()
	f()
}
