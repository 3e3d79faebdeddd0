package triples

import (
	"crypto/ed25519"
	"fmt"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// accept says to the others that this party's checks have passed, and gives the result when all
// have said so.
func (r *run) accept(rs round.Session, result triple.Result) round.Transition[triple.Result] {
	r.passed = true
	held := &unreleased{&result}
	//lodge:check triples/unreleased [run=TestAnUnreleased] a result that not all parties accept is
	//  not erased
	rs.Secrets.Own(held)
	return round.Map(verdict.Accept(rs, result.Digest), func(round.Digest) (triple.Result, error) {
		held.result = nil
		return result, nil
	})
}

// unreleased is a result that is erased with its run unless all parties accept it.
type unreleased struct{ result *triple.Result }

func (u *unreleased) Wipe() {
	if u.result != nil {
		u.result.Wipe()
	}
}

// verdictOf collects the parties' signed verdicts for the record of the batch.
func verdictOf(signed []runner.Broadcast, parties int) (stock.Verdict, error) {
	v := stock.Verdict{Signatures: make([][]byte, parties)}
	for _, b := range signed {
		e := b.Envelope
		v.Version, v.Round, v.Transcript = e.Version, e.Round, e.Transcript
		v.Signatures[e.From] = b.Signature
	}
	//lodge:check triples/verdict/number [swap=len(signed) != parties=>len(signed) > parties]
	//  [run=TestABatch|TestActivation] a batch is stored without the verdicts of all parties
	if len(signed) != parties {
		return v, fmt.Errorf("triples: %d verdicts of %d parties", len(signed), parties)
	}
	return v, nil
}

// accepted checks that every party of the roster has signed that it accepts a batch.
func accepted(b *stock.Batch, keys []ed25519.PublicKey) error {
	//lodge:check triples/verdict/batch [swap=b.Digest[:]=>nil] [run=TestActivation] a verdict of
	//  another batch counts
	digest, err := round.DigestOf(verdict.Name, round.Bytes(b.Digest[:]))
	if err != nil {
		return err
	}
	for p, key := range keys {
		//lodge:check triples/verdict/session [drop=Session: b.SessionID] [run=TestActivation] a
		//  verdict of another session counts
		e := exchange.Envelope{
			Protocol: protocol, Version: b.Verdict.Version, Session: b.SessionID, Round: b.Verdict.Round, Name: verdict.Name,
			From: round.Party(p), To: round.All, Transcript: b.Verdict.Transcript, Digest: digest,
		}
		//lodge:check triples/verdict/signed [drop=!e.Verify(key, b.Verdict.Signatures[p])]
		//  [run=TestActivation] a batch is released without the signatures of all parties
		if p >= len(b.Verdict.Signatures) || !e.Verify(key, b.Verdict.Signatures[p]) {
			return rpc.Errorf(rpc.Burnt, "make another", "batch %s is revoked: party %d of this roster has not signed that it accepts it", b.ID, p)
		}
	}
	return nil
}
