package lodge

import (
	"iter"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
)

// Tensor holds its elements in row-major order: elements along the last dimension are adjacent.
type Tensor struct {
	Shape    []int
	Elements []Element
}

// At returns the element with these indices, one for each dimension, from 0.
func (t Tensor) At(indices ...int) Element {
	at := 0
	for i, n := range t.Shape {
		at = at*n + indices[i]
	}
	return t.Elements[at]
}

// ConvolutionTriple has Y = the convolution of the image X with the kernels W: X is channels x
// height x width, W outputs x channels x height x width, Y outputs x height x width.
type ConvolutionTriple struct {
	X, W, Y          Tensor
	MACX, MACW, MACY Tensor
}

// Convolutions returns the tuples of kind convolution. See Err.
func (s *Shares) Convolutions() iter.Seq[ConvolutionTriple] {
	arrays := s.arrays()
	return each(s, func(v []Element) ConvolutionTriple {
		x := arrays(v)
		return ConvolutionTriple{x[0], x[1], x[2], x[3], x[4], x[5]}
	}, tuplefile.ConvolutionKind)
}
