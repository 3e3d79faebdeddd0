package job_test

import (
	"context"
	"testing"

	"github.com/lodge-mpc/lodge/engine/field"
	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/ddec"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/popk"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/engine/protocol/verdict"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// The parties that are pinned, so that there are echoes, and the blocks that their rotation keys
// serve.
const (
	parties = 3
	keyDim  = 4
)

// pinnedVersion replaces job.ProtocolVersion in the terms, so that the hashes show only other
// changes.
const pinnedVersion = 1

// seeded is the randomness of a party.
func seeded(name string, p round.Party) *sample.Source {
	d := round.Hash("pinned", []byte(name), round.Uint(uint64(p)))
	return sample.NewSource(d[:])
}

// note records a hash under a name.
type note = func(name string, d round.Digest)

// chain starts a party's chain.
type chain[R any] func(s round.Session, source *sample.Source) (round.Transition[R], error)

// lockstep runs a session of which it notes all messages, in order, and the transcript.
func lockstep[R any](t *testing.T, note note, name string, terms round.Digest, start chain[R]) []R {
	t.Helper()
	id := round.Terms{
		Version: pinnedVersion, Protocol: name, Params: terms, Roster: round.Hash("roster"), Epoch: 1, Job: round.Hash("job"),
	}.ID()
	out := roundtest.Lockstep(parties, func(s round.Session) (round.Transition[R], error) {
		source := seeded(name, s.Self)
		before, err := round.Prelude(s, source.Stream("prelude"))
		return round.Then(before, func(_ context.Context, s round.Session) (round.Transition[R], error) {
			return start(s, source.Sub("session"))
		}), err
	}, roundtest.ID(id), roundtest.Record()).OK(t)
	said := out.Recording.Digest()
	note(name, round.Hash("session", said[:], out.Transcripts[0][:]))
	return out.Results
}

// world is parties with keys.
type world struct {
	t      *testing.T
	note   note
	name   string
	set    *params.Set // under these keys
	scheme *gbfv.Scheme
	field  string
	keys   []keygen.Result
	hash   round.Digest // of the public key
}

// newWorld makes keys.
func newWorld(t *testing.T, note note, set, field, security string) *world {
	t.Helper()
	s, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	spec, err := s.Field(field)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, note: note, name: set + "/", set: s, field: field}
	if w.scheme, err = gbfv.New(s, spec); err != nil {
		t.Fatal(err)
	}
	made := func(s round.Session, source *sample.Source) (round.Transition[keygen.Result], error) {
		return keygen.Start(keygen.Config{
			Session: s, Scheme: w.scheme, Dim: keyDim, Security: security, Source: source, Workers: 2,
		})
	}
	w.keys = lockstep(t, note, w.name+"keygen/"+security, s.Hash(), made)
	if security == keygen.Proved {
		w.set = s.Proved()
	}
	w.hash = w.keys[0].Keys.PublicHash(w.scheme)
	return w
}

// batch makes a MAC key and a batch of this kind under it, and has all accept.
func (w *world) batch(name string, spec *jobv1.SessionSpec) {
	w.t.Helper()
	p, mac, err := plan.Batch(spec, w.set, parties, keyDim, false)
	if err != nil {
		w.t.Fatal(err)
	}
	terms := plan.Terms(plan.Triples, p.Instance, w.hash)
	start := func(s round.Session, source *sample.Source) (round.Transition[round.Digest], error) {
		k, none := w.keys[s.Self], round.Digest{}
		key := round.Then(triple.AgreeOnMACKey(s, none), func(context.Context, bool) (round.Transition[triple.MACKey], error) {
			return triple.StartMACKey(triple.MACKeyConfig{
				Session: s, Scheme: w.scheme, Instance: mac, Public: k.Keys.Public, KeyHash: w.hash,
				Source: source.Sub("mac key"), Workers: 2,
			})
		})
		made := round.Then(key, func(_ context.Context, m triple.MACKey) (round.Transition[triple.Result], error) {
			return triple.Start(triple.Config{
				Session: s, Plan: p, Scheme: w.scheme, Keys: k.Keys.Keys(w.scheme), Public: k.Keys.Public, KeyHash: w.hash,
				Secret: keygen.Lift(w.scheme, k.Secret), MAC: m, Source: source.Sub("batch"), Workers: 2,
			})
		})
		return round.Then(made, func(_ context.Context, r triple.Result) (round.Transition[round.Digest], error) {
			return verdict.Accept(s, r.Digest), nil
		}), nil
	}
	lockstep(w.t, w.note, w.name+"triples/"+name, terms, start)
}

