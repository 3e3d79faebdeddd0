package keyring

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Every error of a vault has its code, and names the quorum.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		err  error
		code rpc.Code
		word string
	}{
		{vaulterr.ErrSpent, rpc.Burnt, "epoch 7"},
		{vaulterr.ErrApproval, rpc.ApprovalNeeded, "epoch 7"},
		{vaulterr.ErrOwn, rpc.Forbidden, "own"},
		{vaulterr.ErrWaiting, rpc.RateLimited, "approval"},
		{vaulterr.ErrReleased, rpc.Conflict, "has left"},
		{&ledger.QuorumError{Quorum: []uint32{0, 2}}, rpc.WrongQuorum, "[0 2]"},
		{vaulterr.ErrState, rpc.Conflict, "state"},
	} {
		e := rpc.FromError(vaulterr.RPC(fmt.Errorf("%w: of a test", c.err), "epoch 7"))
		if e.Code != c.code || !strings.Contains(e.What, c.word) {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
}
