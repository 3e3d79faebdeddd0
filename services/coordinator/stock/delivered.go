package stock

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Parties deliver tuples without the coordinator, so the coordinator polls them for the state of
// reservations. When all parties have delivered a reservation, the coordinator records it as
// CONSUMED. The reservation has not ended: its clients may fetch again until the lease ends.

const (
	followEvery = 2 * time.Second
	maxFollowed = 256 // maximum number of reservations per poll
	followers   = 8   // concurrent requests
)

// open reports whether a reservation has not ended.
func open(r *tuplesv1.Reservation) bool {
	return r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED || r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED
}

// follow polls the parties for open reservations until ctx is done.
func (s *Service) follow(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for after := ""; ctx.Err() == nil; {
		var err error
		if after, err = s.followSome(ctx, after); err != nil {
			s.log.Error("cannot read open reservations", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// followSome polls the parties for up to maxFollowed open reservations, and returns the position
// from which to continue.
func (s *Service) followSome(ctx context.Context, after string) (next string, err error) {
	ask, next, err := s.records.undelivered(after, maxFollowed)
	if err != nil {
		return after, err
	}
	s.lookAt(ctx, ask, callTime)
	return next, nil
}

// recallDelivered counts the delivered tuples of open reservations.
func (s *Service) recallDelivered() {
	err := s.records.open(func(_ string, r *tuplesv1.Reservation) bool {
		if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED {
			s.view.deliver(r, true)
		}
		return true
	})
	if err != nil {
		s.log.Error("cannot read open reservations", "error", err)
	}
}

// lookAt queries the parties about reservations. It records those that all parties have delivered
// and returns them by id. It stops at the first party that does not respond, and after the given
// time.
func (s *Service) lookAt(ctx context.Context, list []*tuplesv1.Reservation, most time.Duration) map[string]*tuplesv1.Reservation {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	var mu sync.Mutex
	found := map[string]*tuplesv1.Reservation{}
	var wg sync.WaitGroup
	queue := make(chan *tuplesv1.Reservation)
	for range min(followers, len(list)) {
		wg.Go(func() {
			for r := range queue {
				said, err := s.askParties(ctx, r.GetId())
				if err == nil {
					r, err = s.consumed(r.GetId(), said)
				}
				switch {
				case err != nil:
					cancel()
				case r != nil:
					mu.Lock()
					found[r.GetId()] = r
					mu.Unlock()
				}
			}
		})
	}
	for _, r := range list {
		if ctx.Err() != nil {
			break
		}
		queue <- r
	}
	close(queue)
	wg.Wait()
	return found
}

// askParties returns the parties' reports about a reservation, up to the first party that has not
// delivered it or does not know it.
func (s *Service) askParties(ctx context.Context, id string) (said []*tuplesv1.Reservation, err error) {
	for _, p := range s.parties {
		x, err := p.client().GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: id})
		if err != nil && rpc.FromError(err).Code == rpc.NotFound {
			return said, nil
		}
		if err != nil {
			return nil, err
		}
		said = append(said, x.GetReservation())
		if x.GetReservation().GetState() != tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED {
			break
		}
	}
	return said, nil
}

// consumed records that a reservation is delivered if all parties report so. It returns the
// reservation, or nil if it is not delivered.
func (s *Service) consumed(id string, said []*tuplesv1.Reservation) (*tuplesv1.Reservation, error) {
	var clients []string
	var last time.Time
	for _, x := range said {
		if x.GetState() != tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED {
			return nil, nil
		}
		clients = append(clients, x.GetClient())
		last = later(last, x.GetDelivered().AsTime())
	}
	if len(said) < len(s.parties) || len(said) == 0 {
		return nil, nil
	}
	slices.Sort(clients)
	r, fresh, err := s.records.deliver(id, strings.Join(slices.Compact(clients), ","), timestamppb.New(last))
	if fresh {
		s.view.deliver(r, true)
		s.limits.delivered(id)
	}
	return r, err
}

// deliver records that the tuples of an open reservation were delivered, or that a delivered
// reservation has ended.
func (v *view) deliver(r *tuplesv1.Reservation, open bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	at := place{keyOf(r.GetClass()), r.GetEpoch()}
	if open {
		v.delivered[at] += r.GetCount()
	} else if v.delivered[at] -= r.GetCount(); v.delivered[at] == 0 {
		delete(v.delivered, at)
	}
	v.touch()
}
