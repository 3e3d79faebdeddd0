package job

import (
	"fmt"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// Shaped reports whether tuples of a kind have a shape, and are cut into blocks.
func Shaped(k jobv1.Kind) bool {
	return k == jobv1.Kind_KIND_MATRIX || k == jobv1.Kind_KIND_CONVOLUTION
}

// maxSide is the largest side of a convolution's input and of the matrix product that computes it.
const maxSide = 1 << 14

// side is one of the two dimensions of a convolution.
type side struct{ size, kernel, stride, padding uint64 }

func sides(c *jobv1.Convolution) [2]side {
	return [2]side{
		{uint64(c.GetHeight()), uint64(c.GetKernelHeight()), uint64(c.GetStrideHeight()), uint64(c.GetPaddingHeight())},
		{uint64(c.GetWidth()), uint64(c.GetKernelWidth()), uint64(c.GetStrideWidth()), uint64(c.GetPaddingWidth())},
	}
}

// windows returns the number of windows along a side.
func (s side) windows() uint64 { return (s.size+2*s.padding-s.kernel)/s.stride + 1 }

// checkConvolution validates the shape of a convolution. The engine makes the same checks.
func checkConvolution(s *jobv1.Shape) error {
	c := s.GetConvolution()
	if c == nil || s.GetRows() != 0 || s.GetInner() != 0 || s.GetColumns() != 0 {
		return fmt.Errorf("a convolution has its own shape, and no rows, inner or columns")
	}
	for _, n := range []uint32{
		c.GetChannels(), c.GetHeight(), c.GetWidth(), c.GetOutputs(), c.GetKernelHeight(), c.GetKernelWidth(), c.GetStrideHeight(), c.GetStrideWidth(),
	} {
		if n == 0 || n > maxSide {
			return fmt.Errorf("no convolution: %d is not a size from 1 to %d", n, maxSide)
		}
	}
	for _, x := range sides(c) {
		switch {
		case x.padding >= x.kernel:
			return fmt.Errorf("no convolution: a padding of %d is not less than a kernel of %d", x.padding, x.kernel)
		case x.kernel > x.size+2*x.padding:
			return fmt.Errorf("no convolution: a kernel of %d does not fit into %d with a padding of %d", x.kernel, x.size, x.padding)
		//lodge:check job/convolution-windows [run=TestCheckOfConvolutions] some entries of an image
		//  are in no window
		case x.windows() > 1 && x.stride > x.kernel, (x.windows()-1)*x.stride+x.kernel < x.size+x.padding:
			return fmt.Errorf("no convolution: a kernel of %d with a stride of %d does not read all of %d with a padding of %d: leave the rest out",
				x.kernel, x.stride, x.size, x.padding)
		}
	}
	if n := largest(c); n > maxSide {
		return fmt.Errorf("no convolution: its product has a side of %d, above %d", n, maxSide)
	}
	return nil
}

// largest returns the largest dimension of the product that computes a convolution: outputs, kernel entries, or windows.
func largest(c *jobv1.Convolution) uint64 {
	s := sides(c)
	return max(uint64(c.GetOutputs()), uint64(c.GetChannels())*s[0].kernel*s[1].kernel, s[0].windows()*s[1].windows())
}
