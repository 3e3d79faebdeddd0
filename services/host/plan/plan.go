// Package plan derives the inputs of a session's computation from its spec and the public data of
// the epoch's keys. The result is the same at every party and for later verifiers of the session.
package plan

import (
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
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

// Batch returns the plan of a triple session and the instance of the proof of a MAC key. The set
// resolves instances under the keys of the epoch, whose rotations support blocks of dimension
// keyDim. If choose is set, the plan chooses the block dimension for matrices and convolutions.
func Batch(spec *jobv1.SessionSpec, set *params.Set, parties, keyDim int, choose bool) (*triple.Plan, *params.Instance, error) {
	k, dim := wire.Kind(spec.GetKind()), 0
	if k.Shaped() && !choose {
		dim = int(spec.GetDim())
	}
	p, err := triple.NewPlan(set, spec.GetField(), parties, k, wire.Shape(spec.GetShape()), dim, int(min(spec.GetCount(), 1<<30)), keyDim)
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

// Terms returns the hash of a session's inputs: the instance, and the key under which its parties
// prove and decrypt.
func Terms(protocol string, i *params.Instance, key round.Digest) round.Digest {
	h := i.Hash()
	return round.Hash("lodge "+protocol+" terms", h[:], key[:])
}
