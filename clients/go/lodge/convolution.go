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

// ConvolutionTriple has Y = the convolution of the image X with the kernels W: X is channels x height x width, W outputs x
// channels x height x width, Y outputs x height x width.
type ConvolutionTriple struct {
	X, W, Y          Tensor
	MACX, MACW, MACY Tensor
}

// Convolutions returns the tuples of kind convolution. See Err.
func (s *Shares) Convolutions() iter.Seq[ConvolutionTriple] {
	c := s.Reservation.Class.Convolution
	return each(s, func(v []Element) ConvolutionTriple {
		next := func(shape ...int) Tensor {
			size := 1
			for _, n := range shape {
				size *= n
			}
			t := Tensor{shape, v[:size]}
			v = v[size:]
			return t
		}
		var all [2][3]Tensor
		for i := range all {
			all[i] = [3]Tensor{
				next(c.Channels, c.Height, c.Width), next(c.Outputs, c.Channels, c.KernelHeight, c.KernelWidth),
				next(c.Outputs, c.OutHeight(), c.OutWidth()),
			}
		}
		return ConvolutionTriple{all[0][0], all[0][1], all[0][2], all[1][0], all[1][1], all[1][2]}
	}, tuplefile.ConvolutionKind)
}
