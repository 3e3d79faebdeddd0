// Package accusations keeps a party's record of the cheats of its peers, and enforces the
// consequences.
//
// There are two kinds of entries. An accusation has evidence: a file of messages that the accused
// party has signed and that no party signs that follows the protocol. It counts if this party
// verifies it, whatever its source; the word of a peer never counts. Parties exchange their
// evidence, so that all parties that follow the protocol convict the same party. By default a
// convicted party is excluded: no session begins with it, and its calls are refused, until the
// roster changes or an operator pardons it.
//
// A failure is unnamed if a session ended because of a cheat that several parties may have
// committed, such as a failed MAC check. If too many occur within a period, generation with the
// roster stops until an operator clears them. Successful sessions in between change nothing: a
// party that cheats in every tenth session is caught like one that cheats in every session. A
// peer's signed statement that its own check failed counts too; if it is a lie, one of the suspects
// has cheated as well.
//
// Entries survive restarts, and a restore of the store from a backup.
package accusations

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Verify returns the finding that a file proves to a reader who has only the roster;
// evidence.Verify is an implementation. Its error is an *evidence.Error if the file proves nothing.
type Verify func(ctx context.Context, file io.Reader, r *config.Roster) (*evidence.Finding, error)

// Config configures a book.
type Config struct {
	Vault   Vault
	Audit   *audit.Log
	Metrics *metrics.Metrics
	Log     *slog.Logger
	Roster  *config.Roster
	Self    round.Party
	Policy  config.Accusations
	Verify  Verify
	Peers   []rpc.PeerConn // by index; its own entry is not used
	// CancelAll ends the running sessions; DrainEpoch drains an epoch and ends the sessions under
	// it.
	CancelAll  func(reason string)
	DrainEpoch func(ctx context.Context, epoch uint64, reason string)
}

// Book is a party's record of accusations and failures. It is safe for concurrent use.
type Book struct {
	Config
	roster [32]byte

	excluded atomic.Pointer[map[round.Party]conduct.Accusation]
	reading  sync.Mutex // serialises readers of the accusations
	limits   []*limits  // for the peers' offers
	wake     chan struct{}
	// receiving has an entry while a peer's file is received and verified.
	receiving chan struct{}

	mu   sync.Mutex
	late []conduct.Unnamed // not recorded yet
}

// perCulprit limits the accusations of one signing key: one is enough to exclude its holder.
const perCulprit = 16

// Open opens the book in a vault.
func Open(c Config) (*Book, error) {
	//lodge:check accusations/offer/one [swap=receiving: make(chan struct{}, 1)=>receiving:
	//  make(chan struct{}, 100)] [run=TestOffer] many files are verified at a time
	b := &Book{Config: c, roster: c.Roster.Hash(), wake: make(chan struct{}, 1), receiving: make(chan struct{}, 1)}
	for _, check := range checks {
		c.Metrics.Count(metrics.UnnamedFailures, 0, check)
	}
	for range c.Roster.Parties {
		b.limits = append(b.limits, newLimits())
	}
	return b, b.read()
}

func (b *Book) name(p round.Party) string { return b.Roster.Parties[p].Name }

func (b *Book) names(list []round.Party) []string {
	out := make([]string, len(list))
	for i, p := range list {
		out[i] = b.name(p)
	}
	return out
}

// peers returns all parties except this one.
func (b *Book) peers() (list []round.Party) {
	for p := range round.Party(len(b.Roster.Parties)) {
		if p != b.Self {
			list = append(list, p)
		}
	}
	return list
}

// convicts returns the party of the present roster that holds the accused key. It returns false if
// there is none or the accusation was pardoned.
func (b *Book) convicts(a *conduct.Accusation) (round.Party, bool) {
	for i, m := range b.Roster.Parties {
		//lodge:check accusations/convicts/key [swap=m.SigningKey == a.Key=>m.Name == a.Culprit]
		//  [run=TestAccusationFollows] a conviction follows a name instead of a signing key
		if m.SigningKey == a.Key {
			//lodge:check accusations/convicts/pardon [swap=a.Pardon == nil=>true] [run=TestPardon]
			//  a pardoned party stays excluded
			return round.Party(i), a.Pardon == nil
		}
	}
	return 0, false
}

