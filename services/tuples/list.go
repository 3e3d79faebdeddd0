package tuples

import (
	"context"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/vault"
)

// page bounds the length of a page.
func page(limit uint32) (int, error) {
	const usual, most = 100, 1000
	switch {
	case limit == 0:
		return usual, nil
	case limit > most:
		return 0, rpc.Errorf(rpc.Invalid, "ask for at most 1000 and go on after the last", "limit %d", limit)
	}
	return int(limit), nil
}

// GetReservation implements the service.
func (s *Service) GetReservation(ctx context.Context, r *tuplesv1.GetReservationRequest) (*tuplesv1.GetReservationResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	x, err := s.find(p, r.GetId())
	if err != nil {
		return nil, err
	}
	return &tuplesv1.GetReservationResponse{Reservation: s.wire(&x)}, nil
}

// ListReservations implements the service. A client sees those of its tenants.
func (s *Service) ListReservations(ctx context.Context, r *tuplesv1.ListReservationsRequest) (*tuplesv1.ListReservationsResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	limit, err := page(r.GetLimit())
	if err != nil {
		return nil, err
	}
	if r.GetAfter() != "" && !config.ValidID(r.GetAfter()) {
		return nil, rpc.Errorf(rpc.Invalid, "pass what the last page gave as next", "after is not the id of a reservation")
	}
	out := &tuplesv1.ListReservationsResponse{}
	err = s.Vault.Reservations(r.GetAfter(), func(x *vault.Reservation) bool {
		if !sees(p, x.Class.Tenant) || !selected(r.GetStates(), reservationStates[x.State]) {
			return ctx.Err() == nil
		}
		if len(out.Reservations) == limit {
			out.Next = out.Reservations[limit-1].GetId()
			return false
		}
		out.Reservations = append(out.Reservations, s.wire(x))
		return true
	})
	if err == nil {
		err = ctx.Err()
	}
	return out, err
}

// ListBatches implements the service. A client sees the batches of its tenants.
func (s *Service) ListBatches(ctx context.Context, r *tuplesv1.ListBatchesRequest) (*tuplesv1.ListBatchesResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	limit, err := page(r.GetLimit())
	if err != nil {
		return nil, err
	}
	all, err := s.Vault.Batches()
	if err != nil {
		return nil, err
	}
	out := &tuplesv1.ListBatchesResponse{}
	for _, b := range all {
		if !sees(p, b.Tenant) || b.ID <= r.GetAfter() || r.GetEpoch() != 0 && b.Epoch != r.GetEpoch() ||
			!selected(r.GetStates(), batchStates[b.State]) {
			continue
		}
		if len(out.Batches) == limit {
			out.Next = out.Batches[limit-1].GetId()
			break
		}
		out.Batches = append(out.Batches, wireBatch(&b))
	}
	return out, nil
}

// ListMacKeys implements the service. A client sees the keys of its tenants.
func (s *Service) ListMacKeys(ctx context.Context, _ *tuplesv1.ListMacKeysRequest) (*tuplesv1.ListMacKeysResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.Vault.MACKeys()
	if err != nil {
		return nil, err
	}
	out := &tuplesv1.ListMacKeysResponse{}
	for _, k := range keys {
		if sees(p, k.Tenant) {
			out.Keys = append(out.Keys, wireMACKey(&k))
		}
	}
	return out, nil
}
