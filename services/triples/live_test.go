package triples

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/metrics"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/runner"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

const (
	liveSet   = "insecure-8"
	liveField = "p128"
)

// live is two parties that make triples over real connections, with an active epoch 1 and an active MAC key with a batch
// under it, of which a reservation has the tuples. The test is their coordinator.
type live struct {
	t        *testing.T
	set      *params.Set
	services []*Service
	jobs     uint32
	macKey   string
}

func newLive(t *testing.T) *live {
	t.Helper()
	set, err := params.Lookup(liveSet)
	must(t, err)
	spec, err := set.Field(liveField)
	must(t, err)
	scheme, err := gbfv.New(set, spec)
	must(t, err)
	keys := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[keygen.Result], error) {
		seed := round.Hash("live keys", round.Uint(uint64(rs.Self)))
		return keygen.Start(keygen.Config{Session: rs, Scheme: scheme, Dim: 1, Security: keygen.Passive, Source: sample.NewSource(seed[:]), Workers: 1})
	}).OK(t).Results

	n := &live{t: t, set: set}
	hash := set.Hash()
	policy := config.Policy{
		Params: []config.ParamsPin{{Name: liveSet, Hash: hex.EncodeToString(hash[:])}}, Kinds: []string{"scalar"}, Fields: []string{liveField},
		Purposes: []string{"triples"}, Tenants: []string{"dev"}, MaxCount: 100, JobsPerHour: 100, MaxConcurrent: 2, MaxMemory: 1 << 30,
	}
	net := testnet.New(t, 2, testnet.Options{})
	for i, p := range net.Parties {
		v := emptyVault(t)
		e := vault.Epoch{
			ID: 1, Params: liveSet, ParamsHash: hash, Purpose: "triples", Digest: keys[i].Keys.Digest(scheme, 1), Dim: 1, Limit: params.MaxDecryptions,
		}
		w, err := keyring.Store(v, e, scheme, keys[i])
		must(t, err)
		must(t, w.Commit())
		must(t, v.ActivateEpoch(1))
		sessions := session.NewRegistry(session.Config{
			Gate:     job.NewGate(job.Terms{Policy: policy, RosterHash: [32]byte{1}, AllowInsecureParams: true}),
			Exchange: p.Exchange, Self: round.Party(i), Names: net.Names, Signer: p.Signer, Keys: net.Keys, Roster: [32]byte{1},
			Limits:  runner.Limits{Idle: time.Minute, Compute: time.Minute, MinRate: 1},
			Metrics: metrics.New("test", metrics.Both), Log: slog.New(slog.DiscardHandler),
		})
		t.Cleanup(sessions.Close)
		n.services = append(n.services, New(sessions, keyring.New(v, 1, true), v, 2, nil))
	}

	first := n.spec()
	n.start(0, first)
	n.start(1, first)
	for i, s := range n.services {
		st := n.ends(i, first)
		_, err := s.Activate(t.Context(), &jobv1.ActivateRequest{Ref: first.GetRef(), Digest: st.GetDigest()})
		must(t, err)
		b, err := s.vault.Batch(st.GetBatchId())
		must(t, err)
		n.macKey = b.MACKey
		_, err = s.vault.Reserve(vault.Reservation{
			ID: "r", Class: vault.Class{Tenant: b.Tenant, Kind: b.Kind, Params: b.Params, Field: b.Field}, Epoch: 1, MACKey: b.MACKey, Owner: "client",
			Ranges: []vault.Range{{Batch: b.ID, Span: vault.Span{Count: b.Count}}}, Lease: time.Now().Add(time.Hour),
		})
		must(t, err)
	}
	return n
}

// spec is of a new job.
func (n *live) spec() *jobv1.SessionSpec {
	n.jobs++
	hash := n.set.Hash()
	return &jobv1.SessionSpec{
		Ref: job.Ref{JobID: "live", Ordinal: n.jobs}.Proto(), ProtocolVersion: job.ProtocolVersion, Protocol: jobv1.Protocol_PROTOCOL_TRIPLES,
		Params: liveSet, ParamsHash: hash[:], RosterHash: append([]byte{1}, make([]byte, 31)...), Kind: jobv1.Kind_KIND_SCALAR, Epoch: 1,
		Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Deadline: timestamppb.New(time.Now().Add(time.Minute)), Field: liveField, Count: 2, Dim: 1, Tenant: "dev",
	}
}

