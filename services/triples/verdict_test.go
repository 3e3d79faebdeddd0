package triples

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/exchange"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/runner"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

// What a party that has accepted does when another does not.
func TestABatchIsReleasedOnlyWithAllVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		say   func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error)
		check string
		burnt bool
	}{
		"rejects": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, &round.Abort{Check: maccheck.CheckMAC, Reason: "test"}
		}, maccheck.CheckMAC, true},
		"rejects products": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, &round.Abort{Check: maccheck.CheckSacrifice, Reason: "test"}
		}, maccheck.CheckSacrifice, true},
		"accepts another batch": {func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
			return round.Map(verdict.Accept(rs, round.Hash("another"), func(context.Context) error { return nil }),
				func(round.Digest) (triple.Result, error) { return result, nil }), nil
		}, verdict.Check, false},
		"ends for another reason": {func(round.Session, triple.Result) (round.Transition[triple.Result], error) {
			return round.Transition[triple.Result]{}, errors.New("no disk")
		}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			n := newLive(t)
			before := n.batches(0)
			spec, peer := n.spec(), n.services[1]
			// Its own check has passed, so party 0 has opened its sigma; it has its verdict when that is settled.
			say := func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
				for k, err := n.services[0].vault.MACKey(n.macKey); err != nil || len(k.Exposed) > 0; {
					k, err = n.services[0].vault.MACKey(n.macKey)
				}
				return test.say(rs, result)
			}
			_, err := peer.Sessions.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, deviating{run: &run{Service: peer, spec: spec}, end: say})
			must(t, err)
			n.start(0, spec)
			n.until("the end of the session", func() bool { return job.Final(n.status(0, spec).GetState()) })
			if st := n.status(0, spec); st.GetState() != jobv1.JobState_JOB_STATE_FAILED || st.GetFailure().GetCheck() != test.check {
				t.Errorf("%v", st)
			}
			if k := n.key(0); (k.State == vault.MACBurnt) != test.burnt {
				t.Errorf("%+v", k)
			}
			if n.batches(0) != before {
				t.Error("a batch is stored that not all accept")
			}
		})
	}
}

// A word of a peer burns a key when it is signed and this party has opened its part of a check.
func TestWhatBurnsAKey(t *testing.T) {
	word := func(outcome runner.Outcome, check string) []runner.Word {
		return []runner.Word{{Farewell: exchange.Farewell{Outcome: string(outcome), Check: check}}}
	}
	rejects := word(runner.Aborted, maccheck.CheckMAC)
	for name, test := range map[string]struct {
		exposed, settled, fresh bool
		failure                 runner.Failure
		want                    bool
	}{
		"nothing opened, the peer rejects":      {failure: runner.Failure{Outcome: runner.PeerAbort, Check: "mac", Words: rejects}},
		"nothing opened, timeout":               {failure: runner.Failure{Outcome: runner.Timeout}},
		"opened, timeout":                       {exposed: true, failure: runner.Failure{Outcome: runner.Timeout}, want: true},
		"opened, the own check fails":           {exposed: true, failure: runner.Failure{Outcome: runner.Aborted, Check: "mac"}, want: true},
		"passed, timeout":                       {exposed: true, settled: true, failure: runner.Failure{Outcome: runner.Timeout}},
		"passed, the peer rejects":              {exposed: true, settled: true, failure: runner.Failure{Outcome: runner.PeerAbort, Words: rejects}, want: true},
		"passed, the peer rejects without sign": {exposed: true, settled: true, failure: runner.Failure{Outcome: runner.PeerAbort, Check: "mac"}},
		"passed, the peer has an echo conflict": {exposed: true, settled: true, failure: runner.Failure{Outcome: runner.PeerAbort, Words: word(runner.Aborted, round.CheckEcho)}},
		"passed, the peer timed out":            {exposed: true, settled: true, failure: runner.Failure{Outcome: runner.PeerAbort, Words: word(runner.Timeout, "mac")}},
		"a key of this session":                 {exposed: true, fresh: true, failure: runner.Failure{Outcome: runner.Aborted, Check: "mac"}},
	} {
		v := testVault(t)
		must(t, addBatch(v, "b-0", "mac-1", true))
		must(t, v.ActivateBatch("b-0"))
		service := &Service{vault: v, claims: newClaims(v)}
		service.Sessions = session.NewRegistry(session.Config{})
		r := &run{Service: service, macID: "mac-1", exposed: test.exposed, settled: test.settled, fresh: test.fresh}
		r.burn(&test.failure)
		if k, err := v.MACKey("mac-1"); err != nil || (k.State == vault.MACBurnt) != test.want {
			t.Errorf("%s: %+v, %v", name, k, err)
		}
	}
}

// Activation takes the signatures of all parties over what is stored, and nothing else.
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
	for name, change := range map[string]func(b *vault.Batch, keys []ed25519.PublicKey){
		"another digest":     func(b *vault.Batch, _ []ed25519.PublicKey) { b.Digest[0]++ },
		"another session":    func(b *vault.Batch, _ []ed25519.PublicKey) { b.SessionID[0]++ },
		"another transcript": func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Transcript[0]++ },
		"another round":      func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Round++ },
		"another version":    func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Version++ },
		"another roster":     func(_ *vault.Batch, keys []ed25519.PublicKey) { keys[2] = keys[1] },
		"one is missing":     func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures = b.Verdict.Signatures[:2] },
		"one is empty":       func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures[0] = nil },
		"one twice":          func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict.Signatures[0] = b.Verdict.Signatures[1] },
		"none":               func(b *vault.Batch, _ []ed25519.PublicKey) { b.Verdict = vault.Verdict{} },
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
	if left, err := v.Batch("b"); err != nil || left.State != vault.BatchRevoked {
		t.Errorf("a batch that nobody can activate: %s, %v", left.State, err)
	}
}

// A result that not all accept is erased with its run; one that all accept is the caller's.
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
