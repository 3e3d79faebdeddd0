package field

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sync"
	"testing"

	"golang.org/x/crypto/sha3"
)

// spec names a field and the ring degree that it is used with.
type spec struct {
	b       string
	m, logN int
}

// pow2 returns 2^k - x in decimal.
func pow2(k uint, x int64) string {
	v := new(big.Int).Lsh(big.NewInt(1), k)
	return v.Sub(v, big.NewInt(x)).String()
}

// specs lists the fields of all parameter sets, 64 to 4096 bits.
var specs = []spec{
	{"240", 8, 13}, {"248", 16, 13},
	{pow2(16, 256), 4, 13}, {pow2(16, 196), 8, 13}, {pow2(16, 22), 16, 13}, {pow2(16, 72), 32, 13},
	{pow2(16, 28), 64, 13}, {pow2(16, 190), 128, 13}, {pow2(16, 288), 256, 13},
	{pow2(32, 5120), 2, 14}, {pow2(32, 80), 4, 14}, {pow2(32, 20), 8, 14}, {pow2(32, 50), 16, 14},
	{pow2(32, 174), 32, 14}, {pow2(32, 312), 64, 14}, {pow2(32, 572), 128, 14},
	{pow2(64, 3072), 2, 14}, {pow2(64, 64), 4, 14}, {pow2(64, 428), 8, 14}, {pow2(64, 8), 16, 14},
	{pow2(64, 22), 32, 14}, {pow2(64, 56), 64, 14},
	{pow2(128, 40192), 2, 15}, {pow2(128, 640), 4, 15}, {pow2(128, 48), 8, 15}, {pow2(128, 576), 16, 15},
	{pow2(128, 990), 32, 15},
}

var made sync.Map // caches *Field by spec: primality tests of the largest fields are slow

func (s spec) field(t testing.TB) *Field {
	if f, ok := made.Load(s); ok {
		return f.(*Field)
	}
	b, _ := new(big.Int).SetString(s.b, 10)
	f, err := New(b, s.m)
	if err != nil {
		t.Fatalf("b=%s M=%d: %v", s.b, s.m, err)
	}
	made.Store(s, f)
	return f
}

// forFields runs a subtest for every field; in short mode only for those of at most 1024 bits.
func forFields(t *testing.T, run func(t *testing.T, s spec, f *Field)) {
	for _, s := range specs {
		b, _ := new(big.Int).SetString(s.b, 10)
		if testing.Short() && s.m*b.BitLen() > 1024 {
			continue
		}
		t.Run(fmt.Sprintf("b=%s,M=%d", s.b, s.m), func(t *testing.T) { run(t, s, s.field(t)) })
	}
}

func small(t testing.TB, b int64, m int) *Field {
	f, err := newField(big.NewInt(b), m)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// shake returns a deterministic source.
func shake(label string) io.Reader {
	h := sha3.NewShake256()
	h.Write([]byte(label))
	return h
}

// samples returns edge values and n uniform ones, as integers in [0,p).
func samples(t testing.TB, f *Field, n int) []*big.Int {
	p := f.Modulus()
	half := new(big.Int).Rsh(p, 1)
	out := []*big.Int{
		big.NewInt(0), big.NewInt(1), big.NewInt(2), new(big.Int).Sub(p, big.NewInt(1)),
		new(big.Int).Sub(p, big.NewInt(2)), half, new(big.Int).Add(half, big.NewInt(1)), f.B(),
		new(big.Int).Mod(new(big.Int).Lsh(big.NewInt(1), uint(64*f.limbs)), p),
	}
	v := f.NewVec(n)
	if err := f.Random(v, shake("samples")); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		out = append(out, f.Big(v.At(i)))
	}
	return out
}

// check compares every operation on a and b with big integers.
func check(t *testing.T, f *Field, a, b *big.Int) {
	t.Helper()
	p := f.Modulus()
	x, y, z := f.NewElement(), f.NewElement(), f.NewElement()
	f.SetBig(x, a)
	f.SetBig(y, b)
	want := func(op string, v *big.Int) {
		t.Helper()
		if v.Mod(v, p); f.Big(z).Cmp(v) != 0 || limbsBelow(z, f.mod) != 1 {
			t.Fatalf("%s of %v and %v is %v, want %v", op, a, b, f.Big(z), v)
		}
	}
	f.Add(z, x, y)
	want("sum", new(big.Int).Add(a, b))
	f.Sub(z, x, y)
	want("difference", new(big.Int).Sub(a, b))
	f.Mul(z, x, y)
	want("product", new(big.Int).Mul(a, b))
	clear(z)
	f.mulGeneric(z, x, y)
	want("generic product", new(big.Int).Mul(a, b))
	f.Neg(z, x)
	want("negation", new(big.Int).Neg(a))
	copy(z, x)
	f.Add(z, z, z)
	want("aliased sum", new(big.Int).Lsh(a, 1))
	copy(z, x)
	f.Mul(z, z, z)
	want("aliased square", new(big.Int).Mul(a, a))
	if f.Equal(x, y) != (a.Cmp(b) == 0) || f.IsZero(x) != (a.Sign() == 0) {
		t.Fatalf("Equal is wrong for %v and %v", a, b)
	}
}