// read loads the excluded parties from the vault, and sets the metrics.
func (b *Book) read() error {
	b.reading.Lock()
	defer b.reading.Unlock()
	all, err := b.Vault.Accusations()
	if err != nil {
		return err
	}
	proven, out := 0, map[round.Party]conduct.Accusation{}
	for _, a := range all {
		p, convicted := b.convicts(&a)
		if !convicted {
			continue
		}
		proven++
		//lodge:check accusations/convicts/policy [drop=b.Policy.OnProvenCheat == config.Exclude]
		//  [run=TestPardon] a convicted party is excluded against the policy
		if first, ok := out[p]; b.Policy.OnProvenCheat == config.Exclude && (!ok || a.When.Before(first.When)) {
			out[p] = a
		}
	}
	b.excluded.Store(&out)
	c, err := b.Vault.Conduct(b.roster)
	if err != nil {
		return err
	}
	failures, err := b.counted()
	if err != nil {
		return err
	}
	b.Metrics.Set(metrics.Accusations, float64(proven))
	b.Metrics.Set(metrics.Excluded, float64(len(out)))
	b.Metrics.Set(metrics.Unnamed, float64(failures))
	b.Metrics.SetIf(metrics.Stopped, c.Stopped != nil)
	return nil
}

// counted returns the number of failures that count now.
func (b *Book) counted() (int, error) {
	all, err := b.Vault.UnnamedFailures(b.roster)
	return b.tolerance().Counted(all, b.Vault.Now()), err
}

func (b *Book) tolerance() conduct.Tolerance {
	return conduct.Tolerance{Most: b.Policy.MaxUnnamedFailures, Within: time.Duration(b.Policy.Within)}
}

// reread calls read after a recorded change; if it fails, the next start loads the change.
func (b *Book) reread() {
	if err := b.read(); err != nil {
		b.Log.Error("reading accusations", "error", err)
	}
}

// Excluded returns the error for requests of an excluded party, or nil if the party is not
// excluded.
func (b *Book) Excluded(p round.Party) error {
	a, excluded := (*b.excluded.Load())[p]
	if !excluded {
		return nil
	}
	next := fmt.Sprintf("`lodge accusations show %s --party %s` shows the cheat; remove the party from every party's roster, "+
		"or pardon it with `lodge accusations pardon %s`", a.ID, b.name(b.Self), a.ID)
	return rpc.Errorf(rpc.Excluded, next, "party %d (%s) is excluded: accusation %s proves that it cheated (%s, check %s)",
		p, b.name(p), a.ID, a.Kind, a.Check)
}

// Admit implements session.Conduct.
func (b *Book) Admit(spec *jobv1.SessionSpec) error {
	group := job.Participants(spec)
	for p := range round.Party(len(b.Roster.Parties)) {
		if len(group) > 0 && !slices.Contains(group, uint32(p)) {
			continue
		}
		//lodge:check accusations/admit/excluded [run=TestMuchEvidence] a session starts with a
		//  convicted party
		if err := b.Excluded(p); err != nil {
			return err
		}
	}
	//lodge:check accusations/admit/late [run=TestFailureThatIsNotRecorded] a session starts before
	//  an earlier failure is recorded
	if err := b.catchUp(); err != nil {
		return rpc.Errorf(rpc.Unavailable, "check this party's log", "this party could not record a failed session yet")
	}
	c, err := b.Vault.Conduct(b.roster)
	if err != nil {
		return err
	}
	//lodge:check accusations/admit/stopped [return=nil] [run=TestStop] generation continues after
	//  too many failures
	return b.stopped(c)
}

// stopped returns the error for sessions after too many failures, or nil.
func (b *Book) stopped(c conduct.Conduct) error {
	s := c.Stopped
	if s == nil {
		return nil
	}
	self := b.name(b.Self)
	next := fmt.Sprintf("`lodge accusations list --party %s` lists them; find the cause, and then run "+
		"`lodge accusations clear --party %s` at every party that has stopped", self, self)
	return rpc.Errorf(rpc.Stopped, next, "generation is stopped since %s: %d unnamed failures (checks %s), suspects %s",
		s.When.Format(time.RFC3339), s.Failures, strings.Join(s.Checks, ", "), strings.Join(s.Suspects, ", "))
}

