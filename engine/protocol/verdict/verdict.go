// Package verdict is the last round of a session whose result its parties must release together.
// Each party states that it accepts, and releases the result only if all parties accept.
//
// A party accepts a digest of the result once its own checks have passed. The digest covers the
// transcript of the session, so it is the same at every honest party. The message is a broadcast,
// which its sender signs together with the transcript, so that all signatures together prove
// acceptance. A party whose check fails does not reach this round; its signed farewell reports the
// failure.
package verdict

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Name is the name of the message. The message contains the digest.
const Name = "verdict"

// Check fails if a party accepts another digest than this party computed. Equal transcripts give
// equal digests.
const Check = "verdict"

// Accept states that this party, whose own checks have passed, accepts, and returns the digest when
// all other parties accept too.
func Accept(s round.Session, digest round.Digest) round.Transition[round.Digest] {
	return round.Next(round.Local(func(context.Context) (round.Transition[round.Digest], error) {
		return round.Next(round.Round[round.Digest](verdicts{s, digest}), round.Broadcast(Name, digest[:])), nil
	}))
}

// verdicts is the round in which the other parties' verdicts arrive.
type verdicts struct {
	round.Session
	digest round.Digest
}

func (r verdicts) Wants() []round.Want {
	return r.Each(round.Want{Name: Name, MaxBytes: int64(len(r.digest)), Broadcast: true})
}

func (r verdicts) Step(_ context.Context, in round.Inbox) (round.Transition[round.Digest], error) {
	for p := range round.Party(r.Parties) {
		//lodge:check verdict/digest [swap=string(in.Bytes(p, Name)) ==
		//  string(r.digest[:])=>string(in.Bytes(p, Name)) != ""] a party releases outputs that
		//  another party has not accepted
		if p == r.Self || string(in.Bytes(p, Name)) == string(r.digest[:]) || r.Omits(Check) {
			continue
		}
		return round.Transition[round.Digest]{}, &round.Blame{Party: p, Check: Check, Reason: "accepts a result that differs from the one the broadcasts give"}
	}
	return round.Done(r.digest), nil
}
