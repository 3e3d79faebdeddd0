package demos

import "math/rand/v2"

// The network of Linear: an image of 8-bit pixels, filters and weights of 4 bits, sums of windows,
// and scores. Every value is an integer in (-T/2, T/2), where T is the plaintext modulus of the set
// for vectors.
const (
	imageSide     = 28
	kernelSide    = 5
	filterCount   = 8
	convolvedSide = imageSide - kernelSide + 1
	pooledSide    = convolvedSide / 2
	hiddenSize    = filterCount * pooledSide * pooledSide
	classes       = 10
	maxPixel      = 255
	maxWeight     = 7

	matrixSide = 64   // of the encrypted matrices
	maxEntry   = 1023 // largest absolute value of their entries
)

// random returns n random integers in [-most, most], and their residues.
func (d *linearDemo) random(n, most int) (v []int64, residues []uint64) {
	for range n {
		x := rand.Int64N(int64(2*most+1)) - int64(most)
		v, residues = append(v, x), append(residues, d.residue(x))
	}
	return v, residues
}

// residue returns x modulo t in [0, t).
func (d *linearDemo) residue(x int64) uint64 {
	t := int64(d.t)
	return uint64((x%t + t) % t)
}

// windows returns the rows that a convolution multiplies with its filters. A client needs only its
// share.
func windows[T any](image []T) (rows []T) {
	for y := range convolvedSide {
		for x := range convolvedSide {
			for i := range kernelSide {
				rows = append(rows, image[(y+i)*imageSide+x:][:kernelSide]...)
			}
		}
	}
	return rows
}

// convolve multiplies windows with filters in plaintext.
func convolve(rows, filters []int64) (out []int64) {
	const size = kernelSide * kernelSide
	for f := range filterCount {
		for i := range convolvedSide * convolvedSide {
			sum := int64(0)
			for j := range size {
				sum += rows[i*size+j] * filters[f*size+j]
			}
			out = append(out, sum)
		}
	}
	return out
}

// windowSums returns the sums of windows of 2 x 2, filter by filter.
func windowSums[T any](v []T, add func(a, b T) T) (out []T) {
	for f := range filterCount {
		at := v[f*convolvedSide*convolvedSide:]
		for y := range pooledSide {
			for x := range pooledSide {
				i := 2*y*convolvedSide + 2*x
				out = append(out, add(add(at[i], at[i+1]), add(at[i+convolvedSide], at[i+convolvedSide+1])))
			}
		}
	}
	return out
}

// plainScores evaluates the network in plaintext.
func plainScores(pixels, filters, weights []int64) (scores []int64) {
	hidden := windowSums(convolve(windows(pixels), filters), func(a, b int64) int64 { return a + b })
	for i := range classes {
		sum := int64(0)
		for j, x := range hidden {
			sum += weights[i*hiddenSize+j] * x
		}
		scores = append(scores, sum)
	}
	return scores
}

// equalsProduct reports whether the n x n matrix got is left times right.
func equalsProduct(got, left, right []int64, n int) bool {
	for i, x := range got {
		for k := range n {
			x -= left[i/n*n+k] * right[k*n+i%n]
		}
		if x != 0 {
			return false
		}
	}
	return len(got) == n*n
}
