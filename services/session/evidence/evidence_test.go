package evidence_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

const (
	set   = "insecure-8"
	field = "p64"
)

// world holds parties on real sockets with real TLS, and their keys.
type world struct {
	t      *testing.T
	net    *testnet.Net
	n      int
	roster *config.Roster
	scheme *gbfv.Scheme
	keys   []keygen.Result
	jobs   int
	dir    string
	forger *forger
	// listener records the frames of the last party; adversary receives them when a session has
	// ended.
	listener  *listener
	adversary func(kept *evidence.Recorder, c evidence.Case, report runner.Report)
}

func newWorld(t *testing.T, n int) *world {
	t.Helper()
	s, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Field(field)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, n: n, roster: new(config.Roster), dir: t.TempDir(), forger: &forger{culprit: n - 1}, listener: &listener{party: n - 1}}
	w.listener.forget()
	w.net = testnet.New(t, n, testnet.Options{Sends: func(from, to int) grpc.StreamClientInterceptor {
		return both(w.listener.sends(from, to), w.forger.sends(from, to))
	}})
	w.forger.signer = w.net.Parties[n-1].Signer
	if w.scheme, err = gbfv.New(s, f); err != nil {
		t.Fatal(err)
	}
	for i, k := range w.net.Keys {
		w.roster.Parties = append(w.roster.Parties, config.Member{
			ID: i, Name: w.net.Names[i], Identity: testnet.Identity(i), SigningKey: base64.StdEncoding.EncodeToString(k),
		})
	}
	return w
}

// spec returns the spec of a new session.
func (w *world) spec(kind jobv1.Kind) *jobv1.SessionSpec {
	w.jobs++
	hash, roster := w.scheme.Set.Hash(), w.roster.Hash()
	s := &jobv1.SessionSpec{
		Ref: job.Ref{JobID: fmt.Sprintf("job-%d", w.jobs), Ordinal: 1}.Proto(), ProtocolVersion: job.ProtocolVersion, Params: set,
		ParamsHash: hash[:], RosterHash: roster[:], Kind: kind, Epoch: 1, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
		Deadline: timestamppb.New(time.Now().Add(time.Hour)), Protocol: jobv1.Protocol_PROTOCOL_KEYGEN, Dim: 2,
	}
	if kind != jobv1.Kind_KIND_KEYS {
		s.Protocol, s.Dim, s.Field, s.Count, s.Tenant = jobv1.Protocol_PROTOCOL_TRIPLES, 1, field, 1, "tenant"
	}
	switch kind {
	case jobv1.Kind_KIND_PROOF:
		s.Protocol = jobv1.Protocol_PROTOCOL_POPK
	case jobv1.Kind_KIND_MATRIX:
		s.Dim, s.Shape = 2, &jobv1.Shape{Rows: 2, Inner: 3, Columns: 2}
	case jobv1.Kind_KIND_CONVOLUTION:
		s.Dim, s.Shape = 2, &jobv1.Shape{Convolution: &jobv1.Convolution{
			Channels: 1, Height: 3, Width: 3, Outputs: 2, KernelHeight: 2, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingWidth: 1,
		}}
	case jobv1.Kind_KIND_INPUT:
		s.InputParty = uint32(w.n - 1)
	}
	return s
}

var limits = runner.Limits{Idle: 30 * time.Second, Compute: 30 * time.Second, MinRate: 1 << 20}

// ended describes how a session ended at a party.
type ended[R any] struct {
	result R
	err    error
	found  *evidence.Finding
	file   []byte
	why    error // why there is no accusation
}

