package verify

import "math/big"

// windows rewrites an image as the matrix by which kernels are multiplied: each column holds the
// image values under one position of the kernel, with zeros outside the image.
func (c *checker) windows(image []big.Int) []big.Int {
	s := c.manifest.Convolution
	out := make([]big.Int, 0, s.Channels*s.KernelHeight*s.KernelWidth*s.OutHeight()*s.OutWidth())
	for channel := range s.Channels {
		for k := range s.KernelHeight {
			for l := range s.KernelWidth {
				for i := range s.OutHeight() {
					for j := range s.OutWidth() {
						y, x := i*s.StrideHeight+k-s.PaddingHeight, j*s.StrideWidth+l-s.PaddingWidth
						if y < 0 || y >= s.Height || x < 0 || x >= s.Width {
							out = append(out, big.Int{})
							continue
						}
						out = append(out, image[(channel*s.Height+y)*s.Width+x])
					}
				}
			}
		}
	}
	return out
}
