package sigma

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha3"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/big"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

func xof(label string) io.Reader {
	h := sha3.NewSHAKE256()
	io.WriteString(h, label)
	return h
}

func draw(t *testing.T, r io.Reader, v, u, stride, count int) Challenge {
	t.Helper()
	c, err := NewChallenge(r, v, u, stride, count)
	if err != nil {
		t.Fatal(err)
	}
	if c.Repetitions() != v || c.Witnesses() != u {
		t.Fatalf("a challenge of %d x %d, want %d x %d", c.Repetitions(), c.Witnesses(), v, u)
	}
	return c
}

// table lists the exponents by repetition and then witness.
func table(c Challenge) (list []int) {
	for j := range c.Repetitions() {
		for i := range c.Witnesses() {
			list = append(list, c.At(j, i))
		}
	}
	return list
}

// Entry (j, i) consists of bytes 2(ju+i) and 2(ju+i)+1, low byte first, reduced to the size of the
// space.
func TestChallengeIsReadFromTheStream(t *testing.T) {
	for _, space := range []struct{ stride, count int }{{1, 2}, {1, 32}, {1, 256}, {1, 512}, {1, 1 << 16}, {64, 8}, {8, 1 << 12}} {
		const v, u = 5, 7
		raw := make([]byte, 2*v*u)
		io.ReadFull(xof("challenge"), raw)
		got := table(draw(t, bytes.NewReader(raw), v, u, space.stride, space.count))
		for k, e := range got {
			if want := int(binary.LittleEndian.Uint16(raw[2*k:])) % space.count * space.stride; e != want {
				t.Errorf("%d monomials with stride %d: entry %d is %d, want %d", space.count, space.stride, k, e, want)
			}
		}
		if _, err := NewChallenge(bytes.NewReader(raw[1:]), v, u, space.stride, space.count); err == nil {
			t.Error("accepted a stream that ends")
		}
	}
}

// The digest of one challenge is fixed: parties of all versions must derive the same challenge.
func TestPinnedChallenge(t *testing.T) {
	h := sha256.New()
	for _, e := range table(draw(t, xof("pinned"), 15, 33, 1, 512)) {
		binary.Write(h, binary.LittleEndian, uint32(e))
	}
	const want = "e4fe0946dc3112a97c201151abcdda98"
	if got := hex.EncodeToString(h.Sum(nil)[:16]); got != want {
		t.Errorf("challenge %s, want %s", got, want)
	}
}

// Each monomial of the space, including negative ones, is equally likely, and no other monomial
// occurs.
func TestChallengeIsUniform(t *testing.T) {
	for _, space := range []struct{ stride, count int }{{1, 32}, {1, 1024}, {64, 8}} {
		const each = 400
		v, u := space.count/4, 4*each
		seen := map[int]int{}
		for _, e := range table(draw(t, xof("uniform"), v, u, space.stride, space.count)) {
			seen[e]++
		}
		if len(seen) != space.count {
			t.Errorf("%d monomials, want %d", len(seen), space.count)
		}
		for e, n := range seen {
			// 400 draws are expected, with a standard deviation of 20
			if e < 0 || e%space.stride != 0 || e/space.stride >= space.count || n < each-120 || n > each+120 {
				t.Errorf("%d monomials with stride %d: exponent %d occurs %d times, want about %d", space.count, space.stride, e, n, each)
			}
		}
	}
}

// Repetitions make guessing hard only if their challenges are independent. The challenges of two
// witnesses are independent, too.
func TestRowsAndColumnsAreIndependent(t *testing.T) {
	const v, u, count = 16, 16, 512
	c := draw(t, xof("rows"), v, u, 1, count)
	row := func(j int) (list []int) {
		for i := range u {
			list = append(list, c.At(j, i))
		}
		return list
	}
	column := func(i int) (list []int) {
		for j := range v {
			list = append(list, c.At(j, i))
		}
		return list
	}
	for _, lines := range []func(int) []int{row, column} {
		for a := range v {
			for b := range a {
				x, y := lines(a), lines(b)
				var shifts []int
				same := 0
				for k := range x {
					shifts = append(shifts, (x[k]-y[k]+count)%count)
					if x[k] == y[k] {
						same++
					}
				}
				slices.Sort(shifts)
				// of 16 pairs, each equal with probability 1/512
				if same > 3 || len(slices.Compact(shifts)) < u-4 {
					t.Errorf("lines %d and %d depend on each other: %v, %v", a, b, x, y)
				}
			}
		}
	}
}

// z_j = y_j + sum_i X^(w_ji) x_i, computed by the definition with big integers.
func TestRespond(t *testing.T) {
	const n, v, u, words = 16, 3, 4, 2
	random := func(label string) intpoly.Poly {
		p, r, raw := intpoly.New(n, words), xof(label), make([]byte, 9)
		for k := range n {
			io.ReadFull(r, raw)
			x := new(big.Int).SetBytes(raw[1:])
			if raw[0]&1 == 1 {
				x.Neg(x)
			}
			p.SetBig(k, x)
		}
		return p
	}
	c := draw(t, xof("respond"), v, u, 1, 2*n)
	var x []intpoly.Poly
	for i := range u {
		x = append(x, random("witness "+string(rune('0'+i))))
	}
	for j := range v {
		z := random("mask " + string(rune('0'+j)))
		want := make([]*big.Int, n)
		for k := range want {
			want[k] = z.Big(k)
		}
		for i := range u {
			for k := range n {
				at, value := k+c.At(j, i), x[i].Big(k)
				if at/n%2 == 1 { // X^n = -1
					value.Neg(value)
				}
				want[at%n].Add(want[at%n], value)
			}
		}
		c.Respond(z, j, x)
		for k := range want {
			if z.Big(k).Cmp(want[k]) != 0 {
				t.Fatalf("repetition %d: coefficient %d is %v, want %v", j, k, z.Big(k), want[k])
			}
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("accepted a different number of witnesses")
		}
	}()
	c.Respond(random("mask"), 0, x[1:])
}

func TestNewChallengeRefuses(t *testing.T) {
	for _, c := range []struct{ v, u, stride, count int }{
		{1, 1, 1, 0}, {1, 1, 1, 1}, {1, 1, 1, 3}, {1, 1, 1, -2}, {1, 1, 1, 1 << 17}, {1, 1, 0, 2}, {0, 1, 1, 2}, {1, 0, 1, 2},
	} {
		if _, err := NewChallenge(xof("refused"), c.v, c.u, c.stride, c.count); err == nil {
			t.Errorf("accepted %+v", c)
		}
	}
}