// Ended implements session.Conduct.
func (b *Book) Ended(spec *jobv1.SessionSpec, id round.Digest, f *runner.Failure) {
	check, ok := unnamed(f)
	if !ok {
		return
	}
	//lodge:check accusations/ended/peers [drop=f.Outcome == runner.PeerAbort] [run=TestWhatCounts]
	//  the report of a peer clears parties that may have caused the failure
	//lodge:check accusations/ended/everybody [drop=len(f.Suspects) == 0] [run=TestWhatCounts] a
	//  failure without suspects counts against nobody
	if f.Outcome == runner.PeerAbort || len(f.Suspects) == 0 {
		f.Suspects = b.peers() // a peer that reports a failed check may lie, or any other party may have deceived it
		if group := job.Participants(spec); len(group) > 0 {
			f.Suspects = slices.DeleteFunc(f.Suspects, func(p round.Party) bool { return !slices.Contains(group, uint32(p)) })
		}
	}
	others := slices.DeleteFunc(slices.Clone(f.Suspects), func(p round.Party) bool { return p == b.Self }) // this party does not suspect itself
	u := conduct.Unnamed{
		Roster: b.roster, Job: session.Name(spec.GetRef()), Session: hex.EncodeToString(id[:]), Epoch: spec.GetEpoch(),
		Check: check, Reason: f.Reason, Suspects: b.names(others),
	}
	//lodge:check accusations/ended/sacrifice [run=TestSacrifice] keys that gave wrong products are
	//  used again
	//lodge:check accusations/ended/sacrifice-here [drop=f.Outcome == runner.Aborted]
	//  [run=TestSacrifice] one peer's report retires keys
	if f.Outcome == runner.Aborted && check == checkSacrifice { // every party sees a failed sacrifice, so a peer's report is not needed and could be a lie
		u.Drains = "a sacrifice failed in session " + u.Job + ": its evaluation keys are suspect"
	}
	b.mu.Lock()
	//lodge:check accusations/ended/notes [run=TestWhatCounts] failures are not counted
	b.late = append(b.late, u)
	b.mu.Unlock()
	if err := b.catchUp(); err != nil {
		b.Log.Error("cannot record a failed session: no session begins until it is recorded", "session", u.Job, "error", err)
	}
}

// catchUp records the failures that are not recorded yet.
func (b *Book) catchUp() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.late) > 0 {
		if err := b.note(b.late[0]); err != nil {
			return err
		}
		b.late = b.late[1:]
	}
	return nil
}

func (b *Book) note(u conduct.Unnamed) error {
	before, err := b.Vault.Conduct(b.roster)
	if err != nil {
		return err
	}
	c, suspect, err := b.Vault.NoteUnnamed(u, b.tolerance())
	if err != nil {
		return err
	}
	if suspect {
		b.audit(audit.Entry{Event: audit.EpochDrained, Objects: []string{fmt.Sprintf("epoch/%d", u.Epoch)}, Note: u.Drains})
		go b.DrainEpoch(context.Background(), u.Epoch, u.Drains) // asynchronous, because this session is under the epoch and has not ended yet
	}
	text := fmt.Sprintf("check %s, suspects %s: %s", u.Check, strings.Join(u.Suspects, " "), u.Reason)
	b.audit(audit.Entry{Event: audit.Unnamed, Objects: []string{"session/" + u.Job}, Note: text})
	b.Log.Warn("a session failed because of a cheat, but the cheating party is unknown", "session", u.Job, "check", u.Check, "suspects", u.Suspects)
	b.Metrics.Count(metrics.UnnamedFailures, 1, u.Check)
	if err := b.stopped(c); err != nil && before.Stopped == nil {
		b.audit(audit.Entry{Event: audit.Stopped, Note: rpc.FromError(err).What})
		b.Log.Error(rpc.FromError(err).What)
	}
	b.reread()
	return nil
}

