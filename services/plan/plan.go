// Package plan says what a session computes with: a function of its spec and of what is known about the epoch's keys, the same at
// every party and for whoever judges the session afterwards.
package plan

import (
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// The protocols as terms and signatures name them.
const (
	Keygen  = "keygen"
	Popk    = "popk"
	Triples = "triples"
	// Threshold is all that has to do with threshold keys.
	Threshold = "threshold"
)

// StepProof is the step of the proof of a session of proofs.
const StepProof = "popk"

// Name is that of a spec's protocol, empty for none.
func Name(p jobv1.Protocol) string {
	switch p {
	case jobv1.Protocol_PROTOCOL_KEYGEN:
		return Keygen
	case jobv1.Protocol_PROTOCOL_POPK:
		return Popk
	case jobv1.Protocol_PROTOCOL_TRIPLES:
		return Triples
	case jobv1.Protocol_PROTOCOL_THRESHOLD:
		return Threshold
	}
	return ""
}

// Kinds are the kinds of jobs as the engine calls them.
var Kinds = map[jobv1.Kind]triple.Kind{
	jobv1.Kind_KIND_SCALAR: triple.Scalar, jobv1.Kind_KIND_MATRIX: triple.Matrix, jobv1.Kind_KIND_SQUARE: triple.Square,
	jobv1.Kind_KIND_RANDOM: triple.Random, jobv1.Kind_KIND_BIT: triple.Bit, jobv1.Kind_KIND_INVERSE: triple.Inverse,
	jobv1.Kind_KIND_INPUT: triple.Input, jobv1.Kind_KIND_CONVOLUTION: triple.Convolution,
}

// Convolution is the shape of a convolution as the engine has it.
func Convolution(c *jobv1.Convolution) triple.ConvolutionShape {
	return triple.ConvolutionShape{
		Channels: int(c.GetChannels()), Height: int(c.GetHeight()), Width: int(c.GetWidth()),
		Outputs: int(c.GetOutputs()), KernelHeight: int(c.GetKernelHeight()), KernelWidth: int(c.GetKernelWidth()),
		StrideHeight: int(c.GetStrideHeight()), StrideWidth: int(c.GetStrideWidth()),
		PaddingHeight: int(c.GetPaddingHeight()), PaddingWidth: int(c.GetPaddingWidth()),
	}
}

// Batch is the plan of a session of triples, and the instance of the proof of a MAC key. The set resolves instances under the
// keys of the epoch, whose rotations serve blocks of keyDim; choose has the plan choose the block of matrices and convolutions.
func Batch(spec *jobv1.SessionSpec, set *params.Set, parties, keyDim int, choose bool) (*triple.Plan, *params.Instance, error) {
	kind, dim := Kinds[spec.GetKind()], 0
	var shape triple.Shape
	if kind := spec.GetKind(); !choose && (kind == jobv1.Kind_KIND_MATRIX || kind == jobv1.Kind_KIND_CONVOLUTION) {
		dim = int(spec.GetDim())
	}
	if kind == triple.Matrix {
		shape = triple.Shape{Rows: int(spec.GetShape().GetRows()), Inner: int(spec.GetShape().GetInner()), Cols: int(spec.GetShape().GetColumns())}
	}
	var p *triple.Plan
	var err error
	if kind == triple.Convolution {
		p, err = triple.NewConvolutionPlan(set, spec.GetField(), parties, Convolution(spec.GetShape().GetConvolution()), dim, keyDim)
	} else {
		p, err = triple.NewPlan(set, spec.GetField(), parties, kind, shape, dim, int(min(spec.GetCount(), 1<<30)), keyDim)
	}
	if err != nil {
		return nil, nil, err
	}
	if spec.GetNoSacrifice() {
		if p, err = p.Trusting(); err != nil {
			return nil, nil, err
		}
	}
	if p.Owner = round.Party(spec.GetInputParty()); int(p.Owner) >= parties {
		return nil, nil, rpc.Errorf(rpc.Invalid, "parties count from 0", "input party %d of %d", p.Owner, parties)
	}
	mac, err := triple.MACKeyInstance(set, spec.GetField(), parties)
	return p, mac, err
}

// Proof is the instance of a session of proofs.
func Proof(spec *jobv1.SessionSpec, set *params.Set, parties int) (*params.Instance, error) {
	return popk.ClientInstance(set, spec.GetField(), parties, int(min(spec.GetCount(), 1<<30)))
}

// Terms is the hash of what a session computes with: the instance, and the key under which its parties prove and decrypt.
func Terms(protocol string, i *params.Instance, key round.Digest) round.Digest {
	h := i.Hash()
	return round.Hash("lodge "+protocol+" terms", h[:], key[:])
}
