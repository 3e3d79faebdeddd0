package hardness

import "math"

// A reduction says what lattice reduction costs, in log2.
type reduction interface {
	// reduce is BKZ with block size beta in dimension d, or one sieve if they are equal.
	reduce(beta, d float64) float64
	// short is the cost of 2^log short vectors after BKZ.
	short(beta, d, log float64) float64
	// enlarged is the natural logarithm of how much longer these are than a shortest vector.
	enlarged(beta float64) float64
	// grover reports whether a search among candidates costs the square root of their number.
	grover() bool
}

// logKept is log2 of the number of short vectors that a sieve leaves, for each dimension.
const logKept = 0.2075

// enlarging is that of vectors of a sieve.
var enlarging = math.Log(4./3) / 2

// lll is what LLL costs before.
func lll(d float64) float64 { return 3 * math.Log2(d) }

// sieve is the model of BDGL16: 8 d calls of a sieve of 2^(exponent beta + 16.4).
type sieve struct {
	exponent float64
	quantum  bool
}

func (s sieve) reduce(beta, d float64) float64 {
	calls := 0.
	if beta < d {
		calls = math.Log2(8 * d)
	}
	return sum(lll(d), s.exponent*beta+16.4+calls)
}

func (s sieve) short(beta, d, log float64) float64 {
	return times(log-logKept*beta) + s.reduce(beta, d)
}

func (s sieve) enlarged(float64) float64 { return enlarging }
func (s sieve) grover() bool             { return s.quantum }

// times returns log2 of the number of sieves needed if one sieve yields 2^-log of the required
// vectors. It rounds up where rounding matters.
func times(log float64) float64 {
	if log > 50 {
		return log
	}
	return math.Log2(math.Ceil(math.Exp2(log)))
}

// matzov has the gate counts of Albrecht, Gheorghiu, Postlethwaite and Schanck (2020) as corrected
// by MATZOV (2022).
type matzov struct{}

const (
	gatesSlope, gatesConstant = 0.29613500308205365, 20.387885985467914 // log2 of gates of a sieve
	progressive               = 5.46                                    // of sieves in growing dimensions, by the last one
)

// free is the number of dimensions that a sieve need not work in (Ducas, 2018).
func free(beta float64) float64 {
	return max(0, beta*math.Log(4./3)/math.Log(beta/(2*math.Pi*math.E)))
}

func (matzov) reduce(beta, d float64) float64 {
	gates := gatesSlope*(beta-free(beta)) + gatesConstant + math.Log2(progressive)
	return sum(lll(d), gates+math.Log2(progressive*max(d-beta, 1)))
}

// dimension is that of one sieve that costs as much as BKZ.
func (matzov) dimension(beta, d float64) float64 {
	dim := beta - math.Floor(free(beta))
	if beta < d {
		dim = min(d, math.Floor(dim+math.Log2((d-beta)*progressive)/gatesSlope))
	}
	return dim
}

func (m matzov) short(beta, d, log float64) float64 {
	dim := m.dimension(beta, d)
	gates := gatesSlope*dim + gatesConstant + math.Log2(progressive)
	return times(log-logKept*dim) + sum(m.reduce(beta, d), gates)
}

func (m matzov) enlarged(beta float64) float64 {
	dim := m.dimension(beta, 2*beta)
	return enlarging + (dim-1)*(logHermite(dim)-logHermite(beta))
}

func (matzov) grover() bool { return false }