func TestSmallFieldsExhaustively(t *testing.T) {
	for _, c := range []struct {
		b int64
		m int
	}{{2, 4}, {4, 2}, {6, 4}, {16, 2}} {
		f := small(t, c.b, c.m)
		p := f.Modulus().Int64()
		if p > 300 {
			continue
		}
		inv := f.NewElement()
		x := f.NewElement()
		for a := range p {
			f.SetUint64(x, uint64(a))
			f.Inverse(inv, x)
			f.Mul(inv, inv, x)
			if f.IsZero(x) != f.IsZero(inv) || a != 0 && !f.Equal(inv, f.one) {
				t.Fatalf("inverse of %d mod %d", a, p)
			}
			for b := range p {
				check(t, f, big.NewInt(a), big.NewInt(b))
			}
		}
	}
}

func TestArithmetic(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		v := samples(t, f, 6)
		for _, a := range v {
			for _, b := range v {
				check(t, f, a, b)
			}
		}
		if f.Bits() > 1024 {
			return
		}
		x, y := f.NewElement(), f.NewElement()
		for _, a := range v {
			f.SetBig(x, a)
			f.Inverse(y, x)
			want := new(big.Int)
			if a.Sign() != 0 {
				want.ModInverse(a, f.p)
			}
			if f.Big(y).Cmp(want) != 0 {
				t.Fatalf("inverse of %v", a)
			}
		}
	})
}

// TestMulUnreduced checks that one operand may be any integer of L limbs.
func TestMulUnreduced(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		x, z := f.NewElement(), f.NewElement()
		for i := range x {
			x[i] = ^uint64(0)
		}
		want := new(big.Int).Lsh(big.NewInt(1), uint(64*f.limbs))
		want.Sub(want, big.NewInt(1)).Mod(want, f.p)
		f.Mul(z, x, f.rr)
		if f.Big(z).Cmp(want) != 0 {
			t.Fatal("first operand")
		}
		f.Mul(z, f.rr, x)
		if f.Big(z).Cmp(want) != 0 {
			t.Fatal("second operand")
		}
	})
}

func TestVectors(t *testing.T) {
	for _, s := range []spec{specs[0], specs[3], specs[17], specs[5], {pow2(128, 40192), 2, 15}} {
		f := s.field(t)
		const n = 9
		a, b, s := f.NewVec(n), f.NewVec(n), f.NewVec(1)
		r := shake("vectors")
		for _, v := range []Vec{a, b, s} {
			if err := f.Random(v, r); err != nil {
				t.Fatal(err)
			}
		}
		sum, diff, prod, neg, scaled, acc := f.NewVec(n), f.NewVec(n), f.NewVec(n), f.NewVec(n), f.NewVec(n), b.Clone()
		f.AddVec(sum, a, b)
		f.SubVec(diff, a, b)
		f.MulVec(prod, a, b)
		f.NegVec(neg, a)
		f.ScaleVec(scaled, a, s.At(0))
		f.MulAddVec(acc, a, s.At(0))
		inner, z, total := f.NewElement(), f.NewElement(), f.NewElement()
		f.Inner(inner, a, b)
		for i := range n {
			x, y := a.At(i), b.At(i)
			for _, c := range []struct {
				name string
				op   func()
				got  Vec
			}{
				{"AddVec", func() { f.Add(z, x, y) }, sum},
				{"SubVec", func() { f.Sub(z, x, y) }, diff},
				{"NegVec", func() { f.Neg(z, x) }, neg},
				{"ScaleVec", func() { f.Mul(z, x, s.At(0)) }, scaled},
				{"MulAddVec", func() { f.Mul(z, x, s.At(0)); f.Add(z, z, y) }, acc},
				{"MulVec", func() { f.Mul(z, x, y) }, prod},
			} {
				if c.op(); !f.Equal(z, c.got.At(i)) {
					t.Fatalf("%s at %d", c.name, i)
				}
			}
			f.Add(total, total, z)
		}
		if !f.Equal(total, inner) {
			t.Fatal("Inner")
		}
		f.Fill(a, s.At(0))
		if !f.Equal(a.At(n-1), s.At(0)) || f.EqualVec(a, b) || !f.EqualVec(a, a.Clone()) || f.EqualVec(a, a.Slice(0, 3)) {
			t.Fatal("Fill or EqualVec is wrong")
		}
	}
}

