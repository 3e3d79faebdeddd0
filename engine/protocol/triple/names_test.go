package triple

import "github.com/lodge-mpc/lodge/engine/kind"

// Short names for the tests of this package.

// Kind is kind.Kind.
type Kind = kind.Kind

const (
	Scalar      = kind.Scalar
	Matrix      = kind.Matrix
	Square      = kind.Square
	Random      = kind.Random
	Bit         = kind.Bit
	Inverse     = kind.Inverse
	Input       = kind.Input
	Convolution = kind.Convolution
)

// Shape and ConvolutionShape are types of this package, so that tables need no field names.
type (
	Shape            kind.MatrixShape
	ConvolutionShape kind.ConvolutionShape
)

func matrices(s Shape) kind.Shape { return kind.Shape{Matrix: kind.MatrixShape(s)} }
func images(s ConvolutionShape) kind.Shape {
	return kind.Shape{Convolution: kind.ConvolutionShape(s)}
}
