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
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	liveSet   = "insecure-8"
	liveField = "p128"
)

// live is two parties that make triples over real connections, with an active epoch 1, whose keys
// count as proved or not, and an active MAC key with a batch under it, of which a reservation has
// the tuples. The test is their coordinator.
type live struct {
	t        *testing.T
	set      *params.Set
	services []*Service
	jobs     uint32
	macKey   string
}

func newLive(t *testing.T, security string) *live {
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
		e := vaultkeys.Epoch{
			ID: 1, Params: liveSet, ParamsHash: hash, Purpose: "triples", Digest: keys[i].Keys.Digest(scheme, 1), Dim: 1, Limit: params.MaxDecryptions,
			KeygenSecurity: security,
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
		n.services = append(n.services, New(sessions, keyring.New(v, 1, true), v, 2, nil, nil))
	}

	first := n.spec()
	n.start(0, first)
	n.start(1, first)
	for i, s := range n.services {
		st := n.ends(i, first)
		_, err := s.Activate(t.Context(), &jobv1.ActivateRequest{Ref: first.GetRef(), Digest: st.GetDigest()})
		must(t, err)
		b, err := s.whole().Batch(st.GetBatchId())
		must(t, err)
		n.macKey = b.MACKey
		_, err = s.whole().Reserve(stock.Reservation{
			ID: "r", Class: stock.Class{Tenant: b.Tenant, Kind: b.Kind, Params: b.Params, Field: b.Field}, Epoch: 1, MACKey: b.MACKey, Owner: "client",
			Ranges: []stock.Range{{Batch: b.ID, Span: stock.Span{Count: b.Count}}}, Lease: time.Now().Add(time.Hour),
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

// until waits for a condition that must hold soon, long before a party gives up on its peers.
func (n *live) until(what string, done func() bool) {
	n.t.Helper()
	for end := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			n.t.Fatalf("%s does not come", what)
		}
	}
}

// key is a party's record of the MAC key.
func (n *live) key(party int) vaultkeys.MACKey {
	n.t.Helper()
	k, err := n.services[party].whole().MACKey(n.macKey)
	must(n.t, err)
	return k
}

// batches counts the stored batches of a party.
func (n *live) batches(party int) int {
	n.t.Helper()
	all, err := n.services[party].whole().Batches()
	must(n.t, err)
	return len(all)
}

// deviating is a party that does everything until it is to open its combinations of the MAC check,
// where hold runs, and until it is to accept, where end runs instead.
type deviating struct {
	*run
	hold func() error
	end  func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error)
}

func (r deviating) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
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
				KeyHash: r.keys.PublicHash, Secret: r.keys.Secret, MAC: r.mac, Source: source, Workers: 1, Opening: r.hold,
			})
		})
		return round.Then(t, func(_ context.Context, result triple.Result) (round.Transition[triple.Result], error) {
			return r.end(rs, result)
		}), nil
	})
	return &session.Stored{}, err
}

// holds starts a session in which party 1 stops before it opens its combinations, and waits until
// party 0 has opened its own. give lets party 1 go on, to an end with err.
func (n *live) holds(err error, end func(round.Session, triple.Result) (round.Transition[triple.Result], error)) (spec *jobv1.SessionSpec, give func()) {
	n.t.Helper()
	spec = n.spec()
	given := make(chan struct{})
	give = sync.OnceFunc(func() { close(given) })
	n.t.Cleanup(give)
	peer := n.services[1]
	_, started := peer.Sessions.Start(jobv1.Protocol_PROTOCOL_TRIPLES, spec, deviating{run: &run{Service: peer, spec: spec}, hold: func() error {
		<-given
		return err
	}, end: end})
	must(n.t, started)
	n.start(0, spec)
	n.until("the opening of party 0", func() bool { return len(n.key(0).Checks) > 0 })
	return spec, give
}

