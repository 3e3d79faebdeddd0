package accusations

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/accusations/accusationstest"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// party is one of three parties, with only a book and a vault.
type party struct {
	*Book
	cluster   *devnet.Cluster
	log       bytes.Buffer
	cancelled []string
	drained   chan uint64
}

func newParty(t *testing.T, policy config.Accusations) *party {
	t.Helper()
	cluster, err := devnet.Write(filepath.Join(t.TempDir(), "net"), devnet.Options{Parties: 3, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	must(t, err)
	key, err := seal.LoadKey(filepath.Join(cluster.Dir, "p0", "vault.key"))
	must(t, err)
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"), key)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	p := &party{cluster: cluster, drained: make(chan uint64, 10)}
	p.Book, err = Open(Config{
		Vault: v, Metrics: metrics.New("test", metrics.Both), Log: slog.New(slog.NewTextHandler(&p.log, nil)), Roster: cluster.Roster, Policy: policy,
		Verify: evidence.Verify, CancelAll: func(reason string) { p.cancelled = append(p.cancelled, reason) },
		DrainEpoch: func(_ context.Context, epoch uint64, _ string) { p.drained <- epoch },
	})
	must(t, err)
	return p
}

var strict = config.Accusations{MaxUnnamedFailures: 2, Within: config.Duration(time.Hour), OnProvenCheat: config.Exclude, MaxEvidence: 1 << 20}

// accuses returns evidence of one of several equivocations of party 2.
func (p *party) accuses(t *testing.T, number uint32) []byte {
	t.Helper()
	culprit, err := accusationstest.Member(p.cluster, 2)
	must(t, err)
	accuser, err := accusationstest.Member(p.cluster, 1)
	must(t, err)
	file, err := accusationstest.Equivocation(p.cluster.Roster, &jobv1.SessionRef{JobId: "j", Ordinal: number}, culprit, accuser)
	must(t, err)
	return file
}

func (p *party) find(file []byte) (conduct.Accusation, bool, error) {
	return p.Accuse(context.Background(), bytes.NewReader(file))
}

func spec(epoch uint64) *jobv1.SessionSpec {
	return &jobv1.SessionSpec{Ref: &jobv1.SessionRef{JobId: "j", Ordinal: 1}, Epoch: epoch}
}

func word(outcome runner.Outcome, check string) runner.Word {
	return runner.Word{Farewell: exchange.Farewell{Outcome: string(outcome), Check: check}}
}

// Which failed sessions count, and which parties are suspected.
func TestWhatCounts(t *testing.T) {
	aborted := func(check string, suspects ...round.Party) runner.Failure {
		return runner.Failure{Outcome: runner.Aborted, Check: check, Suspects: suspects}
	}
	heard := func(words ...runner.Word) runner.Failure {
		return runner.Failure{Outcome: runner.PeerAbort, Suspects: []round.Party{2}, Words: words}
	}
	everybody := []round.Party{1, 2}
	for name, c := range map[string]struct {
		failure  runner.Failure
		check    string // empty: it does not count
		suspects []round.Party
	}{
		"MAC check":                   {aborted("mac"), "mac", everybody},
		"zero check":                  {aborted("zero"), "zero", everybody},
		"sacrifice":                   {aborted("sacrifice"), "sacrifice", everybody},
		"verdict":                     {aborted("verdict"), "verdict", everybody},
		"echo with suspects":          {aborted("echo", 2), "echo", []round.Party{2}},
		"this party or another one":   {aborted("evaluated", 0, 2), "evaluated", []round.Party{0, 2}},
		"ciphertexts differ":          {aborted("evaluated", 1), "evaluated", []round.Party{1}},
		"keys differ":                 {aborted("keygen-agree", 1), "keygen-agree", []round.Party{1}},
		"pins":                        {aborted("pins", 1), "", []round.Party{1}},
		"restarted":                   {aborted("incarnation", 1), "", []round.Party{1}},
		"named":                       {runner.Failure{Outcome: runner.Blamed, Check: "mac", Party: 1}, "", nil},
		"timeout":                     {runner.Failure{Outcome: runner.Timeout, Check: "mac", Suspects: []round.Party{1}}, "", []round.Party{1}},
		"cancelled":                   {runner.Failure{Outcome: runner.Cancelled, Check: "mac"}, "", nil},
		"own fault":                   {runner.Failure{Outcome: runner.Internal, Check: "mac"}, "", nil},
		"a peer's check":              {heard(word(runner.Aborted, "mac")), "mac", everybody},
		"a peer's report of a peer":   {heard(word(runner.PeerAbort, "mac"), word(runner.Aborted, "zero")), "zero", everybody},
		"the most serious of several": {heard(word(runner.Aborted, "mac"), word(runner.Aborted, "sacrifice")), "sacrifice", everybody},
		"a peer's timeout":            {heard(word(runner.Timeout, "mac")), "", []round.Party{2}},
		"a peer that blames":          {heard(word(runner.Blamed, "mac")), "", []round.Party{2}},
		"another check of a peer":     {heard(word(runner.Aborted, "pins")), "", []round.Party{2}},
		"a report without a signer":   {runner.Failure{Outcome: runner.PeerAbort, Check: "mac", Suspects: []round.Party{2}}, "", []round.Party{2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, f := newParty(t, strict), c.failure
			p.Ended(spec(7), round.Digest{0xab}, &f)
			all, err := p.Vault.UnnamedFailures(p.roster)
			must(t, err)
			if !slices.Equal(f.Suspects, c.suspects) {
				t.Errorf("suspects %v", f.Suspects)
			}
			if c.check == "" {
				if len(all) != 0 {
					t.Errorf("%+v", all)
				}
				return
			}
			if len(all) != 1 || all[0].Check != c.check || all[0].Job != "j-1" || all[0].Epoch != 7 || !strings.HasPrefix(all[0].Session, "ab") ||
				all[0].Suspects[0] == p.name(p.Self) || all[0].Suspects[len(all[0].Suspects)-1] != p.name(c.suspects[len(c.suspects)-1]) {
				t.Errorf("%+v", all)
			}
		})
	}
}

// A sacrifice that failed at this party ends the use of the epoch's keys; other failures and the
// word of a peer do not.
func TestSacrificeMakesKeysSuspect(t *testing.T) {
	p := newParty(t, config.Accusations{MaxUnnamedFailures: 100, Within: strict.Within, OnProvenCheat: config.Exclude})
	for id := uint64(1); id <= 3; id++ {
		w, err := p.Vault.(*vault.Vault).NewEpoch(keys.Epoch{ID: id, RosterHash: p.roster, Purpose: "triples"})
		must(t, err)
		must(t, w.Commit())
		must(t, p.Vault.(*vault.Vault).ActivateEpoch(id))
	}
	p.Ended(spec(1), round.Digest{}, &runner.Failure{Outcome: runner.Aborted, Check: "sacrifice"})
	p.Ended(spec(2), round.Digest{}, &runner.Failure{Outcome: runner.PeerAbort, Words: []runner.Word{word(runner.Aborted, "sacrifice")}})
	p.Ended(spec(3), round.Digest{}, &runner.Failure{Outcome: runner.Aborted, Check: "mac"})
	for id, want := range map[uint64]keys.EpochState{1: keys.EpochDraining, 2: keys.EpochActive, 3: keys.EpochActive} {
		e, err := p.Vault.(*vault.Vault).Epoch(id)
		must(t, err)
		if e.State != want || (want == keys.EpochDraining) != strings.Contains(e.Reason, "sacrifice failed in session j-1") {
			t.Fatalf("epoch %d is %s: %q", id, e.State, e.Reason)
		}
	}
	if ended := <-p.drained; ended != 1 {
		t.Errorf("sessions under %d end", ended)
	}
}

// If the store already holds much evidence against a party, further evidence is not kept but still
// counts.
func TestMuchEvidence(t *testing.T) {
	p := newParty(t, strict)
	var file []byte
	for i := range uint32(perCulprit) {
		file = p.accuses(t, i+1)
		_, fresh, err := p.find(file)
		must(t, err)
		if !fresh {
			t.Errorf("file %d is known", i)
		}
	}
	if _, _, err := p.find(p.accuses(t, 100)); !errors.Is(err, vaulterr.ErrFull) {
		t.Errorf("one more file: %v", err)
	}
	if a, fresh, err := p.find(file); err != nil || fresh || a.When.IsZero() {
		t.Errorf("a known file: new %v, %v", fresh, err)
	}
	if len(p.cancelled) == 0 || !errors.Is(p.Admit(nil), &rpc.Error{Code: rpc.Excluded}) {
		t.Errorf("cancelled %q", p.cancelled)
	}
	all, err := p.Vault.Accusations()
	must(t, err)
	if len(all) != perCulprit {
		t.Errorf("%d accusations", len(all))
	}
}

// An accusation follows the convicted key: it applies in another roster with the same key, but not
// to the same name with another key.
func TestAccusationFollowsTheKey(t *testing.T) {
	p := newParty(t, strict)
	_, _, err := p.find(p.accuses(t, 1))
	must(t, err)
	other, err := devnet.Write(filepath.Join(t.TempDir(), "other"), devnet.Options{Parties: 3, Params: []string{"insecure-8"}, Dev: true, Insecure: true})
	must(t, err)
	open := func(change func(r *config.Roster)) error {
		c := p.Config
		r := *c.Roster
		r.Parties = slices.Clone(r.Parties)
		change(&r)
		c.Roster = &r
		b, err := Open(c)
		must(t, err)
		return b.Admit(nil)
	}
	moved := open(func(r *config.Roster) {
		r.Parties[1].SigningKey, r.Parties[2].SigningKey = r.Parties[2].SigningKey, r.Parties[1].SigningKey
	})
	if e := rpc.FromError(moved); e == nil || e.Code != rpc.Excluded || !strings.Contains(e.What, "party 1 (p1)") {
		t.Errorf("with the key at another index: %v", moved)
	}
	must(t, open(func(r *config.Roster) { r.Parties[2].SigningKey = other.Roster.Parties[2].SigningKey }))
}

// A peer's offers are rate-limited, and increasingly so if they prove nothing.
func TestOffersAreLimited(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	l := newLimits()
	for i := range offerBurst {
		if err := l.begin(now); err != nil {
			t.Fatalf("offer %d: %v", i, err)
		}
		if err := l.begin(now); err == nil || err.Code != rpc.Busy {
			t.Errorf("two concurrent offers: %v", err)
		}
		l.end(now, true)
	}
	if err := l.begin(now); err == nil || err.Code != rpc.RateLimited || err.Retry != offerEvery {
		t.Errorf("too many: %v", err)
	}
	now = now.Add(time.Hour)
	for pause := firstPause; pause < 2*mostPause; pause *= 2 {
		if err := l.begin(now); err != nil {
			t.Fatal(err)
		}
		l.end(now, false)
		want := min(pause, mostPause)
		if err := l.begin(now); err == nil || err.Code != rpc.RateLimited || err.Retry != want {
			t.Errorf("after a file that proves nothing: %v, want %s", err, want)
		}
		now = now.Add(want)
	}
	must(t, asError(l.begin(now)))
	l.end(now, true)
	must(t, asError(l.begin(now)))
}

func asError(e *rpc.Error) error {
	if e == nil {
		return nil
	}
	return e
}

// If a failure cannot be recorded, no session begins until it is recorded.
func TestFailureThatIsNotRecorded(t *testing.T) {
	p := newParty(t, strict)
	must(t, p.Vault.(*vault.Vault).Close())
	p.Ended(spec(1), round.Digest{}, &runner.Failure{Outcome: runner.Aborted, Check: "mac"})
	if err := p.Admit(nil); !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) {
		t.Errorf("a session begins: %v", err)
	}
	p.Found(&evidence.Finding{}, strings.NewReader("evidence")) // evidence that cannot be kept either
	if text := p.log.String(); !strings.Contains(text, "keeping evidence") || !strings.Contains(text, "cannot record a failed session") {
		t.Errorf("log: %s", text)
	}
}