// audit appends an entry, or logs the error if that fails.
func (b *Book) audit(e audit.Entry) {
	e.Note = audit.Printable(e.Note)
	if _, err := b.Audit.Append(e); err != nil {
		b.Log.Error("audit log", "event", e.Event, "error", err)
	}
}

// Found handles evidence from a session that failed here. It counts only for what it proves to
// every reader.
func (b *Book) Found(found *evidence.Finding, file io.Reader) {
	_, _, err := b.Accuse(context.Background(), file)
	switch {
	case errors.Is(err, vaulterr.ErrFull):
		b.Log.Warn("more evidence is not kept", "party", found.Culprit.Name, "session", found.Job.String(), "error", err)
	case err != nil:
		b.Log.Error("keeping evidence", "party", found.Culprit.Name, "session", found.Job.String(), "error", err)
	}
}

// Accuse stores a file of evidence if it proves a cheat of a party of the roster, and enforces the
// consequences. It reports whether the accusation is new; its error is an *evidence.Error if the
// file proves nothing.
func (b *Book) Accuse(ctx context.Context, file io.Reader) (a conduct.Accusation, fresh bool, err error) {
	e, err := b.Vault.NewEvidence()
	if err != nil {
		return a, false, err
	}
	defer e.Abort()
	if _, err := io.Copy(e, file); err != nil {
		return a, false, err
	}
	return b.convict(ctx, e, "")
}

// convict verifies stored evidence from a peer or from this party itself.
func (b *Book) convict(ctx context.Context, e *conduct.Evidence, from string) (a conduct.Accusation, fresh bool, err error) {
	if a, err = b.Vault.Accusation(e.ID()); err == nil {
		return a, false, nil
	}
	f, err := b.verified(ctx, e)
	//lodge:check accusations/convict/verified [as=if err != nil { f = &evidence.Finding{Culprit:
	//  evidence.Party{Index: 2}} }] [run=TestWhatProvesNothing] a file convicts without
	//  verification
	if err != nil {
		return a, false, err
	}
	culprit := f.Culprit.Index
	a = conduct.Accusation{
		Roster: b.roster, Culprit: b.name(culprit), Key: b.Roster.Parties[culprit].SigningKey, Kind: string(f.Kind), Check: f.Check,
		Reason: f.Reason, Session: hex.EncodeToString(f.Session[:]), Job: session.Name(f.Job.Proto()), From: from,
	}
	fresh, err = b.Vault.Accuse(a, e, conduct.EvidenceRoom{Bytes: uint64(b.Policy.MaxEvidence), PerCulprit: perCulprit})
	if err != nil {
		return a, false, err
	}
	if a, err = b.Vault.Accusation(e.ID()); err != nil || !fresh {
		return a, false, err
	}
	b.audit(audit.Entry{
		Event: audit.Accused, Actor: from, Objects: []string{"accusation/" + a.ID},
		Note: fmt.Sprintf("party %d (%s), %s, check %s: %s", culprit, a.Culprit, f.Kind, f.Check, f.Reason),
	})
	b.Log.Error("a party has cheated, and that is proved", "party", a.Culprit, "kind", a.Kind, "check", a.Check,
		"accusation", a.ID, "from", from)
	//lodge:check accusations/convict/at-once [run=TestMuchEvidence] a convicted party is excluded
	//  only after a restart
	b.reread()
	//lodge:check accusations/convict/cancels [run=TestMuchEvidence] sessions with a convicted party
	//  go on
	if err := b.Excluded(culprit); err != nil {
		b.CancelAll(rpc.FromError(err).What)
	}
	b.poke()
	return a, true, nil
}

// verified commits evidence and returns the finding.
func (b *Book) verified(ctx context.Context, e *conduct.Evidence) (*evidence.Finding, error) {
	if err := e.Commit(); err != nil {
		return nil, err
	}
	in, err := e.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := b.Verify(ctx, in, b.Roster)
	//lodge:check accusations/convict/roster [run=TestWhatProvesNothing] a file convicts a party
	//  outside the roster
	if err == nil && (f.Culprit.Index < 0 || int(f.Culprit.Index) >= len(b.Roster.Parties)) {
		err = &evidence.Error{Problem: evidence.OtherRoster, Reason: "it accuses no party of the roster"}
	}
	return f, err
}