// A peer that receives the others' openings and withholds its own ends the session without a
// result. Under proved keys that counts, and nothing waits for it or is lost. Under others it burns
// the MAC key.
func TestAPeerThatWithholdsItsOpening(t *testing.T) {
	for _, security := range []string{params.Proved, params.Passive} {
		t.Run(security, func(t *testing.T) {
			n := newLive(t, security)
			s, before := n.services[0], n.batches(0)
			spec, give := n.holds(errors.New("it keeps its opening"), nil)
			if _, _, err := s.whole().Deliver("r", "client", 0); err != nil {
				t.Errorf("while the check is under way: %v", err)
			}
			give()
			n.until("the end of the session", func() bool { return job.Final(n.status(0, spec).GetState()) })
			if st := n.status(0, spec); st.GetState() != jobv1.JobState_JOB_STATE_FAILED || st.GetFailure().GetCheck() == "mac" {
				t.Errorf("%v", st)
			}
			k := n.key(0)
			_, _, err := s.whole().Deliver("r", "client", 0)
			if proved := security == params.Proved; proved && (err != nil || k.State != vaultkeys.MACActive || k.Failed != 1 || len(k.Checks) > 0) {
				t.Errorf("%+v, %v", k, err)
			} else if !proved && (!errors.Is(err, vaulterr.ErrErased) || k.State != vaultkeys.MACBurnt) {
				t.Errorf("%+v, %v", k, err)
			}
			if n.batches(0) != before {
				t.Error("a batch is stored")
			}
		})
	}
}

// Under proved keys sessions under one MAC key wait neither for each other's check nor for its
// result. Under keys that are not proved a second session is refused as long as the first runs.
func TestSessionsUnderOneMACKey(t *testing.T) {
	n := newLive(t, params.Proved)
	held, give := n.holds(errors.New("it keeps its opening"), nil)
	before := n.batches(0)
	other := n.spec()
	n.start(0, other)
	n.start(1, other)
	n.ends(0, other)
	n.ends(1, other)
	if n.batches(0) != before+1 || len(n.key(0).Checks) != 1 || job.Final(n.status(0, held).GetState()) {
		t.Errorf("%d batches of %d, %+v", n.batches(0), before, n.key(0))
	}
	give()
	n.until("the end of the session", func() bool { return job.Final(n.status(0, held).GetState()) })
	if k := n.key(0); k.State != vaultkeys.MACActive || k.Failed != 1 || k.InARow != 0 {
		t.Errorf("%+v", k)
	}

	n = newLive(t, params.Passive)
	n.holds(errors.New("it keeps its opening"), nil)
	if _, err := n.services[0].Start(t.Context(), &jobv1.StartRequest{Spec: n.spec()}); !busy(err) {
		t.Errorf("two sessions under a MAC key whose keys are not proved: %v", err)
	}
}

// An epoch that drains ends sessions under it that have only begun. A session that is in its MAC
// check goes on to its verdict and stores nothing: its end before that would count as a failed
// check of the MAC key.
func TestADrainKeepsTheMACKey(t *testing.T) {
	n := newLive(t, params.Proved)
	s := n.services[0]
	begun := n.spec()
	n.start(0, begun) // the peer never receives it
	checking, give := n.holds(nil, func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
		return round.Map(verdict.Accept(rs, result.Digest), func(round.Digest) (triple.Result, error) { return result, nil }), nil
	})
	before := n.batches(0)
	must(t, s.whole().DrainEpoch(1, 0))
	s.Sessions.DrainEpoch(soon(t), 1, "epoch 1 is draining")
	if st := n.status(0, begun); st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
		t.Errorf("what had begun: %v", st)
	}
	if st := n.status(0, checking); job.Final(st.GetState()) {
		t.Errorf("a batch during its MAC check: %v", st)
	}
	give()
	n.until("the end of the session", func() bool { return job.Final(n.status(0, checking).GetState()) })
	if f := n.status(0, checking).GetFailure(); f.GetOutcome() != string(session.Refused) || !strings.Contains(f.GetReason(), "epoch 1 is draining") {
		t.Errorf("%v", f)
	}
	if k := n.key(0); k.State != vaultkeys.MACActive || len(k.Checks) != 0 || k.Failed != 0 || n.batches(0) != before {
		t.Errorf("%+v, %d batches of %d", k, n.batches(0), before)
	}
	if _, _, err := s.whole().Deliver("r", "client", 0); err != nil {
		t.Errorf("what there was: %v", err)
	}
}

