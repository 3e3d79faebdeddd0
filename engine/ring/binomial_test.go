package ring

import (
	"math/big"
	"math/rand/v2"
	"testing"
)

// The quotient times the divisor equals the dividend.
func TestBinomial(t *testing.T) {
	r := rand.New(rand.NewPCG(91, 91))
	tried := 0
	for _, b := range small(t) {
		for d := 1; d <= b.N(); d *= 2 {
			for _, c := range []*big.Int{big.NewInt(2), new(big.Int).Lsh(big.NewInt(3), 100), big.NewInt(-7), new(big.Int)} {
				power := new(big.Int).Exp(c, big.NewInt(int64(b.N()/d)), nil)
				if new(big.Int).GCD(nil, nil, power.Add(power, big.NewInt(1)).Abs(power), b.Modulus()).BitLen() > 1 {
					continue // there is no inverse
				}
				tried++
				z := NewBinomial(b, d, c)
				x, y, back := randomPoly(r, b), randomPoly(r, b), b.NewPoly()
				z.Divide(y, x)
				b.MulMonomial(back, y, d)
				scaled := b.NewPoly()
				residues := make([]uint64, b.Len())
				for i, q := range b.Primes() {
					residues[i] = new(big.Int).Mod(c, new(big.Int).SetUint64(q)).Uint64()
				}
				b.MulScalar(scaled, y, residues)
				b.Sub(back, back, scaled)
				if !back.Equal(x) {
					t.Fatalf("degree %d by X^%d - %v", b.N(), d, c)
				}
			}
		}
	}
	if tried < 50 {
		t.Errorf("only %d divisors", tried)
	}
}

func TestBinomialRefuses(t *testing.T) {
	b := small(t)[0]
	for name, f := range map[string]func(){
		"a degree that does not divide": func() { NewBinomial(b, 3, big.NewInt(2)) },
		"no degree":                     func() { NewBinomial(b, 0, big.NewInt(2)) },
		"no inverse":                    func() { NewBinomial(b, b.N(), big.NewInt(-1)) },
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
