package stock

import (
	"context"
	"errors"
	"fmt"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// settle ends reservations: every party withdraws them; those that none has delivered go back into stock, and the
// others are discarded everywhere. It says which went back. Until all parties have answered nothing goes back.
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

// ended records how reservations ended. What a party has not heard of it may still hear of, if the proposal is late on its
// way, until the lease ends; then it is settled once more.
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

// settleDue settles reservations whose leases have ended, until ctx is done.
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
				s.log.Error("compacting the records of reservations", "error", err)
			}
			compacted = time.Now()
		}
		for n := maxItems; n == maxItems && ctx.Err() == nil; {
			n = s.settleSome(ctx)
		}
		if _, err := s.records.forget(time.Now().Add(-rememberFor), maxItems); err != nil {
			s.log.Error("forgetting old reservations", "error", err)
		}
	}
}

// rememberFor is how long reservations are remembered after they were made, if they have ended: as long as parties do.
const rememberFor = maxLease

// settleSome settles some of those, and says how many.
func (s *Service) settleSome(ctx context.Context) int {
	ids, err := s.records.due(time.Now(), maxItems)
	if err != nil {
		s.log.Error("looking for leases that have ended", "error", err)
	}
	if len(ids) == 0 {
		return 0
	}
	if _, err := s.settle(ctx, ids); err != nil {
		s.log.Debug("reservations whose leases have ended are still held by a party", "error", err)
		return 0
	}
	s.Sync()
	return len(ids)
}