func (n *live) start(party int, spec *jobv1.SessionSpec) {
	n.t.Helper()
	_, err := n.services[party].Start(n.t.Context(), &jobv1.StartRequest{Spec: spec})
	must(n.t, err)
}

// status is how a party's session stands.
func (n *live) status(party int, spec *jobv1.SessionSpec) *jobv1.SessionStatus {
	n.t.Helper()
	r, err := n.services[party].GetStatus(n.t.Context(), &jobv1.GetStatusRequest{Ref: spec.GetRef()})
	must(n.t, err)
	return r.GetStatus()
}

// ends waits until a party's session has a result that waits for its activation.
func (n *live) ends(party int, spec *jobv1.SessionSpec) (st *jobv1.SessionStatus) {
	n.t.Helper()
	n.until("the end of the session", func() bool {
		st = n.status(party, spec)
		return st.GetState() >= jobv1.JobState_JOB_STATE_ACTIVATING
	})
	if st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING {
		n.t.Fatalf("party %d: %v", party, st)
	}
	return st
}

// until waits for what must come soon: much sooner than a party gives up its peers.
func (n *live) until(what string, done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%s does not come", what)
		}
	}
}

// key is a party's record of the MAC key.
func (n *live) key(party int) vault.MACKey {
	n.t.Helper()
	k, err := n.services[party].vault.MACKey(n.macKey)
	must(n.t, err)
	return k
}

// batches counts what a party has stored.
func (n *live) batches(party int) int {
	n.t.Helper()
	all, err := n.services[party].vault.Batches()
	must(n.t, err)
	return len(all)
}

// deviating is a party that does everything until it is to open its sigma, where hold runs, and until it is to accept, where
// end runs instead.
type deviating struct {
	*run
	hold func() error
	end  func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error)
}

func (r deviating) Run(ctx context.Context, s *session.Session) (*session.Stored, error) {
	var err error
	if r.keys, err = r.ring.Load(1, "triples"); err != nil {
		return nil, err
	}
	defer r.keys.Release()
	held, err := r.findMACKey()
	if err != nil {
		return nil, err
	}
	_, err = session.Drive(ctx, s, protocol, r.terms(), func(rs round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
		t := round.Then(triple.AgreeOnMACKey(rs, held), func(_ context.Context, same bool) (round.Transition[triple.Result], error) {
			if !same {
				return round.Transition[triple.Result]{}, errors.New("the parties have different MAC keys")
			}
			return triple.Start(triple.Config{
				Session: rs, Plan: r.plan, Scheme: r.scheme, Keys: r.keys.Public.Keys(r.scheme), Public: r.keys.Public.Public,
				KeyHash: r.keys.PublicHash, Secret: r.keys.Secret, MAC: r.mac, Source: source, Workers: 1, Exposed: r.hold,
			})
		})
		return round.Then(t, func(_ context.Context, result triple.Result) (round.Transition[triple.Result], error) {
			return r.end(rs, result)
		}), nil
	})
	return &session.Stored{}, err
}

