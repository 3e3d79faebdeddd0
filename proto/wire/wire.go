// Package wire converts between the messages of lodge.job.v1 and the kinds and shapes of package
// kind.
package wire

import (
	"strings"

	"github.com/lodge-mpc/lodge/engine/kind"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

const prefix = "KIND_"

// Name returns the name of a kind of jobs in flags, configurations and JSON: its name in job.proto
// without KIND_, in lower case. The unspecified kind and unknown kinds have the empty name.
func Name(k jobv1.Kind) string {
	name, ok := jobv1.Kind_name[int32(k)]
	if !ok || k == jobv1.Kind_KIND_UNSPECIFIED {
		return ""
	}
	return strings.ToLower(strings.TrimPrefix(name, prefix))
}

// Of returns the kind of jobs with the given name, or the unspecified kind.
func Of(name string) jobv1.Kind {
	if k := jobv1.Kind(jobv1.Kind_value[prefix+strings.ToUpper(name)]); Name(k) == name {
		return k
	}
	return jobv1.Kind_KIND_UNSPECIFIED
}

// Kind returns the kind of tuples that jobs of kind k make, or 0 if they make no tuples.
func Kind(k jobv1.Kind) kind.Kind { return kind.Of(Name(k)) }

// Number returns the kind of the jobs that make tuples of kind k.
func Number(k kind.Kind) jobv1.Kind { return Of(k.String()) }

// Shape converts a shape from the wire. nil is the zero shape.
func Shape(s *jobv1.Shape) kind.Shape {
	c := s.GetConvolution()
	return kind.Shape{
		Matrix: kind.MatrixShape{Rows: int(s.GetRows()), Inner: int(s.GetInner()), Cols: int(s.GetColumns())},
		Convolution: kind.ConvolutionShape{
			Channels: int(c.GetChannels()), Height: int(c.GetHeight()), Width: int(c.GetWidth()),
			Outputs: int(c.GetOutputs()), KernelHeight: int(c.GetKernelHeight()), KernelWidth: int(c.GetKernelWidth()),
			StrideHeight: int(c.GetStrideHeight()), StrideWidth: int(c.GetStrideWidth()),
			PaddingHeight: int(c.GetPaddingHeight()), PaddingWidth: int(c.GetPaddingWidth()),
		},
	}
}

// ShapeOf converts a shape to the wire. The zero shape is nil.
func ShapeOf(s kind.Shape) *jobv1.Shape {
	if s == (kind.Shape{}) {
		return nil
	}
	out := &jobv1.Shape{Rows: uint32(s.Matrix.Rows), Inner: uint32(s.Matrix.Inner), Columns: uint32(s.Matrix.Cols)}
	if c := s.Convolution; c != (kind.ConvolutionShape{}) {
		out.Convolution = &jobv1.Convolution{
			Channels: uint32(c.Channels), Height: uint32(c.Height), Width: uint32(c.Width),
			Outputs: uint32(c.Outputs), KernelHeight: uint32(c.KernelHeight), KernelWidth: uint32(c.KernelWidth),
			StrideHeight: uint32(c.StrideHeight), StrideWidth: uint32(c.StrideWidth),
			PaddingHeight: uint32(c.PaddingHeight), PaddingWidth: uint32(c.PaddingWidth),
		}
	}
	return out
}
