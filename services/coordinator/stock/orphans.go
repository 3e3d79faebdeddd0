package stock

import (
	"context"
	"errors"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// A reservation is proposed to the parties and recorded concurrently, so a coordinator that crashes
// meanwhile may have no record of it. Its tuples would stay reserved at the parties, because a
// party cannot tell whether another has delivered it. After its start the coordinator therefore
// asks every party once for the reservations that it holds, and settles unknown reservations when
// their leases have ended.

// adopt settles these reservations. It returns when there are none left or ctx is done.
func (s *Service) adopt(ctx context.Context) {
	orphans := map[string]time.Time{} // end of the lease by id
	ask := s.parties
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		var away []*proposer
		for _, p := range ask {
			if err := s.unknownAt(ctx, p, orphans); err != nil {
				s.log.Debug("cannot list the reservations of a party", "party", p.Name, "error", err)
				away = append(away, p)
			}
		}
		ask = away
		s.settleOrphans(ctx, orphans)
		if len(ask) == 0 && len(orphans) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// unknownAt adds the reservations that a party holds and this coordinator does not know.
func (s *Service) unknownAt(ctx context.Context, p *proposer, orphans map[string]time.Time) error {
	return p.held(ctx, func(r *tuplesv1.Reservation) error {
		_, err := s.records.get(r.GetId())
		if errors.Is(err, errNoReservation) {
			orphans[r.GetId()], err = r.GetLease().AsTime(), nil
		}
		return err
	})
}

// settleOrphans settles the orphans whose leases have ended, and removes those that are known by
// now.
func (s *Service) settleOrphans(ctx context.Context, orphans map[string]time.Time) {
	var due []string
	for id, lease := range orphans {
		switch _, err := s.records.get(id); {
		case err == nil:
			delete(orphans, id)
		case lease.Before(time.Now()) && len(due) < maxItems:
			due = append(due, id)
		}
	}
	if len(due) == 0 {
		return
	}
	if _, err := s.settle(ctx, due); err != nil {
		s.log.Debug("a party still holds reservations without a record", "error", err)
		return
	}
	for _, id := range due {
		delete(orphans, id)
	}
	s.log.Info("settled reservations from before a crash", "count", len(due))
	s.Sync()
}

// held calls f with the party's reservations that are reserved or withdrawn and not yet ended.
func (p *proposer) held(ctx context.Context, f func(r *tuplesv1.Reservation) error) error {
	for after := ""; ; {
		call, cancel := context.WithTimeout(ctx, callTime)
		r, err := p.client().ListReservations(call, &tuplesv1.ListReservationsRequest{
			States: []tuplesv1.ReservationState{
				tuplesv1.ReservationState_RESERVATION_STATE_RESERVED, tuplesv1.ReservationState_RESERVATION_STATE_WITHDRAWN,
			},
			After: after, Limit: 1000,
		})
		cancel()
		if err != nil {
			return err
		}
		for _, x := range r.GetReservations() {
			if err := f(x); err != nil {
				return err
			}
		}
		if after = r.GetNext(); after == "" {
			return nil
		}
	}
}
