package accusations

import (
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

const checkSacrifice = maccheck.CheckSacrifice

// checks lists the checks that fail only if a party cheats, but do not always identify it: checks
// of MACs, of values that must be zero, of products, of verdicts, and of the agreement on
// broadcasts, ciphertexts and keys.
//
//lodge:check accusations/unnamed/zero [drop=maccheck.CheckZero] [run=TestWhatCounts] values that should be zero and are not do not count
//lodge:check accusations/unnamed/sacrifice [drop=checkSacrifice] [run=TestWhatCounts] failed sacrifices do not count
//lodge:check accusations/unnamed/verdict [drop=verdict.Check] [run=TestWhatCounts] differing verdicts do not count
//lodge:check accusations/unnamed/echo [drop=round.CheckEcho] [run=TestWhatCounts] differing broadcasts do not count
//lodge:check accusations/unnamed/evaluated [drop=triple.CheckEvaluated] [run=TestWhatCounts] differing ciphertexts do not count
//lodge:check accusations/unnamed/agree [drop=keygen.CheckAgree] [run=TestWhatCounts] differing keys do not count
var checks = []string{
	//lodge:check accusations/unnamed/mac [drop=maccheck.CheckMAC] [run=TestWhatCounts] failed MAC
	//  checks do not count
	maccheck.CheckMAC, maccheck.CheckZero, checkSacrifice, verdict.Check, round.CheckEcho, triple.CheckEvaluated, keygen.CheckAgree,
}

// unnamed reports whether a session failed in one of these checks without naming a party, at this
// party or according to a peer's signed statement, and in which check. Timeouts, lost connections
// and cancelled sessions prove no cheat.
func unnamed(f *runner.Failure) (check string, ok bool) {
	//lodge:check accusations/unnamed/outcome [swap=f.Outcome == runner.Aborted=>f.Outcome !=
	//  runner.PeerAbort] [run=TestWhatCounts] outcomes that are not cheats count
	if f.Outcome == runner.Aborted {
		//lodge:check accusations/unnamed/check [swap=slices.Contains(checks,
		//  f.Check)=>!slices.Contains(checks, "")] [run=TestWhatCounts] failures that are not
		//  cheats count
		return f.Check, slices.Contains(checks, f.Check)
	}
	if f.Outcome != runner.PeerAbort {
		return "", false
	}
	for _, w := range f.Words {
		switch {
		//lodge:check accusations/unnamed/worst [run=TestWhatCounts] of several reports the mildest
		//  counts
		case w.Rejects(checkSacrifice): // of several checks, the one with the most consequences
			return checkSacrifice, true
		//lodge:check accusations/unnamed/word [drop=w.Rejects(checks...)] [run=TestWhatCounts] a
		//  peer's report counts for any check
		case check == "" && w.Rejects(checks...):
			check = w.Check
		}
	}
	return check, check != ""
}
