package accusations

import (
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/services/runner"
)

const checkSacrifice = maccheck.CheckSacrifice

// checks fail only when somebody cheats, and do not always tell who: of MACs, of what must be zero, of products, of
// verdicts, and that all parties have the same broadcasts, ciphertexts and keys.
var checks = []string{
	maccheck.CheckMAC, maccheck.CheckZero, checkSacrifice, verdict.Check, round.CheckEcho, triple.CheckEvaluated, keygen.CheckAgree,
}

// unnamed reports whether a session failed in one of these checks with nobody named, here or by the signed word of a peer,
// and which. Time that is over, lost connections and cancelled sessions prove no cheat.
func unnamed(f *runner.Failure) (check string, ok bool) {
	if f.Outcome == runner.Aborted {
		return f.Check, slices.Contains(checks, f.Check)
	}
	if f.Outcome != runner.PeerAbort {
		return "", false
	}
	for _, w := range f.Words {
		switch {
		case w.Rejects(checkSacrifice): // of several, the one with most consequences
			return checkSacrifice, true
		case check == "" && w.Rejects(checks...):
			check = w.Check
		}
	}
	return check, check != ""
}
