package kernel

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// Compares digits with divisions, for integers at both ends of the range, next to every power of
// the base, next to multiples of powers, and random ones, in even bases of many lengths and for
// every number of digits that has a kernel.
func TestWideDigits(t *testing.T) {
	if Best() < IFMA {
		t.Skip("no kernel")
	}
	r := rand.New(rand.NewPCG(53, 53))
	one := big.NewInt(1)
	for _, base := range []uint64{
		ones - 55, ones - 1, 1 << 63, 1<<63 + 2, 1<<63 - 2, 1 << 52, 1<<52 - 2, 1<<53 + 2, 1<<33 + 2, 1 << 60 / 16 * 15,
	} {
		for _, count := range []int{3, 4, 5, 8, 13, 16, 32, 63, 64, 100} {
			if count > 32 && testing.Short() {
				continue
			}
			radix := new(big.Int).SetUint64(base)
			power := new(big.Int).Exp(radix, big.NewInt(int64(count)), nil)
			m := new(big.Int).Add(power, one)
			n := (m.BitLen() + 63) / 64
			if n < 3 {
				continue
			}
			w := NewWide(words(m, n))
			rad := w.Radix(base, count)
			if rad == nil {
				if limbBits*w.limbs-m.BitLen() >= radixGuard {
					t.Errorf("base %d, %d digits: Radix returned nil", base, count)
				}
				continue
			}
			values := []*big.Int{new(big.Int), one, power, new(big.Int).Sub(power, one), new(big.Int).Rsh(power, 1)}
			p := new(big.Int).Set(one)
			for range count {
				k := new(big.Int).SetUint64(r.Uint64N(base))
				multiple := new(big.Int).Mul(p, k)
				values = append(values, p, new(big.Int).Sub(p, one), multiple, new(big.Int).Add(multiple, one))
				if multiple.Sign() > 0 {
					values = append(values, new(big.Int).Sub(multiple, one))
				}
				p = new(big.Int).Mul(p, radix)
			}
			for range 20 {
				x := integer(extremeWords(r, n))
				values = append(values, x.Mod(x, m))
			}
			b, got := w.Buffer(), make([]uint64, rad.Words())
			for len(values) > 0 {
				some := values[:min(1+r.IntN(8), len(values))]
				values = values[len(some):]
				var x []uint64
				for _, c := range some {
					v := new(big.Int).Lsh(c, uint(64*n))
					x = append(x, words(v.Mod(v, m), n)...)
				}
				b.Digits(rad, got, x)
				for k, c := range some {
					rest, digit := new(big.Int).Set(c), new(big.Int)
					for i := range count + 1 {
						if i < count {
							rest.DivMod(rest, radix, digit)
						} else {
							digit.Set(rest)
						}
						if got[wideLanes*i+k] != digit.Uint64() {
							t.Fatalf("base %d, %d digits: digit %d of %x is %x, not %x", base, count, i, c, got[wideLanes*i+k], digit)
						}
					}
				}
			}
		}
	}
	if NewWide([]uint64{3, 2, 1}).Radix(4, 5) != nil {
		t.Error("Radix accepted a modulus that is not base^count + 1")
	}
}
