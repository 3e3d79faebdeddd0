package kind

import (
	"errors"
	"fmt"
)

// MaxSide is the largest side of a matrix, and the largest size in a convolution.
const MaxSide = 1 << 14

// Shape is the shape of all tuples of a class: of two matrices, or of a convolution. Single
// elements have the zero Shape.
type Shape struct {
	Matrix      MatrixShape
	Convolution ConvolutionShape
}

// MatrixShape is the shape of a product of a Rows x Inner and an Inner x Cols matrix.
type MatrixShape struct{ Rows, Inner, Cols int }

// ConvolutionShape is the shape of a convolution of an image of Channels x Height x Width with
// Outputs kernels of Channels x KernelHeight x KernelWidth. The kernels move over the image by the
// strides; on each side the image has padding zeros. The result is Outputs x OutHeight x OutWidth.
// All arrays are row-major.
type ConvolutionShape struct {
	Channels      int `json:"channels"`
	Height        int `json:"height"`
	Width         int `json:"width"`
	Outputs       int `json:"outputs"`
	KernelHeight  int `json:"kernel_height"`
	KernelWidth   int `json:"kernel_width"`
	StrideHeight  int `json:"stride_height"`
	StrideWidth   int `json:"stride_width"`
	PaddingHeight int `json:"padding_height"`
	PaddingWidth  int `json:"padding_width"`
}

// Side names one dimension of an array.
type Side string

// The dimensions of matrices and convolutions.
const (
	Rows    Side = "rows"
	Inner   Side = "inner"
	Columns Side = "columns"

	Channels     Side = "channels"
	Height       Side = "height"
	Width        Side = "width"
	Outputs      Side = "outputs"
	KernelHeight Side = "kernel_height"
	KernelWidth  Side = "kernel_width"
	OutHeight    Side = "out_height"
	OutWidth     Side = "out_width"
)

// Side returns the length of a dimension.
func (s Shape) Side(x Side) int {
	m, c := s.Matrix, s.Convolution
	switch x {
	case Rows:
		return m.Rows
	case Inner:
		return m.Inner
	case Columns:
		return m.Cols
	case Channels:
		return c.Channels
	case Height:
		return c.Height
	case Width:
		return c.Width
	case Outputs:
		return c.Outputs
	case KernelHeight:
		return c.KernelHeight
	case KernelWidth:
		return c.KernelWidth
	case OutHeight:
		return c.OutHeight()
	case OutWidth:
		return c.OutWidth()
	}
	return 0
}

// Dims returns the dimensions of a part for a valid shape. The list is empty for a single element.
func (p Part) Dims(s Shape) (dims []int) {
	for _, side := range p.Sides {
		dims = append(dims, s.Side(side))
	}
	return dims
}

// Elements returns the number of field elements of a part for a valid shape.
func (p Part) Elements(s Shape) int {
	n := 1
	for _, d := range p.Dims(s) {
		n *= d
	}
	return n
}

// CheckShape returns an error unless tuples of the kind can have the shape.
func (k Kind) CheckShape(s Shape) error {
	switch k.Describe().Form {
	case Matrices:
		if s.Convolution != (ConvolutionShape{}) {
			return errors.New("matrices have rows, inner and columns, and not the shape of a convolution")
		}
		return s.Matrix.Check()
	case Convolutions:
		if s.Matrix != (MatrixShape{}) || s.Convolution == (ConvolutionShape{}) {
			return errors.New("a convolution has its own shape, and no rows, inner or columns")
		}
		return s.Convolution.Check()
	}
	//lodge:check kind/unshaped [run=TestFormats] single elements have a shape
	if s != (Shape{}) {
		return fmt.Errorf("tuples of kind %v have no shape", k)
	}
	return nil
}

// Product returns the shape of the matrix product that a batch of the kind computes: for
// convolutions, that of the kernels and the windows of the image. Only kinds with a shape have a
// product.
func (k Kind) Product(s Shape) (MatrixShape, error) {
	if err := k.CheckShape(s); err != nil {
		return MatrixShape{}, err
	}
	if k.Describe().Form == Convolutions {
		return s.Convolution.Product()
	}
	return s.Matrix, nil
}

// Largest returns the largest side.
func (s MatrixShape) Largest() int { return max(s.Rows, s.Inner, s.Cols) }

// Check returns an error unless every side is from 1 to MaxSide.
func (s MatrixShape) Check() error {
	//lodge:check kind/matrix-sides [run=TestFormats|TestMatrixShapes] a matrix has no rows, or too many
	if min(s.Rows, s.Inner, s.Cols) < 1 || s.Largest() > MaxSide {
		return fmt.Errorf("a product of %d x %d and %d x %d matrices: every side must be from 1 to %d",
			s.Rows, s.Inner, s.Inner, s.Cols, MaxSide)
	}
	return nil
}

