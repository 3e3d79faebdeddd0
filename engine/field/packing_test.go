package field

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

// vector is one entry of testdata/packing.json; testdata/packing.py describes its fields.
type vector struct {
	B       string
	M, LogN int

	Xi, Coeffs, First, Digits, Extreme string
	Centres                            []string
}

//go:embed testdata/packing.json
var packingVectors []byte

func vectors(t *testing.T) map[spec]vector {
	var rows []vector
	d := json.NewDecoder(bytes.NewReader(packingVectors))
	d.DisallowUnknownFields()
	if err := d.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	out := map[spec]vector{}
	for _, v := range rows {
		out[spec{v.B, v.M, v.LogN}] = v
	}
	return out
}

func newPacking(t testing.TB, f *Field, logN int) *Packing {
	p, err := NewPacking(f, logN)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func encodingDigest(f *Field, v Vec) string {
	buf := make([]byte, v.Len()*f.Size())
	f.EncodeVec(buf, v)
	sum := sha256.Sum256(buf)
	return hex.EncodeToString(sum[:])
}

// digitDigest hashes 24 bytes of two's complement per coefficient.
func digitDigest(v intpoly.Poly) string {
	h := sha256.New()
	var wide [3]uint64
	for k := range v.N() {
		signExtend(wide[:], v.Coeff(k))
		for _, w := range wide {
			var b [8]byte
			for i := range b {
				b[i] = byte(w >> (8 * i))
			}
			h.Write(b[:])
		}
	}
	return hex.EncodeToString(h.Sum(nil))
}

// signed returns two's-complement words as an integer.
func signed(w []uint64) *big.Int {
	v := new(big.Int)
	for i := len(w) - 1; i >= 0; i-- {
		v.Lsh(v, 64).Or(v, new(big.Int).SetUint64(w[i]))
	}
	if w[len(w)-1]>>63 == 1 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(64*len(w))))
	}
	return v
}

func maxAbs(v intpoly.Poly) *big.Int {
	out := new(big.Int)
	for k := range v.N() {
		if a := signed(v.Coeff(k)); a.CmpAbs(out) > 0 {
			out.Abs(a)
		}
	}
	return out
}

func TestKnownAnswers(t *testing.T) {
	all := vectors(t)
	if len(all) != len(specs) {
		t.Fatalf("%d vectors for %d fields", len(all), len(specs))
	}
	forFields(t, func(t *testing.T, s spec, f *Field) {
		want, ok := all[s]
		if !ok {
			t.Fatal("no vector")
		}
		p := newPacking(t, f, s.logN)
		xi := f.NewVec(1)
		f.SetBig(xi.At(0), p.Xi())
		if encodingDigest(f, xi) != want.Xi {
			t.Fatal("xi")
		}
		slots := f.NewVec(p.D())
		r := shake(fmt.Sprintf("lodge packing %s %d %d", s.b, s.m, p.N()))
		block := make([]byte, f.Size()+16)
		for i := range p.D() {
			io.ReadFull(r, block)
			for a, b := 0, len(block)-1; a < b; a, b = a+1, b-1 {
				block[a], block[b] = block[b], block[a]
			}
			f.SetBig(slots.At(i), new(big.Int).SetBytes(block))
		}
		c, back := f.NewVec(p.D()), f.NewVec(p.D())
		p.Pack(c, slots)
		if f.Big(c.At(0)).Text(16) != want.First || encodingDigest(f, c) != want.Coeffs {
			t.Fatal("coefficients")
		}
		if p.Unpack(back, c); !f.EqualVec(back, slots) {
			t.Fatal("Unpack is not the inverse of Pack")
		}
		for _, words := range []int{p.DigitWords(), p.DigitWords() + 1} {
			e := intpoly.New(p.N(), words)
			if p.Digits(e, c); digitDigest(e) != want.Digits {
				t.Fatalf("digits, %d words", words)
			}
			if p.Reduce(back, e); !f.EqualVec(back, c) {
				t.Fatal("Reduce is not the inverse of Digits")
			}
			checkCentres(t, p, e, want.Centres)
		}
		extreme := f.NewVec(p.D())
		half := new(big.Int).Rsh(f.p, 1)
		for i, v := range []*big.Int{
			big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(-2), half, new(big.Int).Add(half, big.NewInt(1)),
		} {
			f.SetBig(extreme.At(i), v)
		}
		e := intpoly.New(p.N(), 2)
		if p.Digits(e, extreme); digitDigest(e) != want.Extreme {
			t.Fatal("the digits of extreme values are wrong")
		}
	})
}