func (w *world) spec(kind jobv1.Kind) *jobv1.SessionSpec {
	return &jobv1.SessionSpec{Protocol: jobv1.Protocol_PROTOCOL_TRIPLES, Kind: kind, Field: w.field, Dim: 1, Count: 5}
}

// proofs runs a session of proofs. Then a client proves its ciphertexts, and the parties decrypt
// them.
func (w *world) proofs() {
	w.t.Helper()
	instance, err := popk.ClientInstance(w.set, w.field, parties, 2)
	if err != nil {
		w.t.Fatal(err)
	}
	prove := func(s round.Session, source *sample.Source) (round.Transition[popk.Result], error) {
		return popk.Start(popk.Config{
			Session: s, Step: plan.StepProof, Scheme: w.scheme, Instance: instance, Key: w.keys[s.Self].Keys.Public,
			KeyHash: w.hash, Source: source, Workers: 2,
		})
	}
	lockstep(w.t, w.note, w.name+"popk", plan.Terms(plan.Popk, instance, w.hash), prove)
	client := popk.ClientConfig{
		Scheme: w.scheme, Instance: instance, Key: w.keys[0].Keys.Public, KeyHash: w.hash, Prover: "client",
		Context: []byte("pinned"), Workers: 2,
	}
	f, slots := w.scheme.Field, w.scheme.Slots()
	values := []field.Vec{f.NewVec(slots), f.NewVec(slots)}
	for i, v := range values {
		if err := f.Random(v, seeded("values", 0).Stream("value", uint64(i))); err != nil {
			w.t.Fatal(err)
		}
	}
	ciphertexts, proof, err := popk.Prove(context.Background(), client, values, seeded("client", 0))
	if err != nil {
		w.t.Fatal(err)
	}
	w.note(w.name+"popk/client", round.Hash("proof", ciphertexts, proof))
	doubled, err := popk.Verify(context.Background(), client, ciphertexts, proof)
	if err != nil {
		w.t.Fatal(err)
	}
	var answers [][]byte
	for p, k := range w.keys {
		source := seeded("answer", round.Party(p))
		answers = append(answers, ddec.ClientShare(w.scheme, instance, doubled[0], keygen.Lift(w.scheme, k.Secret), source))
	}
	key := ddec.ClientKey(w.scheme, instance, doubled[0])
	w.note(w.name+"ddec/client", round.Hash("answers", append(answers, key[:])...))
	for i, ct := range doubled {
		doubled[i] = w.scheme.SwitchModulus(ct, instance.DDecPrimes)
	}
	decrypt := func(s round.Session, source *sample.Source) (round.Transition[ddec.Shares], error) {
		return ddec.Start(ddec.Config{
			Session: s, Step: "pinned", Scheme: w.scheme, Instance: instance, Ciphertexts: doubled,
			Secret: keygen.Lift(w.scheme, w.keys[s.Self].Secret), Source: source, Workers: 2,
		})
	}
	lockstep(w.t, w.note, w.name+"ddec", instance.Hash(), decrypt)
}

// protocols notes all messages of a session of every protocol.
func protocols(t *testing.T, note note) {
	t.Helper()
	w := newWorld(t, note, "insecure-6", "p128", keygen.Proved)
	for n := range jobv1.Kind_name {
		kind := jobv1.Kind(n)
		if !job.MakesTuples(kind) {
			continue
		}
		s := w.spec(kind)
		switch kind {
		case jobv1.Kind_KIND_MATRIX:
			s.Dim, s.Shape = keyDim, &jobv1.Shape{Rows: 4, Inner: 3, Columns: 4}
		case jobv1.Kind_KIND_CONVOLUTION:
			s.Dim, s.Shape = keyDim, &jobv1.Shape{Convolution: &jobv1.Convolution{
				Channels: 2, Height: 4, Width: 3, Outputs: 3, KernelHeight: 3, KernelWidth: 2, StrideHeight: 1, StrideWidth: 1, PaddingHeight: 1,
			}}
		case jobv1.Kind_KIND_INPUT:
			s.InputParty = parties - 1
		}
		w.batch(job.KindName(kind), s)
	}
	trusting := w.spec(jobv1.Kind_KIND_SCALAR)
	trusting.NoSacrifice = true
	w.batch("scalar without a sacrifice", trusting)
	w.proofs()

	w = newWorld(t, note, "insecure-8-64", "p256", keygen.Passive)
	w.batch("scalar", w.spec(jobv1.Kind_KIND_SCALAR))
	w.proofs()
}