// OutHeight returns the height of the result of a valid shape.
func (s ConvolutionShape) OutHeight() int {
	return windows(s.Height, s.KernelHeight, s.StrideHeight, s.PaddingHeight)
}

// OutWidth returns the width of the result of a valid shape.
func (s ConvolutionShape) OutWidth() int {
	return windows(s.Width, s.KernelWidth, s.StrideWidth, s.PaddingWidth)
}

// windows returns the number of positions of a kernel along one side.
func windows(size, kernel, stride, padding int) int { return (size+2*padding-kernel)/stride + 1 }

// Sizes returns the numbers of elements of the image, the kernels and the result of a valid shape.
func (s ConvolutionShape) Sizes() (x, w, y int) {
	return Convolution.Elements(Shape{Convolution: s})
}

// Check returns the error of Product.
func (s ConvolutionShape) Check() error {
	_, err := s.Product()
	return err
}

// Product returns the shape of the matrix product that computes the convolution: the kernels, one
// row for each output, times the windows of the image, one column for each position of the kernels.
// It returns an error unless every entry of the image lies in some window, and every window covers
// part of the image. An entry outside all windows would be in no ciphertext.
func (s ConvolutionShape) Product() (MatrixShape, error) {
	none := func(format string, args ...any) (MatrixShape, error) {
		return MatrixShape{}, fmt.Errorf("no convolution: "+format, args...)
	}
	for _, n := range []int{
		s.Channels, s.Height, s.Width, s.Outputs, s.KernelHeight, s.KernelWidth, s.StrideHeight, s.StrideWidth,
	} {
		if n < 1 || n > MaxSide {
			return none("%d is not a size from 1 to %d", n, MaxSide)
		}
	}
	for _, side := range []struct {
		name                          string
		size, kernel, stride, padding int
	}{
		{"height", s.Height, s.KernelHeight, s.StrideHeight, s.PaddingHeight},
		{"width", s.Width, s.KernelWidth, s.StrideWidth, s.PaddingWidth},
	} {
		//lodge:check kind/padding [run=TestConvolutionShapes] windows lie outside the image
		if side.padding < 0 || side.padding >= side.kernel {
			return none("a padding of %d with a kernel of %s %d: it must be less than the kernel", side.padding, side.name, side.kernel)
		}
		//lodge:check kind/kernel-fits [run=TestConvolutionShapes] a kernel is larger than the padded image
		if side.kernel > side.size+2*side.padding {
			return none("a kernel of %s %d does not fit into %d with a padding of %d", side.name, side.kernel, side.size, side.padding)
		}
		n := windows(side.size, side.kernel, side.stride, side.padding)
		last := (n-1)*side.stride + side.kernel - side.padding
		//lodge:check triple/windows-gaps [run=TestConvolutionShapes] entries between windows are in no
		//  ciphertext
		if n > 1 && side.stride > side.kernel {
			return none("a stride of %d with a kernel of %s %d skips entries of the image: remove them from the image", side.stride, side.name, side.kernel)
		}
		//lodge:check triple/windows-read [run=TestConvolutionShapes] some entries of an image are in no
		//  ciphertext
		if last < side.size {
			return none("no window reads beyond the first %d of a %s of %d: remove the rest from the image", last, side.name, side.size)
		}
	}
	p := MatrixShape{Rows: s.Outputs, Inner: s.Channels, Cols: s.OutHeight()}
	for _, x := range []struct {
		name string
		size *int
		by   []int
	}{
		{"entries of a kernel", &p.Inner, []int{s.KernelHeight, s.KernelWidth}}, {"windows", &p.Cols, []int{s.OutWidth()}},
	} {
		for _, n := range x.by {
			if *x.size *= n; *x.size > MaxSide { // both factors are at most MaxSide
				return none("more than %d %s", MaxSide, x.name)
			}
		}
	}
	return p, nil
}

// String returns a short form of the shape: "3x32x32 by 16x3x3, stride 1x1, padding 1x1".
func (s ConvolutionShape) String() string {
	return fmt.Sprintf("%dx%dx%d by %dx%dx%d, stride %dx%d, padding %dx%d", s.Channels, s.Height, s.Width, s.Outputs,
		s.KernelHeight, s.KernelWidth, s.StrideHeight, s.StrideWidth, s.PaddingHeight, s.PaddingWidth)
}
