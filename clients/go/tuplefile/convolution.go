package tuplefile

import "fmt"

// Convolution is the shape of convolution triples: images X of channels x height x width, kernels W
// of outputs x channels x kernel height x kernel width, and results Y of outputs x OutHeight x
// OutWidth. Kernels move by the strides over the image, which has padding zeros on each side. All
// arrays are row-major with the last dimension innermost.
type Convolution struct {
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

// Check returns an error if the shape is invalid. The other methods require a valid shape.
func (c Convolution) Check() error {
	for _, n := range []int{c.Channels, c.Height, c.Width, c.Outputs, c.KernelHeight, c.KernelWidth, c.StrideHeight, c.StrideWidth} {
		if !dimOK(n) {
			return fmt.Errorf("%w: a convolution has size %d, want 1 to %d", ErrManifest, n, maxDim)
		}
	}
	for _, s := range [][3]int{{c.Height, c.KernelHeight, c.PaddingHeight}, {c.Width, c.KernelWidth, c.PaddingWidth}} {
		if size, kernel, padding := s[0], s[1], s[2]; padding < 0 || padding >= kernel || kernel > size+2*padding {
			return fmt.Errorf("%w: a convolution with a kernel of %d on %d with a padding of %d", ErrManifest, kernel, size, padding)
		}
	}
	if x, w, y := c.Sizes(); x+w+y > maxValues {
		return fmt.Errorf("%w: a convolution of more than %d values", ErrManifest, maxValues)
	}
	return nil
}

// OutHeight returns the height of the result.
func (c Convolution) OutHeight() int {
	return (c.Height+2*c.PaddingHeight-c.KernelHeight)/c.StrideHeight + 1
}

// OutWidth returns the width of the result.
func (c Convolution) OutWidth() int {
	return (c.Width+2*c.PaddingWidth-c.KernelWidth)/c.StrideWidth + 1
}

// Sizes returns the numbers of values in the image, the kernels and the result. A number above the
// limit of the format may be too small, but is still above the limit.
func (c Convolution) Sizes() (x, w, y int) {
	return size(c.Channels, c.Height, c.Width), size(c.Outputs, c.Channels, c.KernelHeight, c.KernelWidth), size(c.Outputs, c.OutHeight(), c.OutWidth())
}

// size returns a product of sizes if it is within the limit.
func size(sides ...int) int {
	n := 1
	for _, s := range sides {
		if n *= s; n > maxValues {
			return maxValues + 1
		}
	}
	return n
}

// String returns a short form of the shape: "3x32x32 by 16x3x3, stride 1x1, padding 1x1".
func (c Convolution) String() string {
	return fmt.Sprintf("%dx%dx%d by %dx%dx%d, stride %dx%d, padding %dx%d", c.Channels, c.Height, c.Width, c.Outputs,
		c.KernelHeight, c.KernelWidth, c.StrideHeight, c.StrideWidth, c.PaddingHeight, c.PaddingWidth)
}
