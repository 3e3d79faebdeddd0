package triples

import (
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/runner"
)

// A peer that says in the first round that its MAC check failed must not cost the others a key.
func TestOnlyTheOwnCheckFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{&runner.Failure{Outcome: runner.Aborted, Check: maccheck.CheckMAC}, true},
		{&runner.Failure{Outcome: runner.Aborted, Check: maccheck.CheckZero}, true},
		{&runner.Failure{Outcome: runner.Aborted, Check: round.CheckEcho}, false},
		{&runner.Failure{Outcome: runner.PeerAbort, Check: maccheck.CheckMAC}, false},
		{&runner.Failure{Outcome: runner.Blamed, Check: maccheck.CheckMAC}, false},
		{errors.New("else"), false},
	} {
		if got := failedHere(c.err); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}
