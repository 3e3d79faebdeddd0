package ot

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
)

var moduli = []uint64{3, 6, 257, 65537, 65537 << 7, 2130706433, 2130706433 << 16, 1<<61 - 1, 3 << 32, 1<<60 + 4}

func TestSharesOfProductsOfResidues(t *testing.T) {
	const n = 100
	for _, m := range moduli {
		r, err := NewResidues(m)
		if err != nil {
			t.Fatal(err)
		}
		sender, receiver := pair(t, fmt.Sprint("residues", m))
		x := random((2*n+63)/64, m)
		extend(t, sender, receiver, x, 2*n)
		for half := range 2 {
			d, u, v := random(n, m), make([]uint64, n), make([]uint64, n)
			for i := range d {
				d[i] %= m
			}
			d[0], d[1] = 0, m-1
			c := slices.Clone(d)
			if err := errors.Join(sender.Batch().Residues(u, c, c, r), receiver.Batch().Residues(v, c, r)); err != nil {
				t.Fatal(err)
			}
			for j := range n {
				if u[j] >= m || v[j] >= m || c[j] >= m || (u[j]+v[j])%m != d[j]*choice(x, half*n+j) {
					t.Fatalf("modulo %d: %d + %d for %d times %d", m, u[j], v[j], d[j], choice(x, half*n+j))
				}
			}
		}
		if sender.batch.rows[5] != (block{}) || receiver.batch.rows[5] != (block{}) {
			t.Error("a used row was not erased")
		}
		one := make([]uint64, 1)
		if err := sender.Batch().Residues(one, one, one, r); !errors.Is(err, ErrSpent) {
			t.Error(err)
		}
		if err := receiver.Batch().Residues(one, one, r); !errors.Is(err, ErrSpent) {
			t.Error(err)
		}
	}
}

// Residues match the definition for 128 bits, and classes of consecutive residues are equally
// frequent.
func TestResidues(t *testing.T) {
	for _, m := range moduli {
		r, err := NewResidues(m)
		if err != nil {
			t.Fatal(err)
		}
		hi, lo := random(6400, m), random(6400, m+1)
		var classes [64]int
		for i := range hi {
			x := new(big.Int).SetUint64(hi[i])
			x.Lsh(x, 64).Or(x, new(big.Int).SetUint64(lo[i]))
			p := new(big.Int).SetUint64(m >> r.twos)
			low := new(big.Int).And(x, big.NewInt(1<<r.twos-1))
			want := x.Mod(x.Rsh(x, uint(r.twos)), p).Uint64() + low.Uint64()*p.Uint64()
			got := r.of(hi[i], lo[i])
			if got != want || got >= m {
				t.Fatalf("modulo %d: %d for %d, %d, want %d", m, got, hi[i], lo[i], want)
			}
			classes[int(float64(got)/float64(m)*64)]++
		}
		if m < 1<<16 {
			continue // classes have different sizes
		}
		for c, k := range classes { // 100 each, with deviation 10
			if math.Abs(float64(k)-100) > 60 {
				t.Errorf("modulo %d: class %d has %d of 6400", m, c, k)
			}
		}
	}
}

// Both halves of the hash match the definition.
func TestWide(t *testing.T) {
	h := newHasher(ID{7})
	for j := range uint64(10) {
		x := block{lo: j * 0x9e3779b97f4a7c15, hi: ^j}
		hi, lo := h.wide(j, x)
		if lo != h.sum(j, x) {
			t.Error("the lower half differs")
		}
		var in, once, twice [16]byte
		putBlock(in[:], x)
		h.pi.Encrypt(once[:], in[:])
		first := getBlock(once[:])
		putBlock(in[:], block{lo: first.lo ^ j, hi: first.hi})
		h.pi.Encrypt(twice[:], in[:])
		if second := getBlock(twice[:]); hi != first.hi^second.hi || lo != first.lo^second.lo {
			t.Error("H is not pi(pi(x) + j) + pi(x)")
		}
	}
}

func TestModuliAreRefused(t *testing.T) {
	for _, m := range []uint64{0, 1, 2, 1 << 40, 1<<61 + 1, 1 << 63, 3 << 33} {
		if _, err := NewResidues(m); !errors.Is(err, ErrModulus) {
			t.Errorf("%d: %v", m, err)
		}
	}
}

func putBlock(b []byte, x block) {
	for i := range 8 {
		b[i], b[8+i] = byte(x.lo>>(8*i)), byte(x.hi>>(8*i))
	}
}

func getBlock(b []byte) (x block) {
	for i := range 8 {
		x.lo |= uint64(b[i]) << (8 * i)
		x.hi |= uint64(b[8+i]) << (8 * i)
	}
	return x
}
