package stock

import (
	"context"
	"errors"
	"testing"
	"time"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A client that waits without success receives out_of_stock only if all parties responded.
func TestWaitingInVain(t *testing.T) {
	s := testService(t, nil, nil)
	caller := rpc.Principal{Role: rpc.Client, Name: "mpc", Tenants: []string{"demo"}}
	for _, want := range []rpc.Code{rpc.OutOfStock, rpc.Unavailable, rpc.OutOfStock} {
		s.away.Store(nil)
		if want == rpc.Unavailable {
			err := errors.New("party 1: connection refused")
			s.away.Store(&err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
		q := &stockv1.ReserveRequest{Class: batch("b", "demo", 0, nil).GetClass(), Count: 1, Wait: true}
		_, err := s.Reserve(rpc.WithCaller(ctx, caller), q)
		cancel()
		if err == nil || rpc.FromError(err).Code != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
