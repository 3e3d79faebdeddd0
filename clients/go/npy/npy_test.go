package npy

import (
	"bytes"
	"encoding/hex"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// file returns a file as NumPy writes it, with a header and data.
func file(head string, data ...byte) []byte {
	text := head + strings.Repeat(" ", (64-(10+len(head)+1)%64)%64) + "\n"
	b := append([]byte("\x93NUMPY\x01\x00"), byte(len(text)), byte(len(text)>>8))
	return append(append(b, text...), data...)
}

func of(descr, shape string) string {
	return "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + shape + "), }"
}

// The output equals NumPy's: np.save of np.array([[1, -2], [3, 4]]).
func TestNumPyWritesTheSame(t *testing.T) {
	var b bytes.Buffer
	if err := Write(&b, []int{2, 2}, []int64{1, -2, 3, 4}); err != nil {
		t.Fatal(err)
	}
	want := "934e554d5059010076007b276465736372273a20273c6938272c2027666f727472616e5f6f72646572273a2046616c73652c20277368617065273a2028322c2032292c207d" +
		strings.Repeat("20", 58) + "0a" + "0100000000000000" + "feffffffffffffff" + "0300000000000000" + "0400000000000000"
	if got := hex.EncodeToString(b.Bytes()); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if b.Len()-32 != 128 {
		t.Errorf("the entries begin at %d", b.Len()-32)
	}
}

// All types are read as integers, as words if unsigned, and as floating point numbers.
func TestTypes(t *testing.T) {
	for _, c := range []struct {
		descr string
		data  []byte
		want  []int64
	}{
		{"|i1", []byte{1, 0xff, 0x80}, []int64{1, -1, -128}},
		{"<i2", []byte{1, 2, 0xfe, 0xff}, []int64{0x201, -2}},
		{"<i4", []byte{1, 2, 3, 4, 0, 0, 0, 0x80}, []int64{0x04030201, math.MinInt32}},
		{"<i8", []byte{1, 2, 3, 4, 5, 6, 7, 8}, []int64{0x0807060504030201}},
		{"|u1", []byte{1, 0xff}, []int64{1, 255}},
		{"<u2", []byte{0xff, 0xff}, []int64{65535}},
		{"<u4", []byte{0xff, 0xff, 0xff, 0xff}, []int64{math.MaxUint32}},
		{"<u8", []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, []int64{math.MaxInt64}},
		{"<f4", []byte{0, 0, 0x80, 0xc0}, []int64{-4}},
		{"<f8", []byte{0, 0, 0, 0, 0, 0, 0x08, 0x40}, []int64{3}},
	} {
		read := func() *Reader {
			x, err := NewReader(bytes.NewReader(file(of(c.descr, shape(len(c.want))), c.data...)))
			if err != nil {
				t.Fatalf("%s: %v", c.descr, err)
			}
			return x
		}
		x, got, floats := read(), make([]int64, len(c.want)), make([]float64, len(c.want))
		if err := errors.Join(x.Integers(got), x.End()); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, %v", c.descr, got, err)
		}
		if err := read().Floats(floats); err != nil || floats[0] != float64(c.want[0]) {
			t.Errorf("%s as floats: %v, %v", c.descr, floats, err)
		}
		words := make([]uint64, len(c.want))
		if err := read().Words(words); (err == nil) != (c.descr[1] == 'u') || err == nil && words[0] != uint64(c.want[0]) {
			t.Errorf("%s as words: %v, %v", c.descr, words, err)
		}
	}
}

func shape(n int) string { return map[int]string{1: "1,", 2: "2,", 3: "3,"}[n] }

