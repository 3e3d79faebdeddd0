package kernel

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// Packing is compared with a big integer for every width, at lengths around the sizes of vectors.
func TestPack(t *testing.T) {
	onPaths(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(81, 81))
		for w := 1; w <= 64; w++ {
			for _, n := range []int{0, 1, 7, 8, 9, 15, 16, 17, 24, 31, 40, 63, 64, 65, 100, 256} {
				v := extremeWords(r, n)
				want := new(big.Int)
				for i, x := range slices.Backward(v) {
					v[i] = x >> (64 - w)
					want.Or(want.Lsh(want, uint(w)), new(big.Int).SetUint64(v[i]))
				}
				size := (n*w + 7) / 8
				got := bytes.Repeat([]byte{0xa5}, size+9)
				Pack(got, v, w)
				if !bytes.Equal(got[size:], bytes.Repeat([]byte{0xa5}, 9)) {
					t.Fatalf("%d values of %d bits: bytes after the end were written", n, w)
				}
				slices.Reverse(got[:size])
				if new(big.Int).SetBytes(got[:size]).Cmp(want) != 0 {
					t.Fatalf("%d values of %d bits: the packed bytes are wrong", n, w)
				}
				slices.Reverse(got[:size])
				back := fill(make([]uint64, n+2), 77)
				if !Unpack(back[:n], got, w) || !slices.Equal(back[:n], v) || back[n] != 77 || back[n+1] != 77 {
					t.Fatalf("%d values of %d bits change when they are packed and unpacked", n, w)
				}
				for bit := n * w % 8; bit > 0 && bit < 8; bit++ {
					got[size-1] ^= 1 << bit
					if Unpack(back[:n], got, w) {
						t.Fatalf("%d values of %d bits: a set bit %d after the last value was accepted", n, w, bit)
					}
					got[size-1] ^= 1 << bit
				}
			}
		}
	})
}

func TestPackRefuses(t *testing.T) {
	for name, f := range map[string]func(){
		"no bits":       func() { Pack(make([]byte, 64), make([]uint64, 8), 0) },
		"too many bits": func() { Unpack(make([]uint64, 8), make([]byte, 128), 65) },
		"short to":      func() { Pack(make([]byte, 46, 64), make([]uint64, 8), 47) },
		"short from":    func() { Unpack(make([]uint64, 8), make([]byte, 46, 64), 47) },
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

func BenchmarkPack(b *testing.B) {
	const n = 1 << 14
	v := make([]uint64, n)
	for _, w := range []int{14, 47} {
		packed := make([]byte, PackedSize(n, w))
		for name, f := range map[string]func(){
			"pack":   func() { Pack(packed, v, w) },
			"unpack": func() { Unpack(v, packed, w) },
		} {
			b.Run(fmt.Sprintf("%s/%d", name, w), func(b *testing.B) {
				benchmarkPaths(b, func(b *testing.B) {
					for b.Loop() {
						f()
					}
				})
			})
		}
	}
}
