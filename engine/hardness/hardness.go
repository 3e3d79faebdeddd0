package hardness

import (
	"math"
	"sync"
)

// Least is the classical security in bits that a set must have to make new keys.
const Least = 128

// Margin is subtracted from every estimate, in bits. The formulas differ from the table of
// estimates by 0.2 at most.
const Margin = 0.25

// A Secret is the distribution of one coordinate of a secret vector.
type Secret struct {
	Variance   float64 // about the mean: an attacker subtracts a mean, which is public
	LogSupport float64 // log2 of the number of candidates that a guess of one coordinate has to try
}

// Distributions of secrets.
var (
	Binary     = Secret{0.25, 1}              // uniform in {0, 1}
	Ternary    = Secret{2. / 3, math.Log2(3)} // uniform in {-1, 0, 1}
	Difference = Secret{0.5, 1.5}             // of two uniform bits; 1.5 bits is its entropy
)

// Gaussian is a discrete Gaussian of this standard deviation. LogSupport is its entropy.
func Gaussian(deviation float64) Secret {
	return Secret{deviation * deviation, math.Log2(deviation * math.Sqrt(2*math.Pi*math.E))}
}

// Blocks has coordinates in blocks of this size, of each of which at most one is 1, every case
// being as likely.
func Blocks(size int) Secret {
	p := 1 / float64(size+1)
	return Secret{p * (1 - p), math.Log2(float64(size+1)) / float64(size)}
}

// Samples are LWE samples, or ring-LWE samples taken as such: their dimension, log2 of the modulus,
// the standard deviation of errors as integers, and the secret.
type Samples struct {
	Dim       int
	LogQ      float64
	Deviation float64
	Secret    Secret
}

// Bits are log2 of costs.
type Bits struct{ Classical, Quantum float64 }

// Min is the smaller of both figures of two kinds of samples, of which an attacker needs only one.
func (b Bits) Min(o Bits) Bits { return Bits{min(b.Classical, o.Classical), min(b.Quantum, o.Quantum)} }

var known sync.Map // of Samples to Bits

// Estimate returns the security of samples, less Margin and rounded down to a tenth of a bit. It
// returns 0 if the samples are malformed, or so easy that the model has no block size for them. It
// is safe for concurrent use and caches its results.
func (s Samples) Estimate() Bits {
	if b, ok := known.Load(s); ok {
		return b.(Bits)
	}
	cut := func(models ...reduction) float64 {
		least := math.Inf(1)
		for _, m := range models {
			a := attack{s, m}
			start := a.usvp()
			if start == 0 {
				return 0
			}
			least = min(least, a.bdd(start), a.dual(start))
		}
		if least < Margin || math.IsInf(least, 1) || math.IsNaN(least) {
			return 0
		}
		return math.Floor(10*(least-Margin)+1e-9) / 10
	}
	b := Bits{Classical: cut(matzov{}, sieve{exponent: 0.292}), Quantum: cut(sieve{exponent: 0.257, quantum: true})}
	known.Store(s, b)
	return b
}

// Block sizes that the model tries. Formulas for the root Hermite factor hold from some 60 on; at
// 40 bits or less a precise figure is of no use.
const (
	smallestBlock = 60
	largestBlock  = 4000
)

// attack is a kind of samples with a model of lattice reduction.
type attack struct {
	Samples
	model reduction
}

// logHermite is the natural logarithm of the root Hermite factor of BKZ with this block size.
func logHermite(beta float64) float64 {
	return (math.Log(beta/(2*math.Pi*math.E)) + math.Log(math.Pi*beta)/beta) / (2 * (beta - 1))
}

// scale returns the factor, at least 1, that makes the secret as wide as the errors.
func (a attack) scale() float64 { return max(1, a.Deviation/math.Sqrt(a.Secret.Variance)) }