// Files other than plain arrays are refused.
func TestRefuses(t *testing.T) {
	good := file(of("<i8", "1,"), 1, 0, 0, 0, 0, 0, 0, 0)
	change := func(at int, to byte) []byte {
		b := slices.Clone(good)
		b[at] = to
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "cut in the header": good[:50], "another magic": change(0, 'x'), "version 3": change(6, 3), "version 1.1": change(7, 1),
		"objects": file(of("|O", "1,")), "big-endian": file(of(">i8", "1,")), "records": file("{'descr': [('a', '<i8')], 'fortran_order': False, 'shape': (1,), }"),
		"half floats": file(of("<f2", "1,")), "no tuple": file(of("<i8", "1")), "leading zero": file(of("<i8", "01,")), "sign": file(of("<i8", "-1,")),
		"spaces": file(of("<i8", "1 , 2")), "pair with a comma": file(of("<i8", "1, 2,")), "endless": file(of("<i8", "1099511627775, 1099511627775")),
		"by columns":    file(strings.Replace(of("<i8", "2, 2"), "False", "True", 1)),
		"more keys":     file("{'descr': '<i8', 'fortran_order': False, 'shape': (1,), 'x': 1, }"),
		"another order": file("{'fortran_order': False, 'descr': '<i8', 'shape': (1,), }"),
		"dimensions":    file(of("<i8", "1, 1, 1, 1, 1, 1, 1, 1, 1")),
		"long header":   append([]byte("\x93NUMPY\x02\x00\xff\xff\xff\xff"), make([]byte, 2000)...),
	} {
		if _, err := NewReader(bytes.NewReader(b)); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, b := range map[string][]byte{"cut in its entries": good[:len(good)-1], "a byte more": append(slices.Clone(good), 0)} {
		x, err := NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(x.Integers(make([]int64, 1)), x.End()); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	x, err := NewReader(bytes.NewReader(good))
	if err != nil {
		t.Fatal(err)
	}
	if err := x.End(); !errors.Is(err, ErrFormat) {
		t.Errorf("entries that were not read: %v", err)
	}
	if err := x.Integers(make([]int64, 2)); !errors.Is(err, ErrFormat) {
		t.Errorf("more entries than there are: %v", err)
	}
	for name, b := range map[string][]byte{
		"a fraction": file(of("<f8", "1,"), 0, 0, 0, 0, 0, 0, 0xe0, 0x3f), "infinity": file(of("<f8", "1,"), 0, 0, 0, 0, 0, 0, 0xf0, 0x7f),
		"no number": file(of("<f8", "1,"), 0, 0, 0, 0, 0, 0, 0xf8, 0x7f), "64 bits": file(of("<u8", "1,"), 0, 0, 0, 0, 0, 0, 0, 0x80),
	} {
		x, err := NewReader(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := x.Integers(make([]int64, 1)); !errors.Is(err, ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := Write(new(bytes.Buffer), []int{2}, []int64{1}); !errors.Is(err, ErrFormat) {
		t.Errorf("fewer entries than the shape has: %v", err)
	}
}

// Reading a file and writing it again preserves it, and no input makes the reader panic or use much
// memory.
func FuzzReader(f *testing.F) {
	f.Add(file(of("<i8", "1,"), 1, 0, 0, 0, 0, 0, 0, 0))
	f.Add(file(of("<u8", "2, 1"), make([]byte, 16)...))
	f.Add(file(of("<f8", ""), make([]byte, 8)...))
	f.Add(file(of("|i1", "0, 3")))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := NewReader(bytes.NewReader(b))
		if err != nil || x.Len() > 1<<16 || x.Type != "<u8" || b[6] != 1 {
			return
		}
		v := make([]uint64, x.Len())
		if x.Words(v) != nil || x.End() != nil {
			return
		}
		var again bytes.Buffer
		if err := Write(&again, x.Shape, v); err != nil {
			t.Fatal(err)
		}
		y, err := NewReader(&again)
		if err != nil || !slices.Equal(y.Shape, x.Shape) {
			t.Fatalf("%v, %v", y, err)
		}
		w := make([]uint64, y.Len())
		if err := errors.Join(y.Words(w), y.End()); err != nil || !slices.Equal(v, w) {
			t.Fatal(err)
		}
	})
}
