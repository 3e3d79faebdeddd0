package triples

import (
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"log/slog"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// A party that has accepted reacts to a party that does not accept.
func TestABatchIsReleasedOnlyWithAllVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		say    func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error)
		check  string
		failed int // checks of the MAC key under proved keys; under others every such end burns it
	}{
		"rejects": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, &round.Abort{Check: maccheck.CheckMAC, Reason: "test"}
		}, maccheck.CheckMAC, 1},
		"rejects products": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, &round.Abort{Check: maccheck.CheckSacrifice, Reason: "test"}
		}, maccheck.CheckSacrifice, 1},
		"accepts another batch": {func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
			return round.Map(verdict.Accept(rs, round.Hash("another")),
				func(round.Digest) (triple.Result, error) { return result, nil }), nil
		}, verdict.Check, 0},
		"ends for another reason": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, errors.New("no disk")
		}, "", 0},
	} {
		for _, security := range []string{params.Proved, params.Passive} {
			t.Run(name+", "+security, func(t *testing.T) {
				n := newLive(t, security)
				before := n.batches(0)
				spec, peer := n.spec(), n.services[1]
				// Party 0 has passed its own check when it waits for the verdict of its peer.
				say := func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
					n.until("the verdict of party 0", func() bool { return n.status(0, spec).GetProgress().GetRound() == verdict.Name })
					return test.say(rs, result)
				}
				_, err := peer.Sessions.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, deviating{run: &run{Service: peer, spec: spec}, end: say})
				must(t, err)
				n.start(0, spec)
				n.until("the end of the session", func() bool { return job.Final(n.status(0, spec).GetState()) })
				if st := n.status(0, spec); st.GetState() != jobv1.JobState_JOB_STATE_FAILED || st.GetFailure().GetCheck() != test.check {
					t.Errorf("%v", st)
				}
				k := n.key(0)
				if security == params.Proved && (k.State != vaultkeys.MACActive || k.Failed != test.failed || len(k.Checks) > 0) {
					t.Errorf("%+v, want %d failed checks", k, test.failed)
				}
				if security == params.Passive && k.State != vaultkeys.MACBurnt {
					t.Errorf("%+v", k)
				}
				if n.batches(0) != before {
					t.Error("a batch is stored that not all accept")
				}
			})
		}
	}
}

// How a session's end counts for its MAC key, once this party has opened its combinations.
func TestHowAnEndCounts(t *testing.T) {
	word := func(outcome runner.Outcome, check string) []runner.Word {
		return []runner.Word{{Farewell: exchange.Farewell{Outcome: string(outcome), Check: check}}}
	}
	rejects := word(runner.Aborted, maccheck.CheckMAC)
	for name, test := range map[string]struct {
		passed           bool
		failure          *runner.Failure
		proved, unproved vaultkeys.CheckResult
	}{
		"a batch":                       {true, nil, vaultkeys.CheckPassed, vaultkeys.CheckPassed},
		"timeout":                       {false, &runner.Failure{Outcome: runner.Timeout}, vaultkeys.CheckUnfinished, vaultkeys.CheckUnfinished},
		"the peer is blamed":            {false, &runner.Failure{Outcome: runner.Blamed, Check: "commitment"}, vaultkeys.CheckUnfinished, vaultkeys.CheckUnfinished},
		"the own check fails":           {false, &runner.Failure{Outcome: runner.Aborted, Check: "mac"}, vaultkeys.CheckFailed, vaultkeys.CheckFailed},
		"the peer rejects":              {false, &runner.Failure{Outcome: runner.PeerAbort, Words: rejects}, vaultkeys.CheckFailed, vaultkeys.CheckFailed},
		"passed, timeout":               {true, &runner.Failure{Outcome: runner.Timeout}, vaultkeys.CheckPassed, vaultkeys.CheckUnfinished},
		"passed, the peer rejects":      {true, &runner.Failure{Outcome: runner.PeerAbort, Words: rejects}, vaultkeys.CheckFailed, vaultkeys.CheckFailed},
		"passed, an unsigned rejection": {true, &runner.Failure{Outcome: runner.PeerAbort, Check: "mac"}, vaultkeys.CheckPassed, vaultkeys.CheckUnfinished},
		"passed, an echo conflict":      {true, &runner.Failure{Outcome: runner.PeerAbort, Words: word(runner.Aborted, round.CheckEcho)}, vaultkeys.CheckPassed, vaultkeys.CheckUnfinished},
	} {
		var err error
		if test.failure != nil {
			err = test.failure
		}
		for proved, want := range map[bool]vaultkeys.CheckResult{true: test.proved, false: test.unproved} {
			if got := (&run{passed: test.passed, proved: proved}).result(err); got != want {
				t.Errorf("%s, proved %v: %d, want %d", name, proved, got, want)
			}
		}
	}
}