// A peer that has everybody's sigma and keeps its own may know the MAC key. From then on nothing under the key goes
// out, long before the peer is given up, and when it is, the key is burnt.
func TestAPeerThatWithholdsItsSigmaCostsTheMACKey(t *testing.T) {
	n := newLive(t)
	s := n.services[0]
	if k := n.key(0); k.State != vault.MACActive || len(k.Exposed) != 0 {
		t.Fatalf("before: %+v", k)
	}
	spec := n.spec()
	end := make(chan struct{})
	give := sync.OnceFunc(func() { close(end) })
	t.Cleanup(give)
	peer := n.services[1]
	_, err := peer.Sessions.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, deviating{run: &run{Service: peer, spec: spec}, hold: func() error {
		<-end
		return errors.New("it keeps its sigma")
	}})
	must(t, err)
	n.start(0, spec)
	n.until("the exposure of the key", func() bool { return len(n.key(0).Exposed) > 0 })
	if k := n.key(0); k.State != vault.MACActive {
		t.Errorf("while the peer may still open its sigma: %+v", k)
	}
	if _, _, err := s.vault.Deliver("r", "client", 0); !errors.Is(err, vault.ErrExposed) {
		t.Errorf("delivered under an exposed key: %v", err)
	}
	give()
	n.until("the end of the session", func() bool { return job.Final(n.status(0, spec).GetState()) })
	if st := n.status(0, spec); st.GetState() != jobv1.JobState_JOB_STATE_FAILED || st.GetFailure().GetCheck() == "mac" {
		t.Errorf("%v", st)
	}
	if k := n.key(0); k.State != vault.MACBurnt {
		t.Errorf("after: %+v", k)
	}
	if _, _, err := s.vault.Deliver("r", "client", 0); !errors.Is(err, vault.ErrErased) {
		t.Errorf("delivered under a burnt key: %v", err)
	}
}

// An epoch that drains ends what has only begun under it. A session that is in its MAC check goes on to its verdict and
// stores nothing: its end before that would cost the MAC key, and with it all tuples that are to be used up.
func TestADrainKeepsTheMACKey(t *testing.T) {
	n := newLive(t)
	s, peer := n.services[0], n.services[1]
	begun, checking := n.spec(), n.spec()
	n.start(0, begun) // the peer never hears of it
	given := make(chan struct{})
	give := sync.OnceFunc(func() { close(given) })
	t.Cleanup(give)
	_, err := peer.Sessions.Start(jobv1.Protocol_PROTOCOL_TRIPLES, checking, deviating{run: &run{Service: peer, spec: checking}, hold: func() error {
		<-given
		return nil
	}, end: func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
		return round.Map(verdict.Accept(rs, result.Digest, func(context.Context) error { return nil }), func(round.Digest) (triple.Result, error) {
			return result, nil
		}), nil
	}})
	must(t, err)
	n.start(0, checking)
	n.until("the exposure of the key", func() bool { return len(n.key(0).Exposed) > 0 })
	before := n.batches(0)
	must(t, s.vault.DrainEpoch(1, 0))
	s.Sessions.DrainEpoch(soon(t), 1, "epoch 1 is draining")
	if st := n.status(0, begun); st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("what had begun: %v", st)
	}
	if st := n.status(0, checking); job.Final(st.GetState()) {
		t.Errorf("what is in its check: %v", st)
	}
	give()
	n.until("the end of the session", func() bool { return job.Final(n.status(0, checking).GetState()) })
	if f := n.status(0, checking).GetFailure(); f.GetOutcome() != string(session.Refused) || !strings.Contains(f.GetReason(), "epoch 1 is draining") {
		t.Errorf("%v", f)
	}
	if k := n.key(0); k.State != vault.MACActive || len(k.Exposed) != 0 || n.batches(0) != before {
		t.Errorf("%+v, %d batches of %d", k, n.batches(0), before)
	}
	if _, _, err := s.vault.Deliver("r", "client", 0); err != nil {
		t.Errorf("what there was: %v", err)
	}
}

// A result that was erased before its activation says so, and not that it may come: nobody waits for it.
func TestActivationOfWhatIsErased(t *testing.T) {
	n := newLive(t)
	s, spec := n.services[0], n.spec()
	n.start(0, spec)
	n.start(1, spec)
	st := n.ends(0, spec)
	must(t, s.vault.DrainEpoch(1, 0))
	s.Sessions.DrainEpoch(soon(t), 1, "epoch 1 is draining")
	_, err := s.Activate(t.Context(), &jobv1.ActivateRequest{Ref: spec.GetRef(), Digest: st.GetDigest()})
	must(t, err) // it was there before

	other := n.services[1]
	st = n.ends(1, spec)
	_, err = other.vault.RetireEpoch(1, "test")
	must(t, err)
	other.Sessions.CancelEpoch(soon(t), 1, "epoch 1 is retired")
	_, err = other.Activate(t.Context(), &jobv1.ActivateRequest{Ref: spec.GetRef(), Digest: st.GetDigest()})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Burnt {
		t.Errorf("%v", err)
	}
}

