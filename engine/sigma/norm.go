package sigma

import (
	"fmt"
	"math/big"
	"sync"

	"github.com/lodge-mpc/lodge/engine/intpoly"
)

//lodge:tests norm TestNormAround|TestNormRefuses|TestNewNorm

// Norm tests the canonical norm of public polynomials: the largest absolute value at the roots of
// X^N+1. It computes with integers, so that all verifiers agree. Every accepted polynomial is
// within the bound, even with rounding errors.
//
// A polynomial with real coefficients has conjugate values at conjugate roots, so half of the roots
// suffice: those with X^(N/2) = i, where it equals the polynomial with the N/2 coefficients z_k + i
// z_(k+N/2). Splitting X^(2m)-w^2 into X^m-w and X^m+w, T = log2(N/2) times, yields the values. A
// value is stored in units of 2^-F, and a root in units of 2^-30.
//
// Rounding. Let coefficients be at most 2^c. After t splits a value is at most sqrt(2)*2^(c+t). One
// more split multiplies by a root that is off by at most 2^-30/sqrt(2), rounds by at most
// 2^-F/sqrt(2), and adds two values: the error grows from E to at most (2 + 2^-30) E + 2^(c+t-30) +
// 2^-F/sqrt(2). After T splits it is at most 2^T*(1+2^-25) times 2^-F/sqrt(2) + T*2^(c-31), which
// is less than slack, the units 3/4*2^T + ceil(T*2^(T+c+F-30)) + 1.
type Norm struct {
	n, splits, frac int
	bits            int // of a coefficient, including the sign
	slack           uint64
	limit           uint64    // of the square of an absolute value, in units of 2^-2F
	re, im          []int64   // roots: entry 2^t+k is for part k of split t
	rooms           sync.Pool // of *normRoom
}

// normRoom is the workspace for one polynomial.
type normRoom struct{ re, im []int64 }

const (
	rootBits = 30
	maxFrac  = 8
	minFrac  = 4
)

// NewNorm prepares the test |z| <= bound for polynomials of n coefficients of the given number of
// bits, including the sign. It returns an error if intermediate values do not fit in words, or if
// rounding errors exceed the bound.
func NewNorm(n, bits int, bound int64) (*Norm, error) {
	splits := 0
	for 2<<splits < n {
		splits++
	}
	m := &Norm{n: n, splits: splits, bits: bits, frac: min(maxFrac, 31-splits-(bits-1))}
	//lodge:check sigma/norm-size [drop=2<<splits != n] [drop=bits < 2] [drop=m.frac < minFrac]
	//  [run=@norm] the values of the norm do not fit their words
	if n < 4 || 2<<splits != n || bits < 2 || m.frac < minFrac {
		return nil, fmt.Errorf("sigma: the norm of %d coefficients of %d bits is not supported", n, bits)
	}
	m.slack = 3<<splits/4 + 2
	if shift := splits + bits - 1 + m.frac - rootBits; shift >= 0 {
		m.slack += uint64(splits) << shift
	} else {
		m.slack += uint64(splits)
	}
	//lodge:check sigma/norm-bound [run=@norm] rounding errors exceed the bound itself
	if bound < 1 || bound >= 1<<(31-m.frac) || uint64(bound)<<m.frac <= 2*m.slack {
		return nil, fmt.Errorf("sigma: the norm bound %d is not supported", bound)
	}
	//lodge:check sigma/norm-limit [swap=uint64(bound)<<m.frac - m.slack=>uint64(bound)<<m.frac +
	//  m.slack] [run=@norm] rounding errors let a response exceed the bound on the norm
	limit := uint64(bound)<<m.frac - m.slack
	m.limit = limit * limit
	m.setRoots()
	m.rooms.New = func() any { return &normRoom{make([]int64, n/2), make([]int64, n/2)} }
	return m, nil
}

// Within reports whether |z| <= bound. It returns true for every z with |z| <= bound minus 2^(1-F)
// slack. It returns false for every z with |z| above the bound, or with a coefficient of more bits.
// Its running time depends on z, which must be public and have one word per coefficient.
func (m *Norm) Within(z intpoly.Poly) bool {
	if z.W != 1 || z.N() != m.n {
		panic(fmt.Sprintf("sigma: norm of %d coefficients of %d words, want %d of one", z.N(), z.W, m.n))
	}
	top := int64(1) << (m.bits - 1)
	for _, x := range z.C {
		//lodge:check sigma/norm-words [swap=c < -top || c >= top=>c < -top && c >= top] [run=@norm]
		//  large coefficients overflow the arithmetic of the norm
		if c := int64(x); c < -top || c >= top {
			return false
		}
	}
	//lodge:check sigma/norm [return=true] [run=@norm] responses of any norm pass
	return m.square(z) <= m.limit
}

