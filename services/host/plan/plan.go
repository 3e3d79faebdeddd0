// Package plan derives the inputs of a session's computation from its spec and the public data of the
// epoch's keys. The result is the same at every party and for later verifiers of the session.
package plan

import (
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// The names of the protocols in terms and signatures.
const (
	Keygen  = "keygen"
	Popk    = "popk"
	Triples = "triples"
	// Threshold covers all sessions with threshold keys.
	Threshold = "threshold"
)

// StepProof is the step name of the proof in a proof session.
const StepProof = "popk"

// Name returns the name of a spec's protocol, or "" if the protocol is unknown.
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

// Kinds maps the kinds of jobs to the engine's kinds.
var Kinds = map[jobv1.Kind]triple.Kind{
	jobv1.Kind_KIND_SCALAR: triple.Scalar, jobv1.Kind_KIND_MATRIX: triple.Matrix, jobv1.Kind_KIND_SQUARE: triple.Square,
	jobv1.Kind_KIND_RANDOM: triple.Random, jobv1.Kind_KIND_BIT: triple.Bit, jobv1.Kind_KIND_INVERSE: triple.Inverse,
	jobv1.Kind_KIND_INPUT: triple.Input, jobv1.Kind_KIND_CONVOLUTION: triple.Convolution,
}

// Convolution converts the shape of a convolution to the engine's type.
func Convolution(c *jobv1.Convolution) triple.ConvolutionShape {
	return triple.ConvolutionShape{
		Channels: int(c.GetChannels()), Height: int(c.GetHeight()), Width: int(c.GetWidth()),
		Outputs: int(c.GetOutputs()), KernelHeight: int(c.GetKernelHeight()), KernelWidth: int(c.GetKernelWidth()),
		StrideHeight: int(c.GetStrideHeight()), StrideWidth: int(c.GetStrideWidth()),
		PaddingHeight: int(c.GetPaddingHeight()), PaddingWidth: int(c.GetPaddingWidth()),
	}
}

// Batch returns the plan of a triple session and the instance of the proof of a MAC key. The set resolves
// instances under the keys of the epoch, whose rotations support blocks of dimension keyDim. If choose is
// set, the plan chooses the block dimension for matrices and convolutions.
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

// Proof returns the instance of a proof session.
func Proof(spec *jobv1.SessionSpec, set *params.Set, parties int) (*params.Instance, error) {
	return popk.ClientInstance(set, spec.GetField(), parties, int(min(spec.GetCount(), 1<<30)))
}

// Terms returns the hash of a session's inputs: the instance, and the key under which its parties prove and
// decrypt.
func Terms(protocol string, i *params.Instance, key round.Digest) round.Digest {
	h := i.Hash()
	return round.Hash("lodge "+protocol+" terms", h[:], key[:])
}
