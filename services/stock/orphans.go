package stock

import (
	"context"
	"errors"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// A reservation is put to the parties and recorded at the same time, so a coordinator that dies meanwhile may not know it
// when it is back. Its tuples would wait at the parties, which cannot tell whether one of them has delivered it. So the
// parties are asked, once after the start, what they hold; what is unknown here when its lease has ended is settled.

// adopt settles those reservations, and returns when there are none or ctx is done.
func (s *Service) adopt(ctx context.Context) {
	orphans := map[string]time.Time{} // by id, with the end of the lease
	ask := s.parties
	tick := time.NewTicker(dueEvery)
	defer tick.Stop()
	for {
		var away []*proposer
		for _, p := range ask {
			if err := s.unknownAt(ctx, p, orphans); err != nil {
				s.log.Debug("what a party holds is unknown", "party", p.Name, "error", err)
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

// unknownAt notes what a party holds and this coordinator does not know.
func (s *Service) unknownAt(ctx context.Context, p *proposer, orphans map[string]time.Time) error {
	return p.held(ctx, func(r *tuplesv1.Reservation) error {
		_, err := s.records.get(r.GetId())
		if errors.Is(err, errNoReservation) {
			orphans[r.GetId()], err = r.GetLease().AsTime(), nil
		}
		return err
	})
}

// settleOrphans settles those whose leases have ended and forgets those that are known by now.
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
		s.log.Debug("reservations that nobody knows are still held by a party", "error", err)
		return
	}
	for _, id := range due {
		delete(orphans, id)
	}
	s.log.Info("reservations of before a crash are settled", "count", len(due))
	s.Sync()
}

// held calls f with the reservations that wait at the party: for their clients, or for what becomes of them.
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