// While another session under the same MAC key has opened its sigma and has no verdict, a party whose check has passed
// does not say that it accepts, so that nobody stores anything; and never, should the key be burnt.
func TestNothingIsAcceptedBeforeTheOthersHaveAVerdict(t *testing.T) {
	n := newLive(t)
	s := n.services[0]
	for i, end := range []struct {
		what   string
		other  func(*run)
		stored bool
	}{
		{"passes", func(other *run) { must(t, other.settle(soon(t))) }, true},
		{"has no verdict", func(other *run) { other.burn(&runner.Failure{Outcome: runner.Timeout}) }, false},
	} {
		before, beforeAtPeer := n.batches(0), n.batches(1)
		other := &run{Service: s, spec: n.spec(), macID: n.macKey, id: [32]byte{9, byte(i)}}
		must(t, other.expose())
		spec := n.spec()
		n.start(0, spec)
		n.start(1, spec)
		n.until("the peer's verdict", func() bool { return n.status(1, spec).GetProgress().GetRound() == verdict.Name })
		n.until("the session's own verdict", func() bool { return len(n.key(0).Exposed) == 1 })
		time.Sleep(50 * time.Millisecond)
		if n.batches(0) != before || n.batches(1) != beforeAtPeer {
			t.Fatalf("stored before the other check %s", end.what)
		}
		end.other(other)
		n.until("the end of the wait", func() bool { return n.status(0, spec).GetState() >= jobv1.JobState_JOB_STATE_ACTIVATING })
		st := n.status(0, spec)
		switch {
		case end.stored && (st.GetState() != jobv1.JobState_JOB_STATE_ACTIVATING || n.batches(0) != before+1):
			t.Errorf("the other check %s: %v", end.what, st)
		case !end.stored && (st.GetFailure().GetCheck() != string(rpc.Burnt) || n.batches(0) != before):
			t.Errorf("the other check %s: %v", end.what, st)
		}
		n.until("the end at the peer", func() bool { return n.status(1, spec).GetState() >= jobv1.JobState_JOB_STATE_ACTIVATING })
		if got := n.batches(1); got > beforeAtPeer != end.stored {
			t.Errorf("the other check %s: the peer has %d batches, and had %d", end.what, got, beforeAtPeer)
		}
	}
}

// A MAC key that is given up for a new one is erased in memory before the new one takes its place.
func TestAMACKeyThatIsGivenUpIsErased(t *testing.T) {
	n := newLive(t)
	_, err := n.services[1].vault.BurnMACKey(n.macKey, "test")
	must(t, err)
	spec, runs := n.spec(), make([]*run, 2)
	for i, s := range n.services {
		r := &run{Service: s, spec: spec}
		_, err := r.Memory()
		must(t, err)
		leave, err := r.Claim()
		must(t, err)
		defer leave()
		r.keys, err = s.ring.Load(1, "triples")
		must(t, err)
		defer r.keys.Release()
		_, err = r.findMACKey()
		must(t, err)
		runs[i] = r
	}
	old := runs[0].mac.Share
	f := runs[0].scheme.Field
	if f.IsZero(old.At(0)) || len(runs[1].mac.Share.W) != 0 {
		t.Fatal("party 0 has no MAC key to give up, or party 1 has one")
	}
	roundtest.Lockstep(2, func(rs round.Session) (round.Transition[triple.Result], error) {
		return runs[rs.Self].withFreshKey(rs, sample.NewSource(bytes.Repeat([]byte{byte(rs.Self)}, sample.SeedSize)))
	}).OK(t)
	if !f.IsZero(old.At(0)) {
		t.Error("the share of the old key is still there")
	}
	if f.IsZero(runs[0].mac.Share.At(0)) {
		t.Error("the share of the new key is gone")
	}
}
