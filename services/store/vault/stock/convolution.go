package stock

import jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"

// Convolution is the shape of convolution triples, and zero of other tuples.
type Convolution struct {
	Channels      uint32 `json:"channels"`
	Height        uint32 `json:"height"`
	Width         uint32 `json:"width"`
	Outputs       uint32 `json:"outputs"`
	KernelHeight  uint32 `json:"kernel_height"`
	KernelWidth   uint32 `json:"kernel_width"`
	StrideHeight  uint32 `json:"stride_height"`
	StrideWidth   uint32 `json:"stride_width"`
	PaddingHeight uint32 `json:"padding_height,omitempty"`
	PaddingWidth  uint32 `json:"padding_width,omitempty"`
}

// ConvolutionOf takes a shape from the wire; nil is none.
func ConvolutionOf(c *jobv1.Convolution) Convolution {
	return Convolution{
		c.GetChannels(), c.GetHeight(), c.GetWidth(), c.GetOutputs(), c.GetKernelHeight(), c.GetKernelWidth(),
		c.GetStrideHeight(), c.GetStrideWidth(), c.GetPaddingHeight(), c.GetPaddingWidth(),
	}
}

// Proto is the shape on the wire.
func (c Convolution) Proto() *jobv1.Convolution {
	return &jobv1.Convolution{
		Channels: c.Channels, Height: c.Height, Width: c.Width, Outputs: c.Outputs, KernelHeight: c.KernelHeight, KernelWidth: c.KernelWidth,
		StrideHeight: c.StrideHeight, StrideWidth: c.StrideWidth, PaddingHeight: c.PaddingHeight, PaddingWidth: c.PaddingWidth,
	}
}
