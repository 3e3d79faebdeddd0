package session

import (
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// generation is a Protocol that makes keys and stores nothing.
type generation struct{ scheme *gbfv.Scheme }

func (generation) Memory() (uint64, error) { return 1, nil }

func (g generation) Run(ctx context.Context, s *Entry) (*Stored, error) {
	start := func(rs round.Session, source *sample.Source) (round.Transition[keygen.Result], error) {
		return keygen.Start(keygen.Config{
			Session: rs, Scheme: g.scheme, Dim: 2, Security: g.scheme.Set.KeygenSecurity(), Source: source, Workers: 1,
		})
	}
	_, err := Drive(ctx, s, plan.Keygen, g.scheme.Set.Hash(), start)
	return &Stored{}, err
}

// A party that blames another passes on evidence of the cheat. Without a cheat there is no
// evidence.
func TestProvedCheatsAreHandedOver(t *testing.T) {
	set, err := params.Lookup("insecure-8")
	if err != nil {
		t.Fatal(err)
	}
	field, err := set.Field("p64")
	if err != nil {
		t.Fatal(err)
	}
	scheme, err := gbfv.New(set, field)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "long-secret"} {
		t.Run("cheat "+name, func(t *testing.T) {
			found, file := generate(t, scheme, name)
			if name == "" {
				if found != nil {
					t.Errorf("an honest session gives %v", found)
				}
				return
			}
			if found == nil || found.Culprit.Index != 1 || found.Check != keygen.CheckBound || len(file) == 0 {
				t.Errorf("got %v, %d bytes", found, len(file))
			}
		})
	}
}

// generate runs a key generation of two parties, of which the second cheats, and returns the
// evidence of the first party.
func generate(t *testing.T, scheme *gbfv.Scheme, cheat string) (found *evidence.Finding, file []byte) {
	net := testnet.New(t, 2, testnet.Options{})
	hash, roster := scheme.Set.Hash(), [32]byte{1}
	pin := config.ParamsPin{Name: scheme.Set.Name, Hash: hex.EncodeToString(hash[:])}
	spec := &jobv1.SessionSpec{
		Ref: job.Ref{JobID: "job-1", Ordinal: 1}.Proto(), Protocol: jobv1.Protocol_PROTOCOL_KEYGEN, ProtocolVersion: job.ProtocolVersion,
		Params: pin.Name, ParamsHash: hash[:], RosterHash: roster[:], Kind: jobv1.Kind_KIND_KEYS, Dim: 2,
		Epoch: 1, Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Deadline: timestamppb.New(time.Now().Add(time.Hour)),
	}
	var sessions []*Entry
	for i, p := range net.Parties {
		c := Config{
			Exchange: p.Exchange, Self: round.Party(i), Names: net.Names, Signer: p.Signer, Keys: net.Keys, Roster: roster,
			Limits:  runner.Limits{Idle: 30 * time.Second, Compute: 30 * time.Second, MinRate: 1 << 20},
			Metrics: metrics.New("test", metrics.Both), Log: slog.New(slog.DiscardHandler), EvidenceDir: t.TempDir(),
			Gate: job.NewGate(job.Terms{
				Policy: config.Policy{
					Params: []config.ParamsPin{pin}, Kinds: []string{"keys"}, Purposes: []string{"triples"},
					MaxDim: 2, MaxConcurrent: 1, JobsPerHour: 1, MaxMemory: 1 << 20,
				},
				RosterHash: roster, AllowPassiveKeygen: true, AllowInsecureParams: true, Now: time.Now,
			}),
		}
		if i == 0 {
			c.Accuse = func(f *evidence.Finding, r io.Reader) {
				found = f
				var err error
				if file, err = io.ReadAll(r); err != nil {
					t.Error(err)
				}
			}
		} else if cheat != "" {
			x := cheattest.Find(cheat)
			if x == nil {
				t.Fatalf("no cheat is called %s", cheat)
			}
			c.Cheat = func(s *round.Session) { x.Put(s, cheattest.Env{Scheme: scheme}) }
		}
		r := NewRegistry(c)
		if _, err := r.Start(jobv1.Protocol_PROTOCOL_KEYGEN, spec, generation{scheme}); err != nil {
			t.Fatal(err)
		}
		s, err := r.Get(spec.GetRef())
		if err != nil {
			t.Fatal(err)
		}
		sessions = append(sessions, s)
	}
	for _, s := range slices.Backward(sessions) {
		s.wait(t.Context())
	}
	return found, file
}
