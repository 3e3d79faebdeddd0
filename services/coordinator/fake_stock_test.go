package coordinator

import (
	"context"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/spans"
)

// Estimate plans batches of whole hundreds, up to a thousand.
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

// Propose reserves tuples. A withdrawn reservation is never reserved again.
func (f fakeTuples) Propose(_ context.Context, r *tuplesv1.ProposeRequest) (*tuplesv1.ProposeResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	out := &tuplesv1.ProposeResponse{}
	for _, x := range r.GetReservations() {
		if f.p.reserved[x.GetId()] == 0 {
			f.p.reserved[x.GetId()] = tuplesv1.ReservationState_RESERVATION_STATE_RESERVED
			for _, want := range x.GetRanges() {
				if !f.p.take(want) {
					f.p.reserved[x.GetId()] = tuplesv1.ReservationState_RESERVATION_STATE_ERASED
				}
			}
		}
		out.Outcomes = append(out.Outcomes, &tuplesv1.Outcome{Id: x.GetId(), State: f.p.reserved[x.GetId()]})
	}
	return out, nil
}

func (p *fakeParty) take(want *tuplesv1.Range) bool {
	x := spans.Span{First: want.GetFirst(), Count: want.GetCount()}
	for _, b := range p.batches {
		if b.GetId() != want.GetBatchId() {
			continue
		}
		free := spans.Set{}
		for _, s := range b.GetFree() {
			free = free.With(spans.Span{First: s.GetFirst(), Count: s.GetCount()})
		}
		if free.And(spans.Set{x}).Count() != x.Count {
			return false
		}
		b.Free = nil
		for _, s := range free.Without(x) {
			b.Free = append(b.Free, &tuplesv1.Span{First: s.First, Count: s.Count})
		}
		return true
	}
	return false
}

// Withdraw ends reservations; this fake discards their tuples.
func (f fakeTuples) Withdraw(_ context.Context, r *tuplesv1.WithdrawRequest) (*tuplesv1.WithdrawResponse, error) {
	f.p.mu.Lock()
	defer f.p.mu.Unlock()
	out := &tuplesv1.WithdrawResponse{}
	for _, id := range r.GetIds() {
		if f.p.reserved[id] == 0 {
			out.Outcomes = append(out.Outcomes, &tuplesv1.Outcome{Id: id, Code: string(rpc.NotFound), What: "no such reservation"})
			continue
		}
		f.p.reserved[id] = tuplesv1.ReservationState_RESERVATION_STATE_WITHDRAWN
		out.Outcomes = append(out.Outcomes, &tuplesv1.Outcome{Id: id, State: f.p.reserved[id]})
	}
	return out, nil
}

// Release does nothing in this fake.
func (f fakeTuples) Release(context.Context, *tuplesv1.ReleaseRequest) (*tuplesv1.ReleaseResponse, error) {
	return &tuplesv1.ReleaseResponse{}, nil
}