// run runs a session in which the culprit deviates.
func run[R any](w *world, spec *jobv1.SessionSpec, terms round.Digest, cheat func(*round.Session), culprit int,
	start func(p int, s round.Session, source *sample.Source) (round.Transition[R], error)) []ended[R] {
	w.t.Helper()
	ends := make([]ended[R], w.n)
	var wg sync.WaitGroup
	for p := range w.n {
		ref, _ := job.RefOf(spec.GetRef())
		x, err := w.net.Parties[p].Exchange.Open(ref, exchange.Pins{ParamsHash: terms, SpecDigest: job.Digest(spec)})
		if err != nil {
			w.t.Fatal(err)
		}
		kept := evidence.NewRecorder(w.dir, func(err error) { w.t.Error(err) })
		o := runner.Options{
			Terms: round.Terms{
				Version: job.ProtocolVersion, Protocol: plan.Name(spec.GetProtocol()), Params: terms, Roster: w.roster.Hash(),
				Epoch: spec.GetEpoch(), Job: job.Digest(spec),
			},
			Session: x, Self: round.Party(p), Names: w.net.Names, Signer: w.net.Parties[p].Signer, Keys: w.net.Keys,
			Random: rand.Reader, Limits: limits, Recorder: kept,
		}
		if p == culprit {
			o.Cheat = cheat
		}
		wg.Go(func() {
			defer kept.Close()
			var report runner.Report
			ends[p].result, report, ends[p].err = runner.Run(context.Background(), o, func(s round.Session) (round.Transition[R], error) {
				source, err := sample.Draw(rand.Reader, "test", s.ID[:])
				if err != nil {
					return round.Transition[R]{}, err
				}
				return start(p, s, source)
			})
			c := evidence.Case{
				Members: evidence.Members{Names: w.net.Names, Keys: w.net.Keys, Hash: w.roster.Hash()},
				Self:    round.Party(p), Signer: w.net.Parties[p].Signer, Spec: spec, Params: terms, Nonces: report.Nonces,
				History: report.History, When: time.Now().UTC(),
			}
			if w.keys != nil && spec.GetKind() != jobv1.Kind_KIND_KEYS {
				c.Key = func() (seed, half []byte) {
					return w.keys[p].Keys.Frame(w.scheme, 0), w.keys[p].Keys.Frame(w.scheme, 1)
				}
			}
			if w.adversary != nil && p == w.listener.party {
				w.adversary(kept, c, report)
			}
			var f *runner.Failure
			if !errors.As(ends[p].err, &f) || f.Outcome != runner.Blamed {
				return
			}
			c.Round, c.Err = uint32(f.Index), f.Cause
			if cheat != nil {
				w.frames(kept, c, f, culprit)
			}
			found, file, err := kept.Accuse(context.Background(), c, w.dir)
			if ends[p].why = err; err != nil {
				return
			}
			defer file.Close()
			ends[p].found = found
			if ends[p].file, err = io.ReadAll(file); err != nil {
				w.t.Error(err)
			}
		})
	}
	wg.Wait()
	return ends
}

// keygen makes keys.
func (w *world) keygen(spec *jobv1.SessionSpec, cheat func(*round.Session), culprit int) []ended[keygen.Result] {
	return run(w, spec, w.scheme.Set.Hash(), cheat, culprit, func(_ int, s round.Session, source *sample.Source) (round.Transition[keygen.Result], error) {
		return keygen.Start(keygen.Config{Session: s, Scheme: w.scheme, Dim: 2, Security: w.scheme.Set.KeygenSecurity(), Source: source, Workers: 1})
	})
}

// hold makes keys that all parties hold.
func (w *world) hold() {
	w.t.Helper()
	for _, e := range w.keygen(w.spec(jobv1.Kind_KIND_KEYS), nil, -1) {
		if e.err != nil {
			w.t.Fatal(e.err)
		}
		w.keys = append(w.keys, e.result)
	}
}