// checkCentres compares the upper words of centres with known values, up to rounding.
func checkCentres(t *testing.T, p *Packing, e intpoly.Poly, want []string) {
	t.Helper()
	got := make([]uint64, 2*p.N())
	p.CosetCentres(got, make([]int64, p.N()), e)
	for i := range min(4, p.M()) {
		for j := range 8 {
			w, err := strconv.ParseUint(want[8*i+j], 16, 64)
			if err != nil {
				t.Fatal(err)
			}
			if d := got[2*(i*p.D()+j)] - w + 1; d > 2 {
				t.Fatalf("the centre of coefficient %d of column %d is wrong", i, j)
			}
		}
	}
}

// TestPackingDefinition evaluates at xi^(5^(iM/2)) on small rings, for every plaintext of one
// nonzero coefficient, and checks that the rotation automorphism rotates.
func TestPackingDefinition(t *testing.T) {
	for _, c := range []struct {
		b       int64
		m, logN int
	}{{2, 4, 2}, {2, 4, 3}, {4, 2, 1}, {4, 2, 3}, {6, 4, 3}, {16, 2, 7}, {16, 4, 7}, {16, 4, 10}} {
		f := small(t, c.b, c.m)
		p := newPacking(t, f, c.logN)
		n, d := p.N(), p.D()
		xi := p.Xi()
		if new(big.Int).Exp(xi, big.NewInt(int64(d)), f.p).Cmp(f.b) != 0 ||
			new(big.Int).Exp(xi, big.NewInt(int64(n)), f.p).Cmp(new(big.Int).Sub(f.p, big.NewInt(1))) != 0 {
			t.Fatal("xi")
		}
		unit, slots, coeffs := f.NewVec(d), f.NewVec(d), f.NewVec(d)
		mu := intpoly.New(n, 1)
		for j := range d {
			unit.Wipe()
			copy(unit.At(j), f.one)
			p.Unpack(slots, unit)
			exponent := 1
			for i := range d {
				want := new(big.Int).Exp(xi, big.NewInt(int64(exponent*j)), f.p)
				if f.Big(slots.At(i)).Cmp(want) != 0 || exponent != p.Galois(i) || p.Galois(i-d) != p.Galois(i+d) {
					t.Fatalf("p=%v N=%d: X^%d at slot %d", f.p, n, j, i)
				}
				exponent = exponent * p.Galois(1) % (2 * n)
			}
			for r := range d { // X -> X^g on X^j
				mu.Wipe()
				at := j * p.Galois(r) % (2 * n)
				mu.C[at%n] = 1
				if at >= n {
					mu.C[at%n] = ^uint64(0)
				}
				p.Reduce(coeffs, mu)
				p.Unpack(coeffs, coeffs)
				if !f.EqualVec(coeffs.Slice(0, d-r), slots.Slice(r, d)) || !f.EqualVec(coeffs.Slice(d-r, d), slots.Slice(0, r)) {
					t.Fatalf("the rotation by %d is wrong", r)
				}
				if d > 32 {
					break
				}
			}
			if p.Pack(slots, slots); !f.EqualVec(slots, unit) {
				t.Fatal("Pack in place differs")
			}
		}
	}
}

func TestDigitsExhaustively(t *testing.T) {
	for _, c := range []struct {
		b       int64
		m, logN int
	}{{2, 4, 3}, {4, 2, 3}, {6, 4, 3}, {16, 2, 5}, {16, 4, 10}} {
		f := small(t, c.b, c.m)
		p := newPacking(t, f, c.logN)
		v, back, e := f.NewVec(p.D()), f.NewVec(p.D()), intpoly.New(p.N(), 1)
		bound := big.NewInt(c.b / 2)
		for x := int64(0); x < f.p.Int64(); x += int64(p.D()) {
			for j := range p.D() {
				f.SetUint64(v.At(j), uint64(x)+uint64(j))
			}
			p.Digits(e, v)
			if p.Reduce(back, e); !f.EqualVec(v, back) || maxAbs(e).Cmp(bound) > 0 {
				t.Fatalf("the digits of %d.. mod %v are wrong", x, f.p)
			}
		}
	}
}

