package stock

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// Parties give tuples out without the coordinator, which therefore asks what became of reservations. One that all parties
// delivered is CONSUMED in its records from then on. It has not ended: its clients may fetch again until the lease does.

const (
	followEvery = 2 * time.Second
	maxFollowed = 256 // reservations about which the parties are asked in a row
	followers   = 8   // that ask at the same time
)

// open reports whether a reservation has not ended.
func open(r *tuplesv1.Reservation) bool {
	return r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED || r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED
}

// follow asks about open reservations until ctx is done.
func (s *Service) follow(ctx context.Context) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for after := ""; ctx.Err() == nil; {
		var err error
		if after, err = s.followSome(ctx, after); err != nil {
			s.log.Error("looking for open reservations", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// followSome asks about some of them, and says where the next are to begin.
func (s *Service) followSome(ctx context.Context, after string) (next string, err error) {
	ask, next, err := s.records.undelivered(after, maxFollowed)
	if err != nil {
		return after, err
	}
	s.lookAt(ctx, ask, callTime)
	return next, nil
}

// recallDelivered counts what was delivered of the reservations that are open.
func (s *Service) recallDelivered() {
	err := s.records.open(func(_ string, r *tuplesv1.Reservation) bool {
		if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED {
			s.view.deliver(r, true)
		}
		return true
	})
	if err != nil {
		s.log.Error("looking for open reservations", "error", err)
	}
}

// lookAt asks the parties about reservations, and records and gives those that all of them have delivered, by id. When a
// party does not answer it does not ask on, and it takes no longer than the time that it is given.
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

// askParties gives what the parties say of a reservation, up to the first that has not delivered it, or not heard of it.
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

// consumed records that a reservation is delivered if that is what all parties say, and gives it then.
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

// deliver notes that the tuples of an open reservation were delivered, or that a reservation whose tuples were has ended.
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
