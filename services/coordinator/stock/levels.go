package stock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// levels counts the tuples of each class and epoch. The counts are as of the last time when all
// parties responded, or all parties of the quorum for masks.
func (v *view) levels() (found map[place]*stockv1.Stock, of seen) {
	v.mu.Lock()
	defer v.mu.Unlock()
	found = map[place]*stockv1.Stock{}
	for _, s := range v.shelves {
		b := s.batch
		at := place{s.class, b.GetEpoch()}
		if found[at] == nil {
			found[at] = &stockv1.Stock{Class: b.GetClass(), Epoch: b.GetEpoch()}
		}
		x, free := found[at], s.free.Count()
		x.Available += free
		x.Lost += b.GetLost()
		if b.GetStranded() && b.GetState() == tuplesv1.BatchState_BATCH_STATE_AVAILABLE { // the rest of it is unusable
			x.Lost += b.GetCount() - min(b.GetCount(), b.GetErased())
		}
		switch {
		case b.GetState() != tuplesv1.BatchState_BATCH_STATE_REVOKED:
			x.Consumed += b.GetErased() - min(b.GetErased(), b.GetLost())
		case b.GetLost() > 0 || b.GetErased() > 0: // it was in stock; tuples in reservations are lost when these end
			kept := b.GetCount() - min(b.GetCount(), b.GetLost())
			consumed := min(b.GetErased(), kept)
			x.Consumed += consumed
			x.Reserved += kept - consumed
		}
		if s.alike && !b.GetStranded() && b.GetState() == tuplesv1.BatchState_BATCH_STATE_AVAILABLE { // tuples that a party lacks cannot be reserved
			held := b.GetCount() - min(b.GetCount(), free+b.GetErased())
			if masks(b.GetClass()) { // a party of the quorum has used them, which makes them unusable
				x.Consumed += held
			} else {
				x.Reserved += held
			}
		}
	}
	for at, n := range v.delivered {
		if x := found[at]; x != nil {
			n = min(n, x.GetReserved())
			x.Reserved -= n
			x.Consumed += n
		}
	}
	return found, seen{v.asOf, v.away}
}

// seen has the age of a view, and the parties that are unavailable since.
type seen struct {
	asOf time.Time            // zero: never
	away []*stockv1.AwayParty // since asOf
}

// at returns asOf, or nil if it is zero.
func (x seen) at() *timestamppb.Timestamp {
	if x.asOf.IsZero() {
		return nil
	}
	return timestamppb.New(x.asOf)
}

// counts holds the view's counts of each place, for a plan.
type counts struct {
	available map[place]uint64 // tuples that can be reserved
	batches   map[string]bool  // the batches that contain, or contained, these tuples
	used      uint64           // bytes of the tuples of all batches at the party that stores most
}

// counts counts batches of completed jobs, and batches that will be complete once all parties
// report the same state. Batches that are being made are counted by their jobs.
func (v *view) counts() counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := counts{available: map[place]uint64{}, batches: map[string]bool{}}
	for id, s := range v.shelves {
		if !s.alike || s.batch.GetState() == tuplesv1.BatchState_BATCH_STATE_LOCKED {
			continue
		}
		c.batches[id] = true
		c.available[place{s.class, s.batch.GetEpoch()}] += s.free.Count()
		c.used += (s.batch.GetCount() - min(s.batch.GetCount(), s.batch.GetErased())) * s.batch.GetTupleBytes()
	}
	return c
}

// order compares entries of a list: by epoch, tenant and class.
func order(a *tuplesv1.Class, epochA uint64, b *tuplesv1.Class, epochB uint64) int {
	return cmp.Or(cmp.Compare(epochA, epochB), cmp.Compare(a.GetTenant(), b.GetTenant()), cmp.Compare(keyOf(a), keyOf(b)))
}

// all returns the stock of all tenants, with policies and forecast.
func (s *Service) all() (list []*stockv1.Stock, of seen) {
	found, of := s.view.levels()
	s.keeping.Lock()
	for at, p := range s.kept.policies {
		if found[at] == nil {
			found[at] = &stockv1.Stock{Class: p.policy.msg.GetClass(), Epoch: at.epoch}
		}
		found[at].Policy, found[at].HeldBack = p.policy.msg, p.held
	}
	for at, x := range found {
		x.InProduction = s.kept.making[at]
	}
	s.keeping.Unlock()
	now := time.Now()
	s.flowing.Lock()
	for at, x := range found {
		if f := s.flows.at[at]; f != nil {
			x.MadePerSecond, x.ReservedPerSecond = f.made.rate(now), f.reserved.rate(now)
		}
	}
	s.flowing.Unlock()
	for _, x := range found {
		if list = append(list, x); of.asOf.IsZero() {
			continue // no basis for a forecast
		}
		empty, full := forecast(x.GetAvailable(), x.GetPolicy().GetHigh(), x.GetMadePerSecond(), x.GetReservedPerSecond())
		if empty != never {
			x.TimeToEmpty = durationpb.New(empty)
		}
		if full != never {
			x.TimeToFull = durationpb.New(full)
		}
	}
	slices.SortFunc(list, func(a, b *stockv1.Stock) int { return order(a.GetClass(), a.GetEpoch(), b.GetClass(), b.GetEpoch()) })
	return list, of
}

// stock returns the stock that a client may see.
func (s *Service) stock(caller rpc.Principal, epoch uint64) ([]*stockv1.Stock, seen) {
	all, of := s.all()
	return slices.DeleteFunc(all, func(x *stockv1.Stock) bool {
		return !shows(caller, x.GetClass()) || epoch != 0 && epoch != x.GetEpoch()
	}), of
}

// GetStock implements the service.
func (s *Service) GetStock(ctx context.Context, q *stockv1.GetStockRequest) (*stockv1.GetStockResponse, error) {
	caller, _ := rpc.Caller(ctx)
	//lodge:check stock/fresh [tests=./cmd/lodge/internal/jobs] [run=TestStockAfterRetirement] tuples
	//  of an epoch that was just retired are shown as available
	s.update(ctx)
	list, of := s.stock(caller, q.GetEpoch())
	return &stockv1.GetStockResponse{Stock: list, AsOf: of.at(), Away: of.away}, nil
}

// update asks the parties for their stock, unless one was unavailable: an epoch may have been
// retired since the last poll, and its tuples are gone. It waits for a moment only.
func (s *Service) update(ctx context.Context) {
	s.view.mu.Lock()
	known := !s.view.asOf.IsZero() && len(s.view.away) == 0
	s.view.mu.Unlock()
	if !known {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, listTime)
	done := make(chan struct{})
	go func() {
		defer cancel()
		defer close(done)
		s.Refresh(ctx)
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// WatchStock implements the service.
func (s *Service) WatchStock(q *stockv1.WatchStockRequest, stream stockv1.StockService_WatchStockServer) error {
	caller, _ := rpc.Caller(stream.Context())
	for {
		changed := s.view.watch()
		list, of := s.stock(caller, q.GetEpoch())
		if err := stream.Send(&stockv1.WatchStockResponse{Stock: list, AsOf: of.at(), Away: of.away}); err != nil {
			return err
		}
		for _, c := range []<-chan struct{}{after(watchEvery), changed} {
			select {
			case <-c:
			case <-s.stopped:
				return rpc.Errorf(rpc.Unavailable, "watch again", "the coordinator is stopping")
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
		}
	}
}

// watchEvery is the minimum time between two messages to a watcher.
const watchEvery = time.Second

// after is time.After without the time value.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}
