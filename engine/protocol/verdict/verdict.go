// Package verdict is the last round of a session whose result its parties must release together: each says that it
// accepts, and a party releases only what all have accepted.
//
// A party accepts a digest of the result, which is made of the transcript of the session and so the same at every honest
// party, once its own checks have passed. The message is a broadcast, which its sender signs together with the
// transcript: whoever has all signatures can show that all accepted. A party whose check fails has no such round; its
// signed farewell says so.
package verdict

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Name of the message, whose content is the digest.
const Name = "verdict"

// Check fails where a party accepts another digest than this one computed: with one transcript there is only one.
const Check = "verdict"

// Accept waits until ready has returned, says that this party accepts, and gives its result when all others do. The hook
// Name gets the digest (*round.Digest) before it is sent.
func Accept(s round.Session, digest round.Digest, ready func(ctx context.Context) error) round.Transition[round.Digest] {
	return round.Next(round.Local(func(ctx context.Context) (round.Transition[round.Digest], error) {
		if err := ready(ctx); err != nil {
			return round.Transition[round.Digest]{}, err
		}
		said := digest
		byzantine.Apply(s.Hooks, Name, &said)
		return round.Next(round.Round[round.Digest](verdicts{s, digest}), round.Broadcast(Name, said[:])), nil
	}))
}

// verdicts waits for those of the others.
type verdicts struct {
	round.Session
	digest round.Digest
}

func (r verdicts) Wants() []round.Want {
	return r.Each(round.Want{Name: Name, MaxBytes: int64(len(r.digest)), Broadcast: true})
}

func (r verdicts) Step(_ context.Context, in round.Inbox) (round.Transition[round.Digest], error) {
	for p := range round.Party(r.Parties) {
		if p == r.Self || string(in.Bytes(p, Name)) == string(r.digest[:]) || r.Hooks.Skips(Check) {
			continue
		}
		return round.Transition[round.Digest]{}, &round.Blame{Party: p, Check: Check, Reason: "accepts another result than all broadcasts give"}
	}
	return round.Done(r.digest), nil
}
