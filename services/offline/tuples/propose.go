package tuples

import (
	"context"
	"errors"
	"sync"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// maxItems bounds the items in one call of the coordinator or of a peer.
const maxItems = 256

// each calls do for n reservations concurrently, so that the store commits them together, and
// returns the outcomes in order. name returns the id of a reservation.
func each(n int, do func(i int) (stock.Reservation, error), name func(i int) string) ([]*tuplesv1.Outcome, error) {
	//lodge:check tuples/propose/number [run=TestLimits] the coordinator proposes any number of
	//  reservations
	if n > maxItems {
		return nil, rpc.Errorf(rpc.TooLarge, "split them", "%d reservations in one call, of at most %d", n, maxItems)
	}
	out := make([]*tuplesv1.Outcome, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			o := &tuplesv1.Outcome{Id: name(i)}
			out[i] = o
			r, err := do(i)
			if err != nil {
				e := rpc.FromError(vaulterr.RPC(err, "reservation "+name(i)))
				o.Code, o.What = string(e.Code), e.What
			}
			if r.State != "" && o.Code != string(rpc.Internal) { // which leaves it in doubt
				o.State, o.Digest = reservationStates[r.State], r.Digest[:]
			}
		})
	}
	wg.Wait()
	return out, nil
}

// Propose implements the service.
func (s *Service) Propose(_ context.Context, r *tuplesv1.ProposeRequest) (*tuplesv1.ProposeResponse, error) {
	list := r.GetReservations()
	out, err := each(len(list), func(i int) (stock.Reservation, error) {
		//lodge:check tuples/propose/names [run=TestPropose|TestLimits|TestConfirm|TestReserv] a
		//  reservation with invalid names or times is proposed
		if err := checkNames(list[i]); err != nil {
			return stock.Reservation{}, err
		}
		x, err := s.Vault.Reserve(reservationOf(list[i]))
		if err != nil && !errors.Is(err, vaulterr.ErrExists) {
			return stock.Reservation{}, err // nothing is recorded
		}
		return x, err
	}, func(i int) string { return list[i].GetId() })
	return &tuplesv1.ProposeResponse{Outcomes: out}, err
}

// checkNames returns an error if the id, a name or the lease of a reservation is malformed.
func checkNames(r *tuplesv1.Reservation) error {
	if !config.ValidID(r.GetId()) {
		return rpc.Errorf(rpc.Invalid, "use 1 to 64 of a-z, 0-9 and '-'", "the id is not one of a reservation")
	}
	if r.GetLease().CheckValid() != nil {
		return rpc.Errorf(rpc.Invalid, "", "the lease is not a time")
	}
	if len(r.GetClients()) > config.MaxParties {
		return rpc.Errorf(rpc.Invalid, "name none, one, or one for each party", "%d clients", len(r.GetClients()))
	}
	for _, c := range append([]string{r.GetOwner()}, r.GetClients()...) {
		if !config.ValidName(c) {
			return rpc.Errorf(rpc.Invalid, "", "%q is not the name of a client", c)
		}
	}
	return nil
}

// Withdraw implements the service.
func (s *Service) Withdraw(_ context.Context, r *tuplesv1.WithdrawRequest) (*tuplesv1.WithdrawResponse, error) {
	list := r.GetIds()
	out, err := each(len(list), func(i int) (stock.Reservation, error) { return s.Vault.Withdraw(list[i]) },
		func(i int) string { return list[i] })
	return &tuplesv1.WithdrawResponse{Outcomes: out}, err
}

// Release implements the service.
func (s *Service) Release(_ context.Context, r *tuplesv1.ReleaseRequest) (*tuplesv1.ReleaseResponse, error) {
	list := r.GetIds()
	out, err := each(len(list), func(i int) (stock.Reservation, error) { return s.Vault.Release(list[i], r.GetDiscard()) },
		func(i int) string { return list[i] })
	return &tuplesv1.ReleaseResponse{Outcomes: out}, err
}
