package triple

import (
	"context"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

const nameMACKey = "triple/mackey"

// AgreeOnMACKey tells whether all parties hold the same MAC key: held is a digest that names the
// key and its ciphertext, or zero for none. When they do not, the parties make a new one, and those
// that hold another give it up.
func AgreeOnMACKey(s round.Session, held round.Digest) round.Transition[bool] {
	return round.Next(round.Round[bool](agreement{s, held}), round.Broadcast(nameMACKey, held[:]))
}

type agreement struct {
	round.Session
	held round.Digest
}

func (r agreement) Wants() []round.Want {
	return r.Each(round.Want{Name: nameMACKey, MaxBytes: int64(len(r.held)), Broadcast: true})
}

func (r agreement) Step(_ context.Context, in round.Inbox) (round.Transition[bool], error) {
	//lodge:check triple/agree-no-mac-key [swap=r.held != round.Digest{}=>true] [run=TestAgree]
	//  parties without a MAC key agree that they hold the same one
	same := r.held != round.Digest{}
	for p := range round.Party(r.Parties) {
		if p == r.Self {
			continue
		}
		b := in.Bytes(p, nameMACKey)
		//lodge:check triple/agree-length [swap=len(b) != len(r.held)=>len(b) > len(r.held)]
		//  [run=TestAgree|TestCheatsInAMAC|TestFaults] a truncated MAC key identifier is accepted
		if len(b) != len(r.held) {
			return round.Transition[bool]{}, &round.Blame{Party: p, Check: round.CheckShape, Reason: "wrong length"}
		}
		//lodge:check triple/agree-mac-key [run=TestAgree] parties use different MAC keys
		same = same && round.Digest(b) == r.held
	}
	return round.Done(same), nil
}