// usvp is the smallest block size with which the embedding succeeds, or 0 if none does.
func (a attack) usvp() int {
	low, high := smallestBlock, largestBlock
	if !a.embeds(float64(high)) || a.Dim < 1 || a.LogQ <= 0 {
		return 0
	}
	for low < high {
		if middle := (low + high) / 2; a.embeds(float64(middle)) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return low
}

// embeds reports whether the embedding succeeds in the dimension that suits it best.
func (a attack) embeds(beta float64) bool {
	n, log, q := float64(a.Dim), logHermite(beta), a.LogQ*math.Ln2
	d := max(n+1, beta+1, math.Ceil(math.Sqrt((n*(q-math.Log(a.scale()))+q-math.Log(a.Deviation))/log)))
	left := math.Log(a.Deviation) + math.Log(beta)/2
	right := log*(2*beta-d-1) + (math.Log(a.Deviation)+n*math.Log(a.scale())+q*(d-n-1))/d
	return left <= right
}

// tolerance is the largest distance, in bits, from the lowest known cost at which a search
// continues. Costs jump by one or two bits where a sieve must be repeated.
const tolerance = 4

// bdd is log2 of the cost of reduction and one sieve.
func (a attack) bdd(start int) float64 {
	least := math.Inf(1)
	for beta := start + 5; beta >= smallestBlock; beta-- {
		cost := a.bddWith(float64(beta))
		if least = min(least, cost); cost > least+tolerance {
			break
		}
	}
	return least
}

// bddWith chooses the dimension.
func (a attack) bddWith(beta float64) float64 {
	n, log, q, scale := float64(a.Dim), logHermite(beta), a.LogQ*math.Ln2, math.Log(a.scale())
	cost := func(d float64) float64 {
		if d <= beta || d <= n {
			return math.Inf(1)
		}
		eta := a.projection(d, (d-n)*q+n*scale, log)
		return sum(a.model.reduce(beta, d), a.model.reduce(eta, eta))
	}
	d := math.Ceil(math.Sqrt(n * (q - scale) / log))
	least := cost(d)
	for step := math.Ceil(max(d-n, 8) / 8); step >= 1; {
		at, c := d-step, cost(d-step)
		if up := cost(d + step); up < c {
			at, c = d+step, up
		}
		if c < least {
			d, least = at, c
		} else if step == 1 {
			break
		} else {
			step = math.Floor(step / 2)
		}
	}
	return least
}

// projection is the dimension in which the projected error is the shortest vector, of a reduced
// basis of d dimensions with this logarithm of the volume and of the root Hermite factor.
func (a attack) projection(d, volume, log float64) float64 {
	short := func(i float64) bool { // the Gaussian heuristic without the first i dimensions
		k := d - i
		ball := (k+1)/2*math.Log(math.Pi) - lgamma((k+1)/2+1)
		heuristic := 2 * (k/d*volume - i*k*log + math.Log(a.Deviation) - ball) / (k + 1)
		return heuristic < math.Log(a.Deviation*a.Deviation*(k+1))
	}
	low, high := 0., d-40
	for low < high {
		if middle := math.Floor((low + high) / 2); short(middle) {
			high = middle
		} else {
			low = middle + 1
		}
	}
	return d - low + 2
}

func lgamma(x float64) float64 {
	y, _ := math.Lgamma(x)
	return y
}

// dual is log2 of the cost of the dual hybrid attack.
func (a attack) dual(start int) float64 {
	least := math.Inf(1)
	for beta := start + 40; beta >= smallestBlock; beta-- {
		cost := a.dualWith(float64(beta))
		if least = min(least, cost); cost > least+tolerance && beta < start {
			break
		}
	}
	return least
}

// dualWith chooses how many coordinates are guessed.
func (a attack) dualWith(beta float64) float64 {
	best, least := 0, a.dualGuess(beta, 0)
	for step := 16; step >= 1; step /= 2 {
		for at := best - 15*step; at <= best+15*step; at += step {
			if at < 0 || at >= a.Dim {
				continue
			}
			if cost := a.dualGuess(beta, at); cost < least {
				best, least = at, cost
			}
		}
	}
	return least
}

// success is the probability with which the guess is found, of the square root of 0.99 for each of
// two stages.
var success = math.Sqrt(0.99)

// dualGuess is the cost with this block size and number of guessed coordinates.
func (a attack) dualGuess(beta float64, guessed int) float64 {
	n, log := float64(a.Dim-guessed), logHermite(beta)
	secret := math.Log(a.Secret.Variance) / 2
	c := secret + a.LogQ*math.Ln2 - math.Log(a.Deviation)
	d := max(n+1, math.Ceil(math.Sqrt(n*c/log)))
	deviation := math.Exp(a.model.enlarged(beta) + secret + d*log - c*(d-n)/d) // as a part of the modulus
	bias := 4 * math.Pi * math.Pi * deviation * deviation
	support := float64(guessed) * a.Secret.LogSupport
	if a.model.grover() {
		support /= 2
	}
	vectors := 3 + bias*math.Log2E + math.Log2(support*math.Ln2-math.Log(-math.Log(success)))
	return sum(a.model.short(beta, d, vectors), 1+support+vectors)
}

// sum is log2 of the sum of two costs.
func sum(x, y float64) float64 {
	if math.IsInf(x, 1) || math.IsInf(y, 1) {
		return math.Inf(1)
	}
	return max(x, y) + math.Log2(1+math.Exp2(-math.Abs(x-y)))
}
