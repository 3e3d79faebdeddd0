package lwe

import (
	"fmt"
	"math"

	"github.com/lodge-mpc/lodge/engine/sample"
)

// width is that of a Gaussian of density exp(-pi x^2/w^2) with this variance.
func width(variance float64) float64 { return math.Sqrt(2 * math.Pi * variance) }

// Errors samples the discrete Gaussian of any variance from 2.1^2 to 2^70. A variance that is too
// wide for one table is sampled as a sum k y + x, with y of variance (variance - 16 k^2)/k^2 and x
// of deviation 4k. The smoothing of k Z needs less than the width of x far beyond 2^-128, so the
// sum is a discrete Gaussian except for less than that (Micciancio and Walter, Gaussian sampling
// over the integers, 2017). Errors is immutable and may be shared.
type Errors struct {
	variance float64
	fine     *sample.Gaussian
	scale    int64   // k, or 0 if fine is everything
	coarse   *Errors // of y
}

// widest is the width of the widest Gaussian that is sampled from one table.
const widest = 1 << 16

// NewErrors prepares a sampler of a variance.
func NewErrors(variance float64) (*Errors, error) {
	if !(variance >= minVariance && variance <= 1<<70) {
		return nil, fmt.Errorf("lwe: errors of variance %v", variance)
	}
	e := &Errors{variance: variance}
	w := width(variance)
	if w > widest {
		e.scale = 2
		for e.scale < 1<<12 && w/float64(e.scale) > widest/2 {
			e.scale *= 2
		}
		k := float64(e.scale)
		var err error
		if e.coarse, err = NewErrors(variance/(k*k) - 16); err != nil {
			return nil, err
		}
		w = width(16 * k * k)
	}
	var err error
	e.fine, err = sample.NewGaussian(w)
	return e, err
}

// Variance returns the variance given to [NewErrors].
func (e *Errors) Variance() float64 { return e.variance }

// Sample fills dst from a stream.
func (e *Errors) Sample(dst []int64, s *sample.Stream) {
	if e.coarse == nil {
		e.fine.Sample(dst, s)
		return
	}
	e.coarse.Sample(dst, s)
	fine := make([]int64, len(dst))
	defer clear(fine)
	e.fine.Sample(fine, s)
	for i, x := range fine {
		dst[i] = dst[i]*e.scale + x
	}
}

// Differences fills dst with differences of two uniform bits each, the distribution of z: -1 and 1
// with probability 1/4 each, and 0 otherwise. Its time does not depend on the samples.
func Differences(dst []int64, s *sample.Stream) {
	var word uint64
	for i := range dst {
		if i%32 == 0 {
			word = s.Uint64()
		}
		dst[i] = int64(word&1) - int64(word>>1&1)
		word >>= 2
	}
}
