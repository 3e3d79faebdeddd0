package stock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// levels counts the tuples of each class and epoch.
func (v *view) levels() (list []*stockv1.Stock, asOf time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	type place struct {
		class key
		epoch uint64
	}
	found := map[place]*stockv1.Stock{}
	for _, s := range v.shelves {
		b := s.batch
		at := place{s.class, b.GetEpoch()}
		if found[at] == nil {
			found[at] = &stockv1.Stock{Class: b.GetClass(), Epoch: b.GetEpoch()}
			list = append(list, found[at])
		}
		x, free := found[at], s.free.Count()
		x.Available += free
		x.Lost += b.GetLost()
		x.Consumed += b.GetErased() - min(b.GetErased(), b.GetLost())
		if b.GetState() == tuplesv1.BatchState_BATCH_STATE_AVAILABLE {
			x.Reserved += b.GetCount() - min(b.GetCount(), free+b.GetErased())
		}
	}
	slices.SortFunc(list, func(a, b *stockv1.Stock) int {
		return cmp.Or(cmp.Compare(a.GetEpoch(), b.GetEpoch()), cmp.Compare(a.GetClass().GetTenant(), b.GetClass().GetTenant()),
			cmp.Compare(keyOf(a.GetClass()), keyOf(b.GetClass())))
	})
	return list, v.asOf
}

// stock is what a client may know of.
func (s *Service) stock(caller rpc.Principal, epoch uint64) ([]*stockv1.Stock, *timestamppb.Timestamp) {
	all, asOf := s.view.levels()
	return slices.DeleteFunc(all, func(x *stockv1.Stock) bool {
		return !caller.Serves(x.GetClass().GetTenant()) || epoch != 0 && epoch != x.GetEpoch()
	}), timestamppb.New(asOf)
}

// GetStock implements the service.
func (s *Service) GetStock(ctx context.Context, q *stockv1.GetStockRequest) (*stockv1.GetStockResponse, error) {
	caller, _ := rpc.Caller(ctx)
	list, asOf := s.stock(caller, q.GetEpoch())
	return &stockv1.GetStockResponse{Stock: list, AsOf: asOf}, nil
}

// WatchStock implements the service.
func (s *Service) WatchStock(q *stockv1.WatchStockRequest, stream stockv1.StockService_WatchStockServer) error {
	caller, _ := rpc.Caller(stream.Context())
	for {
		changed := s.view.watch()
		list, asOf := s.stock(caller, q.GetEpoch())
		if err := stream.Send(&stockv1.WatchStockResponse{Stock: list, AsOf: asOf}); err != nil {
			return err
		}
		for _, c := range []<-chan struct{}{after(watchEvery), changed} {
			select {
			case <-c:
			case <-s.stopped:
				return rpc.Errorf(rpc.Unavailable, "watch again", "the coordinator stops")
			case <-stream.Context().Done():
				return stream.Context().Err()
			}
		}
	}
}

// watchEvery is the least time between two messages to one who watches.
const watchEvery = time.Second

// after is time.After without the time.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}
