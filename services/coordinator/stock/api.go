package stock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// find returns a reservation of one of the caller's tenants.
func (s *Service) find(ctx context.Context, id string) (*tuplesv1.Reservation, error) {
	caller, _ := rpc.Caller(ctx)
	r, err := s.records.get(id)
	if err == nil && !caller.Serves(r.GetClass().GetTenant()) {
		err = errNoReservation
	}
	if errors.Is(err, errNoReservation) {
		return nil, rpc.Errorf(rpc.NotFound, "`lodge reservations list` lists the reservations", "no reservation %q", id)
	}
	return r, err
}

// GetReservation implements the service.
func (s *Service) GetReservation(ctx context.Context, q *stockv1.GetReservationRequest) (*stockv1.GetReservationResponse, error) {
	r, err := s.find(ctx, q.GetId())
	if err != nil {
		return nil, err
	}
	out := &stockv1.GetReservationResponse{Reservation: r, Parties: make([]*stockv1.PartyReservation, len(s.parties))}
	said := make([]*tuplesv1.Reservation, len(s.parties))
	var wg sync.WaitGroup
	for i, p := range s.parties {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			x, err := p.client().GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: q.GetId()})
			out.Parties[i] = &stockv1.PartyReservation{Party: uint32(i), Name: p.Name, State: x.GetReservation().GetState(),
				Reachable: err == nil || rpc.FromError(err).Code == rpc.NotFound}
			said[i] = x.GetReservation()
		})
	}
	wg.Wait()
	if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
		if now, err := s.consumed(r.GetId(), said); err == nil && now != nil {
			out.Reservation = now
		}
	}
	return out, nil
}

// maxListed is about the number of reservations per list for which the parties are asked; the state
// of the others may be some seconds old.
const (
	maxListed = 32
	listTime  = time.Second
)

// ListReservations implements the service.
func (s *Service) ListReservations(ctx context.Context, q *stockv1.ListReservationsRequest) (*stockv1.ListReservationsResponse, error) {
	caller, _ := rpc.Caller(ctx)
	limit := int(q.GetLimit())
	switch {
	case limit == 0:
		limit = 100
	case limit > 1000:
		return nil, rpc.Errorf(rpc.Invalid, "request at most 1000 reservations a page and continue with the next page", "limit %d", limit)
	}
	//lodge:check stock/before run=TestListBefore arbitrary text reaches a scan of the records
	if b := q.GetBefore(); b != "" && !validToken(b) {
		return nil, rpc.Errorf(rpc.Invalid, "pass `next` from the previous page, or no value for the first page", "before is not the end of a page")
	}
	out := &stockv1.ListReservationsResponse{}
	last := ""
	err := s.records.newest(q.GetBefore(), func(token string, r *tuplesv1.Reservation) bool {
		if !caller.Serves(r.GetClass().GetTenant()) || q.GetOpen() && !open(r) {
			return true
		}
		if len(out.Reservations) == limit {
			out.Next = last
			return false
		}
		out.Reservations, last = append(out.Reservations, r), token
		return true
	})
	if err != nil {
		return nil, err
	}
	var ask []*tuplesv1.Reservation
	for _, r := range out.Reservations {
		if r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RESERVED && len(ask) < maxListed {
			ask = append(ask, r)
		}
	}
	for id, r := range s.lookAt(ctx, ask, listTime) {
		i := slices.IndexFunc(out.Reservations, func(x *tuplesv1.Reservation) bool { return x.GetId() == id })
		out.Reservations[i] = r
	}
	return out, nil
}

// Release implements the service.
func (s *Service) Release(ctx context.Context, q *stockv1.ReleaseRequest) (*stockv1.ReleaseResponse, error) {
	caller, _ := rpc.Caller(ctx)
	r, err := s.find(ctx, q.GetId())
	if err != nil {
		return nil, err
	}
	if r.GetOwner() != caller.Name {
		return nil, rpc.Errorf(rpc.Forbidden, "its owner can release it, or wait for the end of its lease", "reservation %s belongs to client %s", r.GetId(), r.GetOwner())
	}
	if open(r) {
		if _, err := s.settle(ctx, []string{r.GetId()}); err != nil {
			if unreachable(err) {
				return nil, rpc.Errorf(rpc.Unavailable, "try again when all parties can be reached; otherwise it ends with its lease", "%v", err)
			}
			return nil, err
		}
		s.Sync()
		if r, err = s.records.get(q.GetId()); err != nil {
			return nil, err
		}
	}
	return &stockv1.ReleaseResponse{Reservation: r, Returned: r.GetState() == tuplesv1.ReservationState_RESERVATION_STATE_RELEASED}, nil
}