// proof runs a session of proofs in which the culprit encrypts under a different key.
func (w *world) proof(spec *jobv1.SessionSpec, key *gbfv.PublicKey, cheat func(*round.Session), culprit int) []ended[popk.Result] {
	w.t.Helper()
	instance, err := plan.Proof(spec, w.underKeys(), w.n)
	if err != nil {
		w.t.Fatal(err)
	}
	hash := w.keys[0].Keys.PublicHash(w.scheme)
	return run(w, spec, plan.Terms(plan.Popk, instance, hash), cheat, culprit, func(p int, s round.Session, source *sample.Source) (round.Transition[popk.Result], error) {
		c := popk.Config{
			Session: s, Step: plan.StepProof, Scheme: w.scheme, Instance: instance, Key: w.keys[p].Keys.Public, KeyHash: hash,
			Source: source, Workers: 1,
		}
		if p == culprit {
			c.Key = key
		}
		return popk.Start(c)
	})
}

// underKeys returns the parameter set under the keys that all parties hold.
func (w *world) underKeys() *params.Set {
	if w.scheme.Set.KeygenSecurity() == params.Proved {
		return w.scheme.Set.Proved()
	}
	return w.scheme.Set
}

// batch makes a MAC key and a batch under it.
func (w *world) batch(spec *jobv1.SessionSpec, cheat func(*round.Session), culprit int) []ended[triple.Result] {
	w.t.Helper()
	b, mac, err := plan.Batch(spec, w.underKeys(), w.n, 2, false)
	if err != nil {
		w.t.Fatal(err)
	}
	hash := w.keys[0].Keys.PublicHash(w.scheme)
	return run(w, spec, plan.Terms(plan.Triples, b.Instance, hash), cheat, culprit, func(p int, s round.Session, source *sample.Source) (round.Transition[triple.Result], error) {
		k := w.keys[p].Keys
		t := round.Then(triple.AgreeOnMACKey(s, round.Digest{}), func(context.Context, bool) (round.Transition[triple.MACKey], error) {
			return triple.StartMACKey(triple.MACKeyConfig{
				Session: s, Scheme: w.scheme, Instance: mac, Public: k.Public, KeyHash: hash, Source: source.Sub("mac key"), Workers: 1,
			})
		})
		result := round.Then(t, func(_ context.Context, m triple.MACKey) (round.Transition[triple.Result], error) {
			return triple.Start(triple.Config{
				Session: s, Plan: b, Scheme: w.scheme, Keys: k.Keys(w.scheme), Public: k.Public, KeyHash: hash,
				Secret: keygen.Lift(w.scheme, w.keys[p].Secret), MAC: m, Source: source.Sub("batch"), Workers: 1,
			})
		})
		return round.Then(result, func(_ context.Context, r triple.Result) (round.Transition[triple.Result], error) {
			return round.Map(verdict.Accept(s, r.Digest), func(round.Digest) (triple.Result, error) { return r, nil }), nil
		}), nil
	})
}

// cheat returns the cheat with this name.
func (w *world) cheat(name string) func(*round.Session) {
	c := cheattest.Find(name)
	if c == nil {
		w.t.Fatalf("there is no cheat %s", name)
	}
	return func(s *round.Session) { c.Put(s, cheattest.Env{Scheme: w.scheme}) }
}

// proves checks that honest parties hold an accusation of this kind that verifies with only the
// roster, and returns it.
func proves[R any](w *world, ends []ended[R], culprit int, kind evidence.Kind, check string) []byte {
	w.t.Helper()
	var file []byte
	for p, e := range ends {
		if p == culprit || e.file == nil {
			continue
		}
		found, err := evidence.Verify(context.Background(), bytes.NewReader(e.file), w.roster)
		if err != nil {
			w.t.Fatalf("party %d: %v", p, err)
		}
		if found.Kind != kind || int(found.Culprit.Index) != culprit || found.Check != check || int(found.Accuser.Index) != p {
			w.t.Errorf("party %d: %v", p, found)
		}
		file = e.file
	}
	if file == nil {
		for p, e := range ends {
			w.t.Errorf("party %d: %v; no accusation: %v", p, e.err, e.why)
		}
		w.t.FailNow()
	}
	return file
}