func TestEncoding(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		ints := samples(t, f, 4)
		v, back := f.NewVec(len(ints)), f.NewVec(len(ints))
		for i, a := range ints {
			f.SetBig(v.At(i), a)
		}
		buf := make([]byte, len(ints)*f.Size())
		f.EncodeVec(buf, v)
		for i, a := range ints {
			big := a.FillBytes(make([]byte, f.Size()))
			for k := range big {
				if big[k] != buf[(i+1)*f.Size()-1-k] {
					t.Fatalf("encoding of %v", a)
				}
			}
		}
		if err := f.DecodeVec(back, buf); err != nil || !f.EqualVec(v, back) {
			t.Fatalf("decoding: %v", err)
		}
		if err := f.DecodeVec(back, buf[1:]); !errors.Is(err, ErrLength) {
			t.Fatalf("short input: %v", err)
		}
		x := f.NewElement()
		if err := f.Decode(x, append(buf[:f.Size():f.Size()], 0)); !errors.Is(err, ErrLength) {
			t.Fatalf("long input: %v", err)
		}
		for _, d := range []int64{0, 1} {
			raw := new(big.Int).Add(f.p, big.NewInt(d)).FillBytes(make([]byte, f.Size()))
			for i, j := 0, len(raw)-1; i < j; i, j = i+1, j-1 {
				raw[i], raw[j] = raw[j], raw[i]
			}
			copy(buf[f.Size():], raw)
			if err := f.DecodeVec(back, buf); !errors.Is(err, ErrRange) || !f.EqualVec(back, f.NewVec(back.Len())) {
				t.Fatalf("p+%d accepted: %v", d, err)
			}
		}
		if err := f.Decode(x, bytes.Repeat([]byte{0xff}, f.Size())); !errors.Is(err, ErrRange) {
			t.Fatalf("all ones accepted: %v", err)
		}
	})
}

func TestRandom(t *testing.T) {
	f := small(t, 240, 8)
	v := f.NewVec(1000)
	if err := f.Random(v, shake("random")); err != nil {
		t.Fatal(err)
	}
	// The bytes must also match the definition.
	r, raw := shake("random"), make([]byte, 8)
	for i := range v.Len() {
		want := f.p
		for want.Cmp(f.p) >= 0 {
			io.ReadFull(r, raw)
			want = new(big.Int)
			for k := 7; k >= 0; k-- {
				want.Lsh(want, 8).Add(want, big.NewInt(int64(raw[k])))
			}
		}
		if f.Big(v.At(i)).Cmp(want) != 0 {
			t.Fatalf("element %d", i)
		}
	}
	// Splitting the request in two yields the same elements.
	w, s := f.NewVec(1000), shake("random")
	if f.Random(w.Slice(0, 3), s) != nil || f.Random(w.Slice(3, 1000), s) != nil || !f.EqualVec(v, w) {
		t.Fatal("result depends on the vector's length")
	}
	if err := f.Random(v, bytes.NewReader(make([]byte, 100))); !errors.Is(err, io.ErrUnexpectedEOF) || !f.IsZero(v.At(0)) {
		t.Fatalf("short source: %v", err)
	}
	// Masked and uniform on a small field: 17 values, cut to 5 bits.
	g := small(t, 2, 4)
	count := make([]int, 17)
	u := g.NewVec(17000)
	g.Random(u, shake("small"))
	for i := range u.Len() {
		count[g.Big(u.At(i)).Int64()]++
	}
	for x, c := range count {
		if c < 850 || c > 1150 {
			t.Fatalf("%d drawn %d times of 17000", x, c)
		}
	}
}

func TestNewRefuses(t *testing.T) {
	huge := new(big.Int).Lsh(big.NewInt(1), 5000)
	for name, c := range map[string]struct {
		b *big.Int
		m int
	}{
		"nil":                 {nil, 2},
		"odd b":               {big.NewInt(1<<32 - 5121), 2},
		"zero":                {big.NewInt(0), 2},
		"negative":            {big.NewInt(-2), 64},
		"composite":           {big.NewInt(1<<32 - 2), 2},
		"M no power of two":   {big.NewInt(1 << 30), 3},
		"M zero":              {big.NewInt(240), 0},
		"too small":           {big.NewInt(16), 2},
		"too large":           {huge, 1},
		"just over 4096 bits": {new(big.Int).Lsh(big.NewInt(1), 64), 64},
		"M huge":              {big.NewInt(2), 1 << 40},
	} {
		if _, err := New(c.b, c.m); !errors.Is(err, ErrParameters) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	fields := []*Field{specs[0].field(f), specs[1].field(f), specs[2].field(f), specs[3].field(f), specs[4].field(f)}
	f.Add(0, bytes.Repeat([]byte{0xff}, 8))
	f.Add(1, make([]byte, 16))
	f.Add(4, []byte{})
	f.Fuzz(func(t *testing.T, which int, data []byte) {
		fd := fields[uint(which)%uint(len(fields))]
		v := fd.NewVec(len(data) / fd.Size())
		if err := fd.DecodeVec(v, data); err != nil {
			return
		}
		out := make([]byte, len(data))
		if fd.EncodeVec(out, v); !bytes.Equal(out, data) {
			t.Fatal("not canonical")
		}
	})
}
