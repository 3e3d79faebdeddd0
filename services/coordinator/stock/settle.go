package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// settle ends reservations: every party withdraws them. Reservations that no party has delivered
// return to the stock; the others are discarded at all parties. It returns which reservations
// returned. No reservation returns before all parties have responded.
func (s *Service) settle(ctx context.Context, ids []string) (returned map[string]bool, err error) {
	drawn, unheard := map[string]bool{}, map[string]bool{}
	for _, p := range s.parties {
		outcomes, err := p.withdraw(ctx, ids)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		for i, o := range outcomes {
			switch {
			case o.GetCode() == string(rpc.NotFound):
				unheard[ids[i]] = true
			case o.GetCode() != "":
				return nil, rpc.Errorf(rpc.Code(o.GetCode()), "", "%s: %s", p, o.GetWhat())
			case o.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED, o.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_ERASED:
				drawn[ids[i]] = true
			}
		}
	}
	returned = map[string]bool{}
	for _, discard := range []bool{false, true} {
		var list []string
		for _, id := range ids {
			if drawn[id] == discard {
				list = append(list, id)
				returned[id] = !discard
			}
		}
		if len(list) == 0 {
			continue
		}
		for _, p := range s.parties {
			if err := p.release(ctx, list, discard); err != nil {
				return nil, fmt.Errorf("%s: %w", p, err)
			}
		}
	}
	return returned, s.ended(ids, returned, unheard)
}

// ended records how reservations ended. If a party does not know a reservation, a delayed proposal
// may still reach it until the lease ends; the reservation is then settled again at the end of the
// lease.
func (s *Service) ended(ids []string, returned, unheard map[string]bool) error {
	s.limits.drop(ids...)
	for _, id := range ids {
		r, err := s.records.get(id)
		if errors.Is(err, errNoReservation) {
			continue
		}
		if err != nil {
			return err
		}
		r.State = tuplesv1.ReservationState_RESERVATION_STATE_ERASED
		if returned[id] {
			r.State = tuplesv1.ReservationState_RESERVATION_STATE_RELEASED
		}
		again := unheard[id] && r.GetLease().AsTime().After(time.Now())
		delivered, err := s.records.end(r, again)
		if err != nil {
			return err
		}
		if delivered {
			s.view.deliver(r, false)
		}
	}
	return nil
}

// settleDue settles reservations after the end of their leases, until ctx is done.
func (s *Service) settleDue(ctx context.Context) {
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for compacted := time.Now(); ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if time.Since(compacted) >= compactEvery {
			if _, err := s.records.compact(time.Now(), keepReleased); err != nil {
				s.log.Error("cannot compact the records of reservations", "error", err)
			}
			compacted = time.Now()
		}
		for n := maxItems; n == maxItems && ctx.Err() == nil; {
			n = s.settleSome(ctx)
		}
		if _, err := s.records.forget(time.Now().Add(-rememberFor), maxItems); err != nil {
			s.log.Error("cannot delete old reservations", "error", err)
		}
	}
}

// rememberFor is how long records of ended reservations are kept, counted from their creation. The
// parties keep them equally long.
const rememberFor = maxLease

// settleSome settles some reservations with ended leases, and returns their number.
func (s *Service) settleSome(ctx context.Context) int {
	ids, err := s.records.due(time.Now(), maxItems)
	if err != nil {
		s.log.Error("cannot read reservations with ended leases", "error", err)
	}
	if len(ids) == 0 {
		return 0
	}
	if _, err := s.settle(ctx, ids); err != nil {
		s.log.Debug("a party still holds reservations with ended leases", "error", err)
		return 0
	}
	s.Sync()
	return len(ids)
}
