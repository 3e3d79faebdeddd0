package stock

import "github.com/lodge-mpc/lodge/engine/kind"

// Convolution is kind.ConvolutionShape as it is recorded: without a padding of zero. It is zero for
// other tuples.
type Convolution struct {
	Channels      int `json:"channels"`
	Height        int `json:"height"`
	Width         int `json:"width"`
	Outputs       int `json:"outputs"`
	KernelHeight  int `json:"kernel_height"`
	KernelWidth   int `json:"kernel_width"`
	StrideHeight  int `json:"stride_height"`
	StrideWidth   int `json:"stride_width"`
	PaddingHeight int `json:"padding_height,omitempty"`
	PaddingWidth  int `json:"padding_width,omitempty"`
}

// Shape returns the shape of the class.
func (c Class) Shape() kind.Shape {
	return kind.Shape{
		Matrix:      kind.MatrixShape{Rows: int(c.Rows), Inner: int(c.Inner), Cols: int(c.Columns)},
		Convolution: kind.ConvolutionShape(c.Convolution),
	}
}

// Shaped returns the class with the given shape.
func (c Class) Shaped(s kind.Shape) Class {
	c.Rows, c.Inner, c.Columns = uint32(s.Matrix.Rows), uint32(s.Matrix.Inner), uint32(s.Matrix.Cols)
	c.Convolution = Convolution(s.Convolution)
	return c
}

// Shaped returns the batch with the given shape.
func (b Batch) Shaped(s kind.Shape) Batch {
	c := Class{}.Shaped(s)
	b.Rows, b.Inner, b.Columns, b.Convolution = c.Rows, c.Inner, c.Columns, c.Convolution
	return b
}