// TestReduce compares with big integers, on the widest and on random coefficients of 1 to 4 words.
func TestReduce(t *testing.T) {
	forFields(t, func(t *testing.T, s spec, f *Field) {
		p := newPacking(t, f, s.logN)
		out := f.NewVec(p.D())
		for words := 1; words <= 4; words++ {
			mu := intpoly.New(p.N(), words)
			raw := make([]byte, 8)
			r := shake("reduce")
			columns := min(p.D(), 12)
			for i := range p.M() {
				for j := range columns {
					w := mu.Coeff(i*p.D() + j)
					for k := range w {
						io.ReadFull(r, raw)
						for _, b := range raw {
							w[k] = w[k]<<8 | uint64(b)
						}
						switch top := k == words-1; {
						case j == 0 && top: // smallest
							w[k] = 1 << 63
						case j == 0:
							w[k] = 0
						case j == 1 && top: // largest
							w[k] = 1<<63 - 1
						case j == 1 || j == 2: // -1
							w[k] = ^uint64(0)
						}
					}
				}
			}
			p.Reduce(out, mu)
			for j := range columns {
				want := new(big.Int)
				for i := p.M() - 1; i >= 0; i-- {
					want.Mul(want, f.b).Add(want, signed(mu.Coeff(i*p.D()+j)))
				}
				if want.Mod(want, f.p).Cmp(f.Big(out.At(j))) != 0 {
					t.Fatalf("%d words, column %d", words, j)
				}
			}
		}
	})
}

func TestPackConstant(t *testing.T) {
	s := specs[3]
	f := s.field(t)
	p := newPacking(t, f, s.logN)
	alpha, c, slots := f.NewVec(1), f.NewVec(p.D()), f.NewVec(p.D())
	f.Random(alpha, shake("alpha"))
	f.Random(c, shake("c"))
	if p.IsConstant(c) {
		t.Fatal("random plaintext is constant")
	}
	p.PackConstant(c, alpha.At(0))
	p.Unpack(slots, c)
	want := f.NewVec(p.D())
	if f.Fill(want, alpha.At(0)); !f.EqualVec(slots, want) || !p.IsConstant(c) {
		t.Fatal("the slots of a constant are wrong")
	}
	if p.Pack(slots, slots); !f.EqualVec(slots, c) {
		t.Fatal("Pack of a constant is wrong")
	}
	e := intpoly.New(p.N(), 1)
	p.Digits(e, c)
	z := make([]int64, p.N())
	for i := range p.M() {
		z[i*p.D()] = int64(i) - 3
	}
	mu := intpoly.New(p.N(), 1)
	p.AssembleRandPack(mu, e, z)
	for k := range p.N() {
		if k%p.D() != 0 && (e.C[k] != 0 || mu.C[k] != 0) {
			t.Fatalf("coefficient %d is outside the subring", k)
		}
	}
	if p.Reduce(slots, mu); !f.EqualVec(slots, c) {
		t.Fatal("plaintext")
	}
}

func TestNewPackingRefuses(t *testing.T) {
	f240 := specs[0].field(t)
	wide := new(big.Int).Lsh(big.NewInt(1), 129) // any b of more than 128 bits
	var fWide *Field
	for fWide == nil {
		wide.Add(wide, big.NewInt(2))
		fWide, _ = newField(wide, 2)
	}
	for name, c := range map[string]struct {
		f    *Field
		logN int
	}{
		"negative":     {f240, -1},
		"huge":         {f240, 60},
		"2N too large": {small(t, 6, 4), 4},
		"M above N":    {small(t, 2, 4), 1},
		"M = 1":        {small(t, 16, 1), 2},
		"wide b":       {fWide, 1},
	} {
		if _, err := NewPacking(c.f, c.logN); !errors.Is(err, ErrParameters) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
