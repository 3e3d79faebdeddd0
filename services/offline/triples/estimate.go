package triples

import (
	"context"
	"math/bits"

	"google.golang.org/protobuf/proto"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Estimate returns the tuples that a session would make and the resources that it would need at
// this party. It returns the errors of Start.
func (s *Service) Estimate(_ context.Context, r *triplesv1.EstimateRequest) (*triplesv1.EstimateResponse, error) {
	spec := proto.CloneOf(r.GetSpec())
	if spec.GetProtocol() != jobv1.Protocol_PROTOCOL_TRIPLES {
		return nil, rpc.Errorf(rpc.Invalid, "ask about jobs of tuples", "a spec of %s was sent to the service of %s", spec.GetProtocol(), jobv1.Protocol_PROTOCOL_TRIPLES)
	}
	choose := spec.GetDim() == 0
	if choose {
		spec.Dim = 1
	}
	if err := s.Sessions.Gate.Check(spec); err != nil {
		return nil, err
	}
	x := &run{Service: s, spec: spec, choose: choose}
	memory, err := x.Memory()
	if err != nil {
		return nil, err
	}
	if choose {
		spec.Dim = uint32(x.plan.Dim)
		if err := s.Sessions.Gate.Check(spec); err != nil {
			return nil, err
		}
	}
	if err := s.Sessions.Gate.Fits(memory); err != nil {
		return nil, err
	}
	k, shape := x.plan.Kind, x.plan.Shape
	tuple := 2*k.Values(shape) + k.Clear(shape)
	n, workers := x.scheme.N(), max(1, s.ring.Workers())
	return &triplesv1.EstimateResponse{
		Tuples: uint64(x.plan.Count), Dim: uint32(x.plan.Dim), TupleBytes: uint64(tuple * x.scheme.Field.Size()),
		SentBytes: uint64(x.plan.SentBytes(x.scheme)), MemoryBytes: memory,
		ComputeSeconds: float64(x.plan.Transforms()) * float64(n) * float64(bits.Len(uint(n))-1) * secondsPerStep / float64(workers),
	}, nil
}

// secondsPerStep is the approximate time of a transform of N coefficients on one core, including
// the work around it, divided by N log2 N.
const secondsPerStep = 3e-9
