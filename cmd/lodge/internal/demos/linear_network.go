package demos

import (
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
)

// The network of Linear: an image of 8-bit pixels, filters and weights of 4 bits, sums of windows, and scores. Every value
// is an integer in (-T/2, T/2), where T is the plaintext modulus of the set for vectors.
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

// windows returns the rows that a convolution multiplies with its filters. A client computes them from its share alone.
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

// LinearLayer is the cost of one product.
type LinearLayer struct {
	Name     string  `json:"name"`
	Values   int     `json:"values"`
	UpBytes  uint64  `json:"encrypted_bytes"`
	Down     uint64  `json:"answer_bytes"`
	Seconds  float64 `json:"seconds"`
	Distance float64 `json:"log_distance"`
}

// LinearReport is the outcome of `lodge demo linear`. The caller of Linear sets TotalSeconds.
type LinearReport struct {
	Security     string        `json:"security"`
	VectorSet    string        `json:"vector_set"`
	ProductSet   string        `json:"product_set"`
	Layers       []LinearLayer `json:"layers"`
	Correct      bool          `json:"correct"`
	TotalSeconds float64       `json:"total_seconds"`
}

func (r *LinearReport) add(name string, values int, up, down uint64, distance float64, d time.Duration) {
	r.Layers = append(r.Layers, LinearLayer{Name: name, Values: values, UpBytes: up, Down: down, Seconds: d.Seconds(), Distance: distance})
}

// Print writes the report for people.
func (r *LinearReport) Print(w io.Writer) error {
	verdict := "the scores and the product are those in the clear"
	if !r.Correct {
		verdict = "the results are NOT those in the clear"
	}
	fmt.Fprintf(w, `
An image of %d x %d pixels that one client shares, %d filters of %d x %d and weights of %d x %d that the other has:
%s.
Security: %s, which means that the party follows the protocol; sets %s, with inputs that the client proves, and %s.
No activations between the layers.

  %-24s%12s%16s%14s%10s%12s
`, imageSide, imageSide, filterCount, kernelSide, kernelSide, classes, hiddenSize, verdict, r.Security, r.VectorSet, r.ProductSet,
		"", "values", "sent encrypted", "answers", "time", "distance")
	for _, l := range r.Layers {
		fmt.Fprintf(w, "  %-24s%12d%16s%14s%8.2f s%12s\n", l.Name, l.Values, terminal.Amount(float64(l.UpBytes)), terminal.Amount(float64(l.Down)), l.Seconds, fmt.Sprintf("2^%.1f", l.Distance))
	}
	_, err := fmt.Fprintf(w, "  %-24s%52s%.1f s\n", "in all", "", r.TotalSeconds)
	return err
}
