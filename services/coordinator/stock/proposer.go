package stock

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxItems limits the reservations in one call; parties accept no more.
const maxItems = 256

// proposer sends reservations to one party and combines those of many callers in one call.
type proposer struct {
	Party
	index int
	queue chan proposal
}

type proposal struct {
	ctx  context.Context // context of the waiting caller
	r    *tuplesv1.Reservation
	done chan<- error
}

var errStops = rpc.Errorf(rpc.Unavailable, "try again", "the coordinator is stopping")

// size returns the size of the proposal in a request, in bytes, including tag and length.
func (x proposal) size() int { return proto.Size(x.r) + 5 }

func newProposer(index int, p Party) *proposer {
	return &proposer{Party: p, index: index, queue: make(chan proposal, 4*maxItems)}
}

func (p *proposer) client() tuplesv1.TuplesServiceClient {
	return tuplesv1.NewTuplesServiceClient(p.Conn)
}

func (p *proposer) String() string { return fmt.Sprintf("party %d (%s)", p.index, p.Name) }

// run makes the calls until ctx is done. While one call is in flight, proposals for the next
// accumulate.
func (p *proposer) run(ctx context.Context) {
	calls := make(chan struct{}, 2)
	var left []proposal // a proposal that did not fit into the last call
	for {
		batch := left
		if left = nil; len(batch) == 0 {
			select {
			case x := <-p.queue:
				batch = append(batch, x)
			case <-ctx.Done():
				return
			}
		}
		select {
		case calls <- struct{}{}:
		case <-ctx.Done():
			return // the waiting callers see that ctx is done
		}
		size := batch[0].size()
	more:
		for len(batch) < maxItems {
			select {
			case x := <-p.queue:
				if size += x.size(); size > rpc.MaxRequest {
					left = append(left, x)
					break more
				}
				batch = append(batch, x)
			default:
				break more
			}
		}
		go func() {
			p.call(ctx, batch)
			<-calls
		}()
	}
}

func (p *proposer) call(ctx context.Context, batch []proposal) {
	batch = slices.DeleteFunc(batch, func(x proposal) bool {
		err := x.ctx.Err()
		if err != nil { // the caller no longer waits, and the party does not need the proposal
			x.done <- err
		}
		return err != nil
	})
	if len(batch) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	req := &tuplesv1.ProposeRequest{}
	for _, x := range batch {
		req.Reservations = append(req.Reservations, x.r)
	}
	r, err := p.client().Propose(ctx, req)
	if err == nil && len(r.GetOutcomes()) != len(batch) {
		err = rpc.Errorf(rpc.Internal, "", "%s responded to %d of %d proposals", p, len(r.GetOutcomes()), len(batch))
	}
	for i, x := range batch {
		switch {
		case err != nil:
			x.done <- err
		case r.GetOutcomes()[i].GetCode() != "":
			o := r.GetOutcomes()[i]
			x.done <- rpc.Errorf(rpc.Code(o.GetCode()), "", "%s refuses: %s", p, o.GetWhat())
		case r.GetOutcomes()[i].GetState() != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED &&
			r.GetOutcomes()[i].GetState() != tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED:
			x.done <- rpc.Errorf(rpc.Conflict, "reserve again", "the reservation has ended at %s", p)
		default:
			x.done <- nil
		}
	}
}

// propose sends a reservation to the party and waits for the response. If ctx ends after the
// reservation was queued, the call may be in flight, so propose still waits for the response; every
// call has its own timeout.
func (p *proposer) propose(ctx context.Context, r *tuplesv1.Reservation, stopped <-chan struct{}) error {
	done := make(chan error, 1)
	select {
	case p.queue <- proposal{ctx, r, done}:
	case <-ctx.Done():
		return ctx.Err()
	case <-stopped:
		return errStops
	}
	select {
	case err := <-done:
		return err
	case <-stopped:
		return errStops
	}
}

// batches returns the party's batches.
func (p *proposer) batches(ctx context.Context) (list []*tuplesv1.Batch, err error) {
	after := ""
	for {
		call, cancel := context.WithTimeout(ctx, callTime)
		r, err := p.client().ListBatches(call, &tuplesv1.ListBatchesRequest{After: after, Limit: 1000})
		cancel()
		if err != nil {
			return nil, err
		}
		list = append(list, r.GetBatches()...)
		if after = r.GetNext(); after == "" {
			return list, nil
		}
	}
}

// withdraw and release return the outcome for each reservation.
func (p *proposer) withdraw(ctx context.Context, ids []string) ([]*tuplesv1.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := p.client().Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: ids})
	if err == nil && len(r.GetOutcomes()) != len(ids) {
		err = rpc.Errorf(rpc.Internal, "", "%s responded to %d of %d withdrawals", p, len(r.GetOutcomes()), len(ids))
	}
	return r.GetOutcomes(), err
}

func (p *proposer) release(ctx context.Context, ids []string, discard bool) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	r, err := p.client().Release(ctx, &tuplesv1.ReleaseRequest{Ids: ids, Discard: discard})
	for _, o := range r.GetOutcomes() {
		if c := rpc.Code(o.GetCode()); err == nil && c != "" && c != rpc.NotFound {
			err = rpc.Errorf(c, "", "%s: %s", p, o.GetWhat())
		}
	}
	return err
}
