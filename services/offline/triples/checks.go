package triples

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/maccheck"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/runner"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// name is how the session appears in the records of MAC keys.
func (r *run) name() string { return hex.EncodeToString(r.id[:]) }

// opening begins the MAC check unless the session has been cancelled.
func (r *run) opening() error {
	if err := r.opens(); err != nil {
		return err
	}
	return r.beginCheck()
}

// beginCheck records, for a stored MAC key, that this party is about to open its combinations of
// the MAC check.
func (r *run) beginCheck() error {
	r.opened = true
	if r.fresh {
		return nil // a key that was made in this session is gone with it
	}
	//lodge:check triples/check/begin [return=nil] [run=TestAPeerThatWithholds|TestAnEndBefore]
	//  values are opened before the check is recorded
	return r.unlessGone(r.recordBegin())
}

// recordBegin records durably that a check has begun, and audits a MAC key that this burns.
func (r *run) recordBegin() error {
	err := r.vault.BeginCheck(r.macID, r.name())
	if errors.Is(err, vaulterr.ErrCheckUnended) {
		r.note(audit.MACKeyBurnt, err.Error())
	}
	return err
}

// endCheck records how the check ended. err is how the session did.
func (r *run) endCheck(err error) error {
	if r.fresh || !r.opened {
		return nil
	}
	before, _ := r.vault.MACKey(r.macID) // for the audit log only: the end is recorded whether or not this can be read
	result := r.result(err)
	k, ended := r.vault.EndCheck(r.macID, r.name(), result)
	if ended != nil {
		r.Sessions.Log.Error("recording the end of a MAC check", "mac_key", r.macID, "error", ended)
		return ended
	}
	if result == keys.CheckPassed {
		return nil
	}
	r.Sessions.Log.Warn("a MAC check failed or did not end", "mac_key", r.macID, "session", r.name(), "failed", k.Failed, "state", string(k.State))
	r.note(audit.MACCheckFailed, fmt.Sprintf("session %s: %v", r.name(), err))
	if k.State == before.State {
		return nil
	}
	switch k.State {
	case keys.MACRetired:
		r.note(audit.MACKeyRetired, k.Reason)
	case keys.MACBurnt:
		r.note(audit.MACKeyBurnt, k.Reason)
	}
	return nil
}

// result is how the check of a session with this end counts. A peer that sees the other parties'
// openings and then ends the session knows as much as after a failure, so a check without a result
// counts too. Once the own check has passed there is nothing more to learn under proved keys. Under
// other keys, only a batch that all parties accept leaves the key unaffected.
func (r *run) result(err error) keys.CheckResult {
	switch {
	case err == nil:
		return keys.CheckPassed
	//lodge:check triples/check/rejected [drop=rejected(err)] [run=TestHowAnEnd] a peer's signed
	//  rejection is not counted
	case failedHere(err) || rejected(err):
		return keys.CheckFailed
	//lodge:check triples/check/proved [drop=r.proved] [run=TestHowAnEnd|TestABatchIsReleased] under
	//  unproved keys, a batch that not all parties accept leaves the MAC key unharmed
	case r.passed && r.proved:
		return keys.CheckPassed
	}
	//lodge:check triples/check/unfinished [return=keys.CheckPassed]
	//  [run=TestHowAnEnd|TestAPeerThatWithholds] a check that does not end is not counted
	return keys.CheckUnfinished
}

// note writes an entry about the MAC key into the audit log. A failure to do so is logged: the
// record in the vault decides.
func (r *run) note(event audit.Event, why string) {
	if r.audit == nil {
		return
	}
	e := audit.Entry{Event: event, Tenant: r.spec.GetTenant(), Objects: []string{"mac_key/" + r.macID}, Note: audit.Printable(why)}
	if _, err := r.audit.Append(e); err != nil {
		r.Sessions.Log.Error("writing the audit log", "mac_key", r.macID, "error", err)
	}
}

// unlessGone says of an error of the vault that the MAC key was burnt or retired in another
// session, if it was.
func (r *run) unlessGone(err error) error {
	if err == nil || r.fresh {
		return err
	}
	if k, found := r.vault.MACKey(r.macID); found == nil && (k.State == keys.MACBurnt || k.State == keys.MACRetired) {
		return session.Refuse(rpc.Errorf(rpc.Burnt, "submit the job again", "the MAC key was %s meanwhile: %s", k.State, k.Reason))
	}
	return err
}

// verdicts are the checks whose failure drops a batch and names nobody.
//
//lodge:check triples/check/failed [drop=maccheck.CheckZero] [drop=maccheck.CheckSacrifice] [run=TestHowAnEnd|TestOnlyTheOwn] failed checks other than the MAC check are not counted
var verdicts = []string{maccheck.CheckMAC, maccheck.CheckZero, maccheck.CheckSacrifice}

// failedHere reports whether this party's own MAC check failed.
func failedHere(err error) bool {
	var f *runner.Failure
	return errors.As(err, &f) && f.Outcome == runner.Aborted && slices.Contains(verdicts, f.Check)
}

// rejected reports whether another party has signed that its MAC check failed.
func rejected(err error) bool {
	var f *runner.Failure
	return errors.As(err, &f) && slices.ContainsFunc(f.Words, func(w runner.Word) bool { return w.Rejects(verdicts...) })
}
