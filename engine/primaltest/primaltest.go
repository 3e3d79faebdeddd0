// Package primaltest estimates what the primal attack on LWE costs, for the tests of parameter sets: block reduction with
// block size beta, which the root Hermite factor delta(beta) describes, on the embedding of m samples in dimension
// d = dim+m+1, with the secret scaled to the errors (Albrecht et al., Revisiting the expected cost of solving uSVP and
// applications to LWE, 2017). It succeeds if
//
//	sqrt(beta) sigma <= delta^(2 beta - d - 1) (q^m (sigma/sigma_s)^dim)^(1/d),
//
// and costs 8d calls of a sieve of 2^(0.292 beta + 16.4).
package primaltest

import "math"

func hermite(beta float64) float64 {
	if beta < 50 {
		return 1.0127
	}
	return math.Pow(math.Pow(math.Pi*beta, 1/beta)*beta/(2*math.Pi*math.E), 1/(2*(beta-1)))
}

// embedding is the first d for which the attack with blocks of size beta succeeds, or 0.
func embedding(dim int, q, deviation, secret, beta float64) int {
	for m := max(dim*3/10, 1); m < 3*dim; m += max(1, dim/64) {
		d := float64(dim + m + 1)
		left := 0.5*math.Log(beta) + math.Log(deviation)
		right := (2*beta-d-1)*math.Log(hermite(beta)) + (float64(m)*math.Log(q)+float64(dim)*math.Log(deviation/secret))/d
		if left <= right {
			return dim + m + 1
		}
	}
	return 0
}

// Cost is log2 of the cost for the smallest block size that succeeds: of dimension dim, modulus q, and errors and secrets
// of these standard deviations.
func Cost(dim int, q, deviation, secret float64) float64 {
	low, high := 50, 6000
	for low < high {
		if middle := (low + high) / 2; embedding(dim, q, deviation, secret, float64(middle)) > 0 {
			high = middle
		} else {
			low = middle + 1
		}
	}
	d := embedding(dim, q, deviation, secret, float64(low))
	return 0.292*float64(low) + 16.4 + math.Log2(8*float64(d))
}
