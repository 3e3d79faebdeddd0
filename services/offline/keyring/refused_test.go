package keyring

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
)

// Every error of a vault has its code, and names the quorum.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		err  error
		code rpc.Code
		word string
	}{
		{vault.ErrSpent, rpc.Burnt, "epoch 7"},
		{vault.ErrApproval, rpc.ApprovalNeeded, "epoch 7"},
		{vault.ErrOwn, rpc.Forbidden, "own"},
		{vault.ErrWaiting, rpc.RateLimited, "approval"},
		{vault.ErrReleased, rpc.Conflict, "has left"},
		{&vault.QuorumError{Quorum: []uint32{0, 2}}, rpc.WrongQuorum, "[0 2]"},
		{vault.ErrState, rpc.Conflict, "state"},
	} {
		e := rpc.FromError(Refused(fmt.Errorf("%w: of a test", c.err), "epoch 7"))
		if e.Code != c.code || !strings.Contains(e.What, c.word) {
			t.Errorf("%v: %+v", c.err, e)
		}
	}
}
