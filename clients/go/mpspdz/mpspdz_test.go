package mpspdz

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func power(base, x, exponent int64) *big.Int {
	b := new(big.Int).Lsh(big.NewInt(1), uint(base))
	b.Sub(b, big.NewInt(x)).Exp(b, big.NewInt(exponent), nil)
	return b.Add(b, big.NewInt(1))
}

// testPrimes are Lodge's fields by length, and 2^192-237.
var testPrimes = map[int]*big.Int{
	64: power(32, 5120, 2), 128: power(64, 3072, 2), 192: power(192, 238, 1), 256: power(64, 64, 4),
}

// little returns the canonical encoding of x mod p.
func little(p *big.Int, x int64) []byte { return encode(p, big.NewInt(x)) }

func encode(p, x *big.Int) []byte {
	b := new(big.Int).Mod(x, p).FillBytes(make([]byte, (p.BitLen()+7)/8))
	slices.Reverse(b)
	return b
}

// montgomeryBig returns the Montgomery form by division: slow, and obviously correct.
func montgomeryBig(p, x *big.Int) []byte {
	limbs := (p.BitLen() + 63) / 64
	y := new(big.Int).Lsh(x, uint(64*limbs))
	b := y.Mod(y, p).FillBytes(make([]byte, 8*limbs))
	slices.Reverse(b)
	return b
}

func number(t testing.TB, s string) *big.Int {
	t.Helper()
	x, ok := new(big.Int).SetString(s, 10)
	if !ok {
		t.Fatalf("%q is not a number", s)
	}
	return x
}

func TestVectors(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	var v struct {
		Elements []struct{ Prime, Value, Montgomery string }
		Headers  []struct {
			Prime    string
			KeyShare string `json:"key_share"`
			Header   string
		}
	}
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(err)
	}
	if len(v.Elements) < 3 || len(v.Headers) < 1 {
		t.Fatalf("%d elements and %d headers", len(v.Elements), len(v.Headers))
	}
	for _, e := range v.Elements {
		p, x := number(t, e.Prime), number(t, e.Value)
		got := make([]byte, 16)
		if !newMontgomery(p).convert(got, encode(p, x)) || hex.EncodeToString(got) != e.Montgomery {
			t.Errorf("%s modulo %s: %x, want %s", e.Value, e.Prime, got, e.Montgomery)
		}
		if want := montgomeryBig(p, x); hex.EncodeToString(want) != e.Montgomery {
			t.Errorf("%s modulo %s: the oracle computes %x, want %s", e.Value, e.Prime, want, e.Montgomery)
		}
	}
	for _, h := range v.Headers {
		p := number(t, h.Prime)
		dir := t.TempDir()
		tree, err := NewTree(t.Context(), dir, Options{Prime: p, Parties: 2, KeyShare: encode(p, number(t, h.KeyShare))})
		if err != nil {
			t.Fatal(err)
		}
		f, err := tree.File(Target{Kind: Bit})
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{
			"Bits-p-P0": string(unhex(t, h.Header)), "Params-Data": h.Prime + "\n1\n", "Player-MAC-Keys-p-P0": "2 " + h.KeyShare + "\n",
		} {
			path := filepath.Join(dir, "Player-Data", "2-p-128", name)
			got, err := os.ReadFile(path)
			if err != nil || string(got) != want {
				t.Errorf("%s: %q, %v; want %q", name, got, err, want)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	}
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Conversion agrees with the oracle for primes of every length, at the edges and inside. Values
// that are not below the prime are refused.
func TestMontgomery(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for bits := MinPrimeBits; bits <= MaxPrimeBits; bits++ {
		p := new(big.Int).Lsh(big.NewInt(1), uint(bits))
		switch bits % 3 { // near the top, in the middle and near the bottom of its length
		case 0:
			p.Sub(p, big.NewInt(1+2*rng.Int64N(1<<20)))
		case 1:
			p.Sub(p, new(big.Int).Rsh(p, 2)).Add(p, big.NewInt(1))
		default:
			p.Rsh(p, 1).Add(p, big.NewInt(1+2*rng.Int64N(1<<20)))
		}
		m := newMontgomery(p) // it needs an odd p, not a prime
		got := make([]byte, m.bytes())
		values := []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1)), new(big.Int).Rsh(p, 1)}
		for range 20 {
			b := make([]byte, 40)
			for i := range b {
				b[i] = byte(rng.Uint32())
			}
			values = append(values, new(big.Int).Mod(new(big.Int).SetBytes(b), p))
		}
		for _, x := range values {
			if want := montgomeryBig(p, x); !m.convert(got, encode(p, x)) || !bytes.Equal(got, want) {
				t.Fatalf("%v modulo %v: %x, want %x", x, p, got, want)
			}
		}
		top := bytes.Repeat([]byte{0xff}, m.size)
		for _, bad := range [][]byte{reversed(p.FillBytes(make([]byte, m.size))), top} {
			if m.convert(got, bad) {
				t.Fatalf("%x is accepted as an element modulo %v", bad, p)
			}
		}
	}
}

