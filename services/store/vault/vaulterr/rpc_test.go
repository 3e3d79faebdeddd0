package vaulterr

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Every error of the vault that can reach a caller has a code, also when it is wrapped. Errors that
// wrap another one keep their own code.
func TestRPC(t *testing.T) {
	for _, c := range []struct {
		err  error
		code rpc.Code
	}{
		{ErrNotFound, rpc.NotFound}, {ErrExists, rpc.Conflict}, {ErrState, rpc.Conflict}, {ErrErased, rpc.Burnt},
		{ErrGone, rpc.Erased}, {ErrDelivered, rpc.Delivered}, {ErrSpent, rpc.Burnt}, {ErrRange, rpc.Invalid},
		{ErrTaken, rpc.Taken}, {ErrExpired, rpc.Expired}, {ErrWithdrawn, rpc.Conflict}, {ErrQuarantine, rpc.Quarantined},
		{ErrRoster, rpc.PinMismatch}, {ErrMasks, rpc.Invalid}, {ErrQuorum, rpc.WrongQuorum}, {ErrReleased, rpc.Conflict},
		{ErrApproval, rpc.ApprovalNeeded}, {ErrOwn, rpc.Forbidden}, {ErrWaiting, rpc.RateLimited}, {ErrCheckUnended, rpc.Conflict},
	} {
		for _, err := range []error{c.err, fmt.Errorf("%w: of batch 1", c.err)} {
			got := RPC(err, "batch 1")
			var typed *rpc.Error
			if !errors.As(got, &typed) || typed.Code != c.code {
				t.Errorf("%v became %v, not %s", err, got, c.code)
			}
		}
	}
	if got := RPC(io.EOF, "batch 1"); !errors.Is(got, io.EOF) {
		t.Errorf("another error became %v", got)
	}
	if RPC(nil, "batch 1") != nil {
		t.Error("no error became one")
	}
}
