package coordinator

import (
	"context"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Estimate makes batches of whole hundreds, up to a thousand.
func (f fakeTriples) Estimate(_ context.Context, r *triplesv1.EstimateRequest) (*triplesv1.EstimateResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	if f.p.onEstimate != nil {
		return f.p.onEstimate(r.GetSpec())
	}
	return estimateOf(r.GetSpec()), nil
}

func estimateOf(spec *jobv1.SessionSpec) *triplesv1.EstimateResponse {
	tuples := min(1000, (spec.GetCount()+99)/100*100)
	return &triplesv1.EstimateResponse{
		Tuples: tuples, Dim: max(spec.GetDim(), 1), TupleBytes: 96, SentBytes: 125_000_000, MemoryBytes: 1 << 20, ComputeSeconds: 2,
	}
}

// Propose takes a reservation's tuples from the first span of each batch that begins with them.
func (f fakeTuples) Propose(_ context.Context, r *tuplesv1.ProposeRequest) (*tuplesv1.ProposeResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	out := &tuplesv1.ProposeResponse{}
	for _, x := range r.GetReservations() {
		o := &tuplesv1.Outcome{Id: x.GetId(), State: tuplesv1.ReservationState_RESERVATION_STATE_RESERVED}
		for _, want := range x.GetRanges() {
			for _, b := range f.p.batches {
				if b.GetId() != want.GetBatchId() {
					continue
				}
				if len(b.Free) == 0 || b.Free[0].First != want.GetFirst() || b.Free[0].Count < want.GetCount() {
					o.Code, o.What = string(rpc.Taken), "taken"
					break
				}
				b.Free[0].First += want.GetCount()
				b.Free[0].Count -= want.GetCount()
			}
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}
