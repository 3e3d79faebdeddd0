package threshold

import (
	"context"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Estimate returns the cost of a session that makes masks at this party. It rejects requests that
// Start would reject.
func (s *Service) Estimate(_ context.Context, q *thresholdv1.EstimateRequest) (*thresholdv1.EstimateResponse, error) {
	spec := q.GetSpec()
	if spec.GetKind() != jobv1.Kind_KIND_MASKS {
		return nil, rpc.Errorf(rpc.Invalid, "request an estimate for masks", "estimates are not supported for %s", spec.GetKind())
	}
	if err := s.Sessions.Gate.Check(spec); err != nil {
		return nil, err
	}
	r := &masksRun{Service: s, spec: spec}
	memory, err := r.Memory()
	if err != nil {
		return nil, err
	}
	if err := s.Sessions.Gate.Fits(memory); err != nil {
		return nil, err
	}
	return &thresholdv1.EstimateResponse{Masks: spec.GetCount(), MaskBytes: uint64(r.params.Kind.RecordSize()), MemoryBytes: memory}, nil
}
