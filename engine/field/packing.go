package field

import (
	"fmt"
	"math/big"
	"math/bits"
)

// Packing maps vectors of D = N/M slots over Z_p to plaintexts of R = Z[X]/(X^N+1) modulo P = X^D-b
// and back. R/P is Z_p[X]/(X^D-b), because b^M = -1; so a plaintext consists of D coefficients
// c_0..c_{D-1} in Z_p. Its slot i is its value at xi^(5^(iM/2)), where xi has order 2N and xi^D = b
// (MatriGear, appendix B.1, where the order is given as N). X -> X^(5^(rM/2)) rotates the slots
// left by r.
//
// A Packing is immutable and safe for concurrent use.
type Packing struct {
	f    *Field
	n, d int

	xi *big.Int
	// position[i] is the place of slot i after the transform.
	position []int
	// twiddles[h+k], k < h, are the D-1 factors of the forward transform at its level of h blocks.
	// inverses[h+k] are their inverses; that of the last level (h = 1) is divided by D.
	twiddles, inverses Vec
	scale              Element // 1/D

	digits digitPlan
	coset  cosetPlan
}

// NewPacking returns the packing for ring degree N = 2^logN. M >= 2 must divide N, and 2N must
// divide p-1. The field and N determine xi: let h be the smallest non-square mod p and w =
// h^((p-1)/2N). Then xi is the power w^k, with k odd and below 2M, for which (w^k)^D = b.
func NewPacking(f *Field, logN int) (*Packing, error) {
	if logN < 1 || logN > 20 {
		return nil, fmt.Errorf("%w: ring degree 2^%d is not supported", ErrParameters, logN)
	}
	n := 1 << logN
	order := new(big.Int).Sub(f.p, big.NewInt(1))
	if f.m < 2 || f.m > n || order.TrailingZeroBits() < uint(logN+1) {
		return nil, fmt.Errorf("%w: M=%d and ring degree %d need 2 <= M <= N and 2N | p-1", ErrParameters, f.m, n)
	}
	if f.b.BitLen() > 128 {
		return nil, fmt.Errorf("%w: b has %d bits; packing supports at most 128", ErrParameters, f.b.BitLen())
	}
	p := &Packing{f: f, n: n, d: n / f.m}
	if p.xi = p.root(); p.xi == nil {
		return nil, fmt.Errorf("%w: no 2N-th root of unity extends b", ErrParameters)
	}
	p.makeTransform()
	p.digits = newDigitPlan(f)
	p.coset = newCosetPlan(f)
	return p, nil
}

// root returns xi.
func (p *Packing) root() *big.Int {
	mod := p.f.p
	h := big.NewInt(2)
	for big.Jacobi(h, mod) != -1 { // then w^N = h^((p-1)/2) = -1
		h.Add(h, big.NewInt(1))
	}
	e := new(big.Int).Sub(mod, big.NewInt(1))
	w := new(big.Int).Exp(h, e.Rsh(e, uint(bits.Len(uint(p.n)))), mod)
	power := new(big.Int).Exp(w, big.NewInt(int64(p.d)), mod) // w^(Dk)
	step := new(big.Int).Mul(power, power)
	step.Mod(step, mod)
	for k := 1; k < 2*p.f.m; k += 2 {
		if power.Cmp(p.f.b) == 0 {
			return w.Exp(w, big.NewInt(int64(k)), mod)
		}
		power.Mul(power, step)
		power.Mod(power, mod)
	}
	return nil
}

// N returns the degree of the ring.
func (p *Packing) N() int { return p.n }

// D returns the number of slots, N/M.
func (p *Packing) D() int { return p.d }

// M returns the number of digits of a coefficient.
func (p *Packing) M() int { return p.f.m }

// Field returns Z_p.
func (p *Packing) Field() *Field { return p.f }

// Xi returns the root of unity that determines the order of slots. Parties must agree on it,
// because another choice permutes the slots.
func (p *Packing) Xi() *big.Int { return new(big.Int).Set(p.xi) }

// Galois returns 5^(rM/2) mod 2N, the exponent g for which X -> X^g rotates the slots left by r
// (right by -r for r < 0).
func (p *Packing) Galois(r int) int {
	mask := 2*p.n - 1
	g := 1
	for range (r%p.d + p.d) % p.d * (p.f.m / 2) % (p.n / 2) {
		g = g * 5 & mask
	}
	return g
}

// makeTransform computes position, twiddles and inverses. The forward transform splits X^n - xi^t,
// whose roots are xi^e for the exponents e with n·e = t mod 2N, into X^(n/2) - xi^(t/2) and X^(n/2)
// - xi^(t/2+N), from X^D - xi^D down to X - xi^t.
func (p *Packing) makeTransform() {
	f, mask := p.f, 2*p.n-1
	squares := f.NewVec(bits.Len(uint(p.n)) + 1) // xi^(2^k)
	f.SetBig(squares.At(0), p.xi)
	for k := 1; k < squares.Len(); k++ {
		f.Mul(squares.At(k), squares.At(k-1), squares.At(k-1))
	}
	power := func(dst Element, e int) {
		copy(dst, f.one)
		for k := 0; e>>k != 0; k++ {
			if e>>k&1 == 1 {
				f.Mul(dst, dst, squares.At(k))
			}
		}
	}

	p.scale = f.NewElement()
	f.SetUint64(p.scale, uint64(p.d))
	f.Inverse(p.scale, p.scale)
	p.twiddles, p.inverses = f.NewVec(p.d), f.NewVec(p.d)
	t := []int{p.d} // exponents of a level, block by block
	for len(t) < p.d {
		next := make([]int, 0, 2*len(t))
		for k, e := range t {
			power(p.twiddles.At(len(t)+k), e/2)
			power(p.inverses.At(len(t)+k), (2*p.n-e/2)&mask)
			next = append(next, e/2, e/2+p.n)
		}
		t = next
	}
	if p.d > 1 {
		f.Mul(p.inverses.At(1), p.inverses.At(1), p.scale)
	}

	at := make(map[int]int, p.d)
	for pos, e := range t {
		at[e&mask] = pos
	}
	p.position = make([]int, p.d)
	g, e := p.Galois(1), 1
	for i := range p.position {
		p.position[i] = at[e]
		e = e * g & mask
	}
}