func reversed(b []byte) []byte {
	slices.Reverse(b)
	return b
}

// A file holds each value next to its MAC, for any split of the shares, and the plaintext value at
// the owner.
func TestLayout(t *testing.T) {
	p := testPrimes[128]
	for _, c := range []struct {
		target Target
		party  int
		name   string
		order  []int // of the input's elements in a record of the file
	}{
		{Target{Kind: Scalar}, 1, "Triples-p-P1", []int{0, 3, 1, 4, 2, 5}},
		{Target{Kind: Square}, 0, "Squares-p-P0", []int{0, 2, 1, 3}},
		{Target{Kind: Bit}, 2, "Bits-p-P2", []int{0, 1}},
		{Target{Kind: Inverse}, 0, "Inverses-p-P0", []int{0, 2, 1, 3}},
		{Target{Kind: Input, Owner: 1}, 0, "Inputs-p-P0-1", []int{0, 1}},
		{Target{Kind: Input, Owner: 1}, 1, "Inputs-p-P1-1", []int{0, 1, 2}},
		{Target{Kind: Matrix, Shape: Shape{1, 2, 1}}, 0, "Matrix-1x2x1-P0", []int{0, 5, 1, 6, 2, 7, 3, 8, 4, 9}},
	} {
		const records = 3
		var in, want []byte
		for r := range records {
			for i := range c.order {
				in = append(in, little(p, int64(1000*r+i))...)
				want = append(want, montgomeryBig(p, big.NewInt(int64(1000*r+c.order[i])))...)
			}
		}
		for _, step := range []int{1, 15, 16, 17, len(in)} {
			dir := t.TempDir()
			tree, err := NewTree(t.Context(), dir, Options{Prime: p, Parties: 3, Party: c.party, KeyShare: little(p, 9), Suffix: "-T0"})
			if err != nil {
				t.Fatal(err)
			}
			f, err := tree.File(c.target)
			if err != nil {
				t.Fatal(err)
			}
			for cut := range slices.Chunk(in, step) {
				if n, err := f.Write(cut); n != len(cut) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(filepath.Join(dir, "Player-Data", "3-p-128", c.name+"-T0"))
			if err != nil || !bytes.Equal(got, append(slices.Clone(tree.header), want...)) {
				t.Errorf("%s in steps of %d: %v, or different content", c.name, step, err)
			}
			if f.Records() != records || f.Bytes() != int64(len(got)) {
				t.Errorf("%s: %d records in %d bytes", c.name, f.Records(), f.Bytes())
			}
			if err := errors.Join(f.Abort(), f.Abort()); err != nil {
				t.Error(err)
			}
		}
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		target  Target
		records int64
		want    int64
	}{
		{Target{Kind: Scalar}, 0, 0}, {Target{Kind: Scalar}, 33, 0}, {Target{Kind: Scalar}, 34, 33}, {Target{Kind: Scalar}, 101, 101},
		{Target{Kind: Scalar}, 202, 202}, {Target{Kind: Scalar}, 10000, 9999}, {Target{Kind: Bit}, 100, 0}, {Target{Kind: Bit}, 101, 101},
		{Target{Kind: Bit}, 300, 202}, {Target{Kind: Square}, 51, 50}, {Target{Kind: Square}, 101, 101}, {Target{Kind: Inverse}, 102, 101},
		{Target{Kind: Input, Owner: 1}, 250, 202}, {Target{Kind: Matrix, Shape: Shape{10, 10, 10}}, 1, 0},
		{Target{Kind: Matrix, Shape: Shape{10, 10, 10}}, 101, 101}, {Target{Kind: Scalar}, -1, 0}, {Target{Kind: Scalar}, 1 << 62, 0},
		{Target{Kind: "random"}, 101, 0},
	} {
		if got := c.target.Usable(c.records); got != c.want {
			t.Errorf("%v: %d of %d, want %d", c.target, got, c.records, c.want)
		}
	}
	// The rule: count triples need ceil(3 count/101) blocks of 101 shares.
	for records := range int64(1000) {
		u := (Target{Kind: Scalar}).Usable(records)
		fits := func(count int64) bool { return (3*count+100)/101*101 <= 3*records }
		if !fits(u) || fits(u+1) {
			t.Errorf("%d usable of %d", u, records)
		}
	}
}

func TestRefusals(t *testing.T) {
	p := testPrimes[128]
	good := Options{Prime: p, Parties: 3, Party: 1, KeyShare: little(p, 7234987)}
	if _, err := NewTree(t.Context(), t.TempDir(), good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Options)
		want   error
		words  string
	}{
		"no prime":       {func(o *Options) { o.Prime = nil }, ErrPrime, ""},
		"negative":       {func(o *Options) { o.Prime = big.NewInt(-7) }, ErrPrime, ""},
		"short prime":    {func(o *Options) { o.Prime = big.NewInt(1<<62 - 57) }, ErrPrime, "it has 62 bits, but stock builds of MP-SPDZ support 64 to 256"},
		"long prime":     {func(o *Options) { o.Prime = power(64, 428, 8) }, ErrPrime, "it has 512 bits"},
		"composite":      {func(o *Options) { o.Prime = new(big.Int).Sub(p, big.NewInt(1)) }, ErrPrime, "composite"},
		"one party":      {func(o *Options) { o.Parties, o.Party = 1, 0 }, ErrOptions, ""},
		"party":          {func(o *Options) { o.Party = 3 }, ErrOptions, ""},
		"negative party": {func(o *Options) { o.Party = -1 }, ErrOptions, ""},
		"suffix":         {func(o *Options) { o.Suffix = "/../x" }, ErrOptions, "-T0"},
		"no key":         {func(o *Options) { o.KeyShare = nil }, ErrOptions, ""},
		"long key":       {func(o *Options) { o.KeyShare = append(little(p, 7234987), 0) }, ErrOptions, ""},
		"large key":      {func(o *Options) { o.KeyShare = bytes.Repeat([]byte{0xff}, 16) }, ErrOptions, ""},
	} {
		o := good
		c.change(&o)
		_, err := NewTree(t.Context(), t.TempDir(), o)
		if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.words) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := t.TempDir()
	tree, err := NewTree(t.Context(), dir, good)
	if err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{
		{}, {Kind: "random"}, {Kind: "keys"}, {Kind: Scalar, Owner: 1}, {Kind: Input, Owner: 3}, {Kind: Input, Owner: -1},
		{Kind: Scalar, Shape: Shape{1, 1, 1}}, {Kind: "convolution"}, {Kind: Matrix}, {Kind: Matrix, Shape: Shape{1, 0, 1}},
		{Kind: Matrix, Shape: Shape{1 << 12, 1 << 12, 1 << 12}}, {Kind: Matrix, Shape: Shape{1 << 40, 1 << 40, 1 << 40}},
	} {
		if _, err := tree.File(target); !errors.Is(err, ErrKind) {
			t.Errorf("%v: %v", target, err)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("refusals left %v, %v", list, err)
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, good); !strings.Contains(s, "party 1 of 3") || strings.Contains(s, fmt.Sprint(good.KeyShare)) {
			t.Errorf("%s prints %s", format, s)
		}
	}
}

// The document contains the same vectors and names as the code.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "mp-spdz.md"))
	if err != nil {
		t.Fatal(err)
	}
	vectors, err := os.ReadFile(filepath.Join("testdata", "vectors.json"))
	if err != nil {
		t.Fatal(err)
	}
	hexadecimal := regexp.MustCompile(`\b[0-9a-f]{32,}\b`).FindAll(text, -1)
	if len(hexadecimal) < 2 {
		t.Errorf("%d vectors", len(hexadecimal))
	}
	for _, v := range hexadecimal {
		if !bytes.Contains(vectors, v) {
			t.Errorf("%s is not a vector of the tests", v)
		}
	}
	shape := strings.NewReplacer("P7-8", "P<i>-<j>", "P7", "P<i>", "1x2x3", "<r>x<k>x<c>")
	for _, target := range []Target{
		{Kind: Scalar}, {Kind: Square}, {Kind: Bit}, {Kind: Inverse}, {Kind: Input, Owner: 8}, {Kind: Matrix, Shape: Shape{1, 2, 3}},
	} {
		if name := shape.Replace(target.name(7)); !bytes.Contains(text, []byte("| `"+name+"` |")) {
			t.Errorf("the table lacks %s", name)
		}
	}
}