// A session that has opened nothing, or whose MAC key was erased with it, leaves no record.
func TestAnEndBeforeTheOpeningCountsNothing(t *testing.T) {
	v := testVault(t)
	must(t, addBatch(v, "b-0", "mac-1", true))
	must(t, v.ActivateBatch("b-0"))
	service := &Service{vault: v, claims: newClaims(v)}
	service.Sessions = session.NewRegistry(session.Config{Log: slog.New(slog.DiscardHandler)})
	failure := &runner.Failure{Outcome: runner.PeerAbort, Words: []runner.Word{{Farewell: exchange.Farewell{Outcome: string(runner.Aborted), Check: maccheck.CheckMAC}}}}
	for _, r := range []*run{{}, {opened: true, fresh: true}} {
		r.Service, r.spec, r.macID = service, &jobv1.SessionSpec{}, "mac-1"
		must(t, r.endCheck(failure))
		if k, err := v.MACKey("mac-1"); err != nil || k.State != vaultkeys.MACActive || k.Failed != 0 {
			t.Errorf("%+v, %v", k, err)
		}
	}
	r := &run{Service: service, spec: &jobv1.SessionSpec{}, macID: "mac-1"}
	must(t, r.beginCheck())
	must(t, r.endCheck(failure))
	if k, err := v.MACKey("mac-1"); err != nil || k.State != vaultkeys.MACBurnt { // the keys of this epoch are not proved
		t.Errorf("%+v, %v", k, err)
	}
	if err := r.beginCheck(); !goneRefusal(err) {
		t.Errorf("a check under a burnt key: %v", err)
	}
	if err := r.unlessGone(addBatch(v, "b-2", "mac-1", false)); !goneRefusal(err) {
		t.Errorf("a batch under a burnt key: %v", err)
	}
}

func goneRefusal(err error) bool {
	var f *runner.Failure
	return errors.As(err, &f) && f.Outcome == session.Refused && f.Check == string(rpc.Burnt)
}

// Activation requires the signatures of all parties over the stored batch.
func TestActivationTakesAllSignatures(t *testing.T) {
	var keys []ed25519.PublicKey
	var signers []ed25519.PrivateKey
	for range 3 {
		pub, priv, err := ed25519.GenerateKey(rand.Reader)
		must(t, err)
		keys, signers = append(keys, pub), append(signers, priv)
	}
	v := testVault(t)
	must(t, addBatch(v, "b", "mac-1", true))
	b, err := v.Batch("b")
	must(t, err)
	b.Digest, b.SessionID = [32]byte{1}, [32]byte{2}
	digest, err := round.DigestOf(verdict.Name, round.Bytes(b.Digest[:]))
	must(t, err)
	var signed []runner.Broadcast
	for p, key := range signers {
		e := exchange.Envelope{
			Protocol: protocol, Version: 7, Session: b.SessionID, Round: 9, Name: verdict.Name, From: round.Party(p), To: round.All,
			Transcript: round.Hash("transcript"), Digest: digest,
		}
		signed = append(signed, runner.Broadcast{Envelope: e, Signature: e.Sign(key)})
	}
	if b.Verdict, err = verdictOf(signed, 3); err != nil {
		t.Fatal(err)
	}
	if err := accepted(&b, keys); err != nil {
		t.Fatal(err)
	}
	if _, err := verdictOf(signed[:2], 3); err == nil {
		t.Error("two of three verdicts are enough")
	}
	must(t, Locked(v, b, session.NewRegistry(session.Config{Keys: keys})).Activate())
	for name, change := range map[string]func(b *stock.Batch, keys []ed25519.PublicKey){
		"another digest":     func(b *stock.Batch, _ []ed25519.PublicKey) { b.Digest[0]++ },
		"another session":    func(b *stock.Batch, _ []ed25519.PublicKey) { b.SessionID[0]++ },
		"another transcript": func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Transcript[0]++ },
		"another round":      func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Round++ },
		"another version":    func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Version++ },
		"another roster":     func(_ *stock.Batch, keys []ed25519.PublicKey) { keys[2] = keys[1] },
		"one is missing":     func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures = b.Verdict.Signatures[:2] },
		"one is empty":       func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures[0] = nil },
		"one twice":          func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures[0] = b.Verdict.Signatures[1] },
		"none":               func(b *stock.Batch, _ []ed25519.PublicKey) { b.Verdict = stock.Verdict{} },
	} {
		other, others := b, append([]ed25519.PublicKey{}, keys...)
		other.Verdict.Signatures = append([][]byte{}, b.Verdict.Signatures...)
		change(&other, others)
		if err := rpc.FromError(accepted(&other, others)); err == nil || err.Code != rpc.Burnt {
			t.Errorf("%s: %v", name, err)
		}
		s := Locked(v, other, session.NewRegistry(session.Config{Keys: others}))
		if err := rpc.FromError(s.Activate()); err == nil || err.Code != rpc.Burnt {
			t.Errorf("%s: activated: %v", name, err)
		}
	}
	if left, err := v.Batch("b"); err != nil || left.State != stock.BatchRevoked {
		t.Errorf("a batch that nobody can activate: %s, %v", left.State, err)
	}
}

// A result that not all accept is erased with its run; a batch that all parties accept belongs to
// the caller.
func TestAnUnreleasedResultIsErased(t *testing.T) {
	set, err := params.Lookup(liveSet)
	must(t, err)
	spec, err := set.Field(liveField)
	must(t, err)
	f, err := field.New(spec.B, spec.M)
	must(t, err)
	for _, accepts := range []bool{true, false} {
		result, secrets := triple.Result{Count: 1, A: f.NewVec(1)}, new(round.Secrets)
		result.A.W[0] = 7
		o := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[triple.Result], error) {
			if rs.Self == 0 {
				rs.Secrets = secrets
				return (&run{}).accept(rs, result), nil
			}
			if accepts {
				return (&run{}).accept(rs, triple.Result{}), nil
			}
			return round.Transition[triple.Result]{}, errors.New("it does not accept")
		})
		secrets.Wipe()
		if (o.Errors[0] == nil) != accepts || (result.A.W[0] == 7) != accepts {
			t.Errorf("all accept: %v; error %v, result %d", accepts, o.Errors[0], result.A.W[0])
		}
	}
}
