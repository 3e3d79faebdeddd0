package main

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/engine/kind"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// shapeFlags are the flags that say how large matrices and convolutions are.
type shapeFlags struct {
	name                           string // of the flag with the shape
	shape, kernel, stride, padding string
}

func (q *shapeFlags) flags(f *pflag.FlagSet, name, value string) {
	q.name = name
	f.StringVar(&q.shape, name, value, "of matrices: N, or rows x inner x columns such as 200x100x50; of convolutions: the image, channels x height x width")
	f.StringVar(&q.kernel, "kernel", "", "of convolutions: outputs x height x width, such as 16x3x3")
	f.StringVar(&q.stride, "stride", "1", "of convolutions: N, or height x width, that kernels move by")
	f.StringVar(&q.padding, "padding", "0", "of convolutions: N, or height x width, of zeros on each side of the image")
}

// of is the shape of tuples of a kind; nil where they have none. The error is what to write.
func (q *shapeFlags) of(k jobv1.Kind, changed func(string) bool) (*jobv1.Shape, error) {
	wrong := func(next, format string, args ...any) (*jobv1.Shape, error) {
		return nil, rpc.Errorf(rpc.Invalid, next, format, args...)
	}
	form := wire.Kind(k).Describe().Form
	for _, name := range []string{"kernel", "stride", "padding"} {
		if changed(name) && form != kind.Convolutions {
			return wrong("leave it out: it is of convolutions", "--%s with --kind %s", name, job.KindName(k))
		}
	}
	switch {
	case form == kind.Unshaped && changed(q.name):
		return wrong("shapes are of matrices and convolutions", "--%s with --kind %s", q.name, job.KindName(k))
	case form == kind.Unshaped:
		return nil, nil
	case form == kind.Matrices:
		shape, err := parseShape(q.shape)
		if err != nil {
			return wrong("write 128, or rows x inner x columns such as 200x100x50", "--%s %q: %v", q.name, q.shape, err)
		}
		return shape, nil
	}
	var n [4][]uint32
	for i, x := range []struct {
		flag, text, example string
		count               int
		least               uint64
	}{
		{q.name, q.shape, "channels x height x width, such as 3x32x32", 3, 1}, {"kernel", q.kernel, "outputs x height x width, such as 16x3x3", 3, 1},
		{"stride", q.stride, "2, or height x width such as 2x1", 2, 1}, {"padding", q.padding, "1, or height x width such as 1x0", 2, 0},
	} {
		var err error
		if n[i], err = dimensions(x.text, x.count, x.least); err != nil {
			return wrong("write "+x.example, "--%s %q: %v", x.flag, x.text, err)
		}
	}
	image, kernel, stride, padding := n[0], n[1], n[2], n[3]
	c := &jobv1.Convolution{
		Channels: image[0], Height: image[1], Width: image[2], Outputs: kernel[0], KernelHeight: kernel[1], KernelWidth: kernel[2],
		StrideHeight: stride[0], StrideWidth: stride[1], PaddingHeight: padding[0], PaddingWidth: padding[1],
	}
	out := &jobv1.Shape{Convolution: c}
	if err := wire.Shape(out).Convolution.Check(); err != nil {
		return wrong("say another image, kernel, stride or padding", "%v", err)
	}
	return out, nil
}

// dimensions reads so many numbers with x between them; of two, one stands for both.
func dimensions(text string, count int, least uint64) (n []uint32, err error) {
	parts := strings.Split(text, "x")
	if len(parts) == 1 && count == 2 {
		parts = []string{text, text}
	}
	if len(parts) != count {
		return nil, fmt.Errorf("%d dimensions", len(parts))
	}
	for _, p := range parts {
		v, err := strconv.ParseUint(p, 10, 14)
		if err != nil || v < least {
			return nil, fmt.Errorf("%q is not a dimension from %d to 16383", p, least)
		}
		n = append(n, uint32(v))
	}
	return n, nil
}

// parseShape reads N, an N x N square, or RxKxC.
func parseShape(text string) (*jobv1.Shape, error) {
	if !strings.Contains(text, "x") {
		text = strings.Join([]string{text, text, text}, "x")
	}
	n, err := dimensions(text, 3, 1)
	if err != nil {
		return nil, err
	}
	return &jobv1.Shape{Rows: n[0], Inner: n[1], Columns: n[2]}, nil
}

// enclosing is the block that holds a shape, up to 128.
func enclosing(s *jobv1.Shape) uint32 {
	largest := max(s.GetRows(), s.GetInner(), s.GetColumns())
	if c := s.GetConvolution(); c != nil {
		p, _ := wire.Shape(s).Convolution.Product() // the flags have been checked
		largest = uint32(p.Largest())
	}
	return min(128, uint32(1)<<bits.Len32(largest-1))
}

// shapeText is a shape in a word or some: "2x3x4", or "3x32x32 by 16x3x3, stride 2x1, padding 1x1".
func shapeText(s *jobv1.Shape) string {
	c := s.GetConvolution()
	if c == nil {
		return fmt.Sprintf("%dx%dx%d", s.GetRows(), s.GetInner(), s.GetColumns())
	}
	text := fmt.Sprintf("%dx%dx%d by %dx%dx%d", c.GetChannels(), c.GetHeight(), c.GetWidth(), c.GetOutputs(), c.GetKernelHeight(), c.GetKernelWidth())
	if c.GetStrideHeight() != 1 || c.GetStrideWidth() != 1 {
		text += fmt.Sprintf(", stride %dx%d", c.GetStrideHeight(), c.GetStrideWidth())
	}
	if c.GetPaddingHeight() != 0 || c.GetPaddingWidth() != 0 {
		text += fmt.Sprintf(", padding %dx%d", c.GetPaddingHeight(), c.GetPaddingWidth())
	}
	return text
}

// convolutionRecord is the JSON of the shape of convolutions.
type convolutionRecord struct {
	Image   [3]uint32 `json:"image"`  // channels, height, width
	Kernel  [3]uint32 `json:"kernel"` // outputs, height, width
	Stride  [2]uint32 `json:"stride"` // height, width
	Padding [2]uint32 `json:"padding"`
}

// shapeJSON is a shape as JSON: rows, inner and columns of matrices, or that of convolutions.
func shapeJSON(s *jobv1.Shape) ([]uint32, *convolutionRecord) {
	c := s.GetConvolution()
	switch {
	case s == nil:
		return nil, nil
	case c == nil:
		return []uint32{s.GetRows(), s.GetInner(), s.GetColumns()}, nil
	}
	return nil, &convolutionRecord{
		[3]uint32{c.GetChannels(), c.GetHeight(), c.GetWidth()}, [3]uint32{c.GetOutputs(), c.GetKernelHeight(), c.GetKernelWidth()},
		[2]uint32{c.GetStrideHeight(), c.GetStrideWidth()}, [2]uint32{c.GetPaddingHeight(), c.GetPaddingWidth()},
	}
}
