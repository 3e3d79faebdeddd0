package cli

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

// ShapeFlags are the flags for the dimensions of matrices and convolutions.
type ShapeFlags struct {
	name                           string // name of the flag for the shape
	Shape, kernel, stride, padding string
}

func (q *ShapeFlags) Flags(f *pflag.FlagSet, name, value string) {
	q.name = name
	f.StringVar(&q.Shape, name, value, "matrices: N, or rows x inner x columns such as 64x30x1; convolutions: the image, channels x height x width")
	f.StringVar(&q.kernel, "kernel", "", "convolutions: outputs x height x width, such as 16x3x3")
	f.StringVar(&q.stride, "stride", "1", "convolutions: step of the kernel, N or height x width")
	f.StringVar(&q.padding, "padding", "0", "convolutions: zeros on each side of the image, N or height x width")
}

// Of returns the shape that the flags select for a kind of tuples, or nil if the kind has no shape.
// changed reports whether a flag was set. Errors say how to correct the flags.
func (q *ShapeFlags) Of(k jobv1.Kind, changed func(string) bool) (*jobv1.Shape, error) {
	wrong := func(next, format string, args ...any) (*jobv1.Shape, error) {
		return nil, rpc.Errorf(rpc.Invalid, next, format, args...)
	}
	form := wire.Kind(k).Describe().Form
	for _, name := range []string{"kernel", "stride", "padding"} {
		if changed(name) && form != kind.Convolutions {
			return wrong("remove it: it applies to convolutions only", "--%s with --kind %s", name, job.KindName(k))
		}
	}
	switch {
	case form == kind.Unshaped && changed(q.name):
		return wrong("remove it: only matrices and convolutions have a shape", "--%s with --kind %s", q.name, job.KindName(k))
	case form == kind.Unshaped:
		return nil, nil
	case form == kind.Matrices:
		shape, err := parseShape(q.Shape)
		if err != nil {
			return wrong("write 128, or rows x inner x columns such as 64x30x1", "--%s %q: %v", q.name, q.Shape, err)
		}
		return shape, nil
	}
	var n [4][]uint32
	for i, x := range []struct {
		flag, text, example string
		count               int
		least               uint64
	}{
		{q.name, q.Shape, "channels x height x width, such as 3x32x32", 3, 1}, {"kernel", q.kernel, "outputs x height x width, such as 16x3x3", 3, 1},
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
		return wrong("choose another image, kernel, stride or padding", "%v", err)
	}
	return out, nil
}

// dimensions parses count numbers separated by x, each at least least. If count is 2, one number
// stands for both.
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

// parseShape parses N, which is short for NxNxN, or RxKxC.
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

// EnclosingBlock returns the smallest block dimension that holds a shape, at most 128.
func EnclosingBlock(s *jobv1.Shape) uint32 {
	largest := max(s.GetRows(), s.GetInner(), s.GetColumns())
	if c := s.GetConvolution(); c != nil {
		p, _ := wire.Shape(s).Convolution.Product() // the flags have been checked
		largest = uint32(p.Largest())
	}
	return min(128, uint32(1)<<bits.Len32(largest-1))
}

// ShapeText formats a shape: "2x3x4", or "3x32x32 by 16x3x3, stride 2x1, padding 1x1".
func ShapeText(s *jobv1.Shape) string {
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

// ConvolutionRecord is the JSON form of the shape of convolutions.
type convolutionRecord struct {
	Image   [3]uint32 `json:"image"`  // channels, height, width
	Kernel  [3]uint32 `json:"kernel"` // outputs, height, width
	Stride  [2]uint32 `json:"stride"` // height, width
	Padding [2]uint32 `json:"padding"`
}

// ShapeJSON returns the JSON form of a shape: rows, inner and columns of matrices, or the shape of
// convolutions.
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