// square returns the largest square of an absolute value.
func (m *Norm) square(z intpoly.Poly) (top uint64) {
	room := m.rooms.Get().(*normRoom)
	defer m.rooms.Put(room)
	half := m.n / 2
	for k := range half {
		room.re[k], room.im[k] = int64(z.C[k])<<m.frac, int64(z.C[half+k])<<m.frac
	}
	for t := range m.splits {
		size := half >> (t + 1)
		for k := range 1 << t {
			at := 2 * size * k
			split(room.re[at:at+2*size], room.im[at:at+2*size], m.re[1<<t+k], m.im[1<<t+k])
		}
	}
	//lodge:check sigma/norm-every-root [swap=room.re=>room.re[:len(room.re)/2]] [run=TestNorm] the
	//  norm misses half of the roots
	for k, re := range room.re {
		im := room.im[k]
		//lodge:check sigma/norm-imaginary [swap=uint64(im * im)=>0 * uint64(im*im)] [run=TestNorm]
		//  the norm ignores imaginary parts
		top = max(top, uint64(re*re)+uint64(im*im))
	}
	return top
}

// split reduces a polynomial modulo X^(2m)-w^2 to its remainders modulo X^m-w and X^m+w.
func split(re, im []int64, wr, wi int64) {
	const half = 1 << (rootBits - 1)
	m := len(re) / 2
	lr, hr, li, hi := re[:m], re[m:][:m], im[:m], im[m:][:m]
	for k, a := range lr {
		b, x, y := li[k], hr[k], hi[k]
		tr, ti := (x*wr-y*wi+half)>>rootBits, (x*wi+y*wr+half)>>rootBits
		lr[k], li[k], hr[k], hi[k] = a+tr, b+ti, a-tr, b-ti
	}
}

// setRoots sets the roots: part k of split t is modulo X^(2m)-exp(i*angle[2^t+k]), angles in units
// of pi/N.
func (m *Norm) setRoots() {
	table := unitCircle(m.n)
	m.re, m.im = make([]int64, m.n/2), make([]int64, m.n/2)
	angle := make([]int, m.n)
	angle[1] = m.n / 2
	for j := 1; j < m.n/2; j++ {
		w := angle[j] / 2
		angle[2*j], angle[2*j+1] = w, w+m.n
		m.re[j], m.im[j] = table(w)
	}
}

// unitCircle returns exp(i*pi*k/n) in units of 2^-30, with an error in each part of at most half a
// unit plus 2^-100, for a power of two n.
func unitCircle(n int) func(k int) (re, im int64) {
	const prec = 192 // fractional bits; the last few are wrong
	one := new(big.Int).Lsh(big.NewInt(1), prec)
	mul := func(a, b *big.Int) *big.Int { p := new(big.Int).Mul(a, b); return p.Rsh(p, prec) }
	type point struct{ re, im *big.Int }
	times := func(a, b point) point {
		re, im := mul(a.re, b.re), mul(a.re, b.im)
		return point{re.Sub(re, mul(a.im, b.im)), im.Add(im, mul(a.im, b.re))}
	}
	// step[j] is exp(i*pi/2^(j+1)), by halving the angle: cos(x/2) = sqrt((1+cos x)/2), sin(x/2) =
	// sin x/(2 cos(x/2)).
	step := []point{{new(big.Int), new(big.Int).Set(one)}}
	for 2<<len(step) <= n {
		p := step[len(step)-1]
		c := new(big.Int).Add(one, p.re)
		c.Sqrt(c.Lsh(c, prec-1))
		s := new(big.Int).Lsh(p.im, prec-1)
		step = append(step, point{c, s.Quo(s, c)})
	}
	quarter := make([]point, n/2) // exp(i*pi*k/n), 0 <= k < n/2
	quarter[0] = point{one, new(big.Int)}
	for bit, j := 1, len(step)-1; bit < n/2; bit, j = 2*bit, j-1 {
		for k := range bit {
			quarter[bit+k] = times(quarter[k], step[j])
		}
	}
	round := func(x *big.Int) int64 {
		x = new(big.Int).Add(x, new(big.Int).Lsh(big.NewInt(1), prec-rootBits-1))
		return x.Rsh(x, prec-rootBits).Int64()
	}
	return func(k int) (re, im int64) {
		p := quarter[k%(n/2)]
		re, im = round(p.re), round(p.im)
		for range k % (2 * n) / (n / 2) {
			re, im = -im, re
		}
		return re, im
	}
}