// A client that cancels its job during the MAC check does not cost the MAC key, with or without
// proved keys. The batch is erased when it is there.
func TestACancelKeepsTheMACKey(t *testing.T) {
	for _, security := range []string{params.Proved, params.Passive} {
		t.Run(security, func(t *testing.T) {
			n := newLive(t, security)
			s := n.services[0]
			spec, give := n.holds(nil, func(rs round.Session, result triple.Result) (round.Transition[triple.Result], error) {
				return round.Map(verdict.Accept(rs, result.Digest), func(round.Digest) (triple.Result, error) { return result, nil }), nil
			})
			over, end := context.WithCancel(t.Context())
			end() // the caller does not wait
			_, err := s.Cancel(over, &jobv1.CancelRequest{Ref: spec.GetRef(), Reason: "a mistake"})
			must(t, err)
			if st := n.status(0, spec); job.Final(st.GetState()) {
				t.Errorf("during its MAC check: %v", st)
			}
			give()
			n.until("the end of the session", func() bool { return job.Final(n.status(0, spec).GetState()) })
			if st := n.status(0, spec); st.GetState() != jobv1.JobState_JOB_STATE_CANCELLED {
				t.Errorf("after its MAC check: %v", st)
			}
			if k := n.key(0); k.State != vaultkeys.MACActive || len(k.Checks) != 0 || k.Failed != 0 {
				t.Errorf("%+v", k)
			}
			if _, _, err := s.whole().Deliver("r", "client", 0); err != nil {
				t.Errorf("what there was: %v", err)
			}
		})
	}
}

// If a result was erased before its activation, Activate returns an error that tells the
// coordinator not to wait for it.
func TestActivationOfWhatIsErased(t *testing.T) {
	n := newLive(t, params.Proved)
	s, spec := n.services[0], n.spec()
	n.start(0, spec)
	n.start(1, spec)
	st := n.ends(0, spec)
	must(t, s.whole().DrainEpoch(1, 0))
	s.Sessions.DrainEpoch(soon(t), 1, "epoch 1 is draining")
	_, err := s.Activate(t.Context(), &jobv1.ActivateRequest{Ref: spec.GetRef(), Digest: st.GetDigest()})
	must(t, err) // it was there before

	other := n.services[1]
	st = n.ends(1, spec)
	_, err = other.whole().RetireEpoch(1, "test")
	must(t, err)
	other.Sessions.CancelEpoch(soon(t), 1, "epoch 1 is retired")
	_, err = other.Activate(t.Context(), &jobv1.ActivateRequest{Ref: spec.GetRef(), Digest: st.GetDigest()})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Burnt {
		t.Errorf("%v", err)
	}
}

// A MAC key that is given up for a new one is erased in memory before the new one takes its place.
func TestAMACKeyThatIsGivenUpIsErased(t *testing.T) {
	n := newLive(t, params.Proved)
	_, err := n.services[1].whole().BurnMACKey(n.macKey, "test")
	must(t, err)
	spec, runs := n.spec(), make([]*run, 2)
	for i, s := range n.services {
		r := &run{Service: s, spec: spec, opens: func() error { return nil }}
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
	if k := n.key(0); k.State != vaultkeys.MACRetired {
		t.Errorf("the old key: %+v", k)
	}
	if _, _, err := n.services[0].whole().Deliver("r", "client", 0); err != nil {
		t.Errorf("batches released under the old key: %v", err)
	}
	if f.IsZero(runs[0].mac.Share.At(0)) {
		t.Error("the share of the new key was erased")
	}
}

// whole returns the whole vault of a service, of which the service knows a part.
func (s *Service) whole() *vault.Vault { return s.vault.(*vault.Vault) }
