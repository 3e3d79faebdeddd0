// Package evidence keeps what a session's parties have signed, and makes of it, when one of them cheats, a file that proves
// the cheat to anybody who has the roster and nothing else.
//
// A file proves that the holder of one signing key of the roster has signed what no party signs that follows the protocol.
// What it must have signed follows from what it has signed: an envelope names the session and the transcript of all broadcasts
// before it, and their preimages are in the file. So nothing counts that the accuser says; whatever it leaves out or changes
// makes the file prove nothing. docs/security/evidence.md has the statements one by one.
package evidence

import (
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/job"
)

// Kind is what a file proves.
type Kind string

// The kinds.
const (
	Equivocation Kind = "equivocation"  // two versions of one broadcast
	WrongOpening Kind = "wrong-opening" // an opening that is not what was committed to
	BadProof     Kind = "bad-proof"     // of plaintext knowledge
	BadKeyProof  Kind = "bad-key-proof" // of a share of the keys
	Malformed    Kind = "malformed"     // a message that no party sends
	FalseEcho    Kind = "false-echo"    // a report of a broadcast that its sender has not signed
	WrongVerdict Kind = "wrong-verdict" // the acceptance of something else than the session's result
)

// Party is a member of the roster.
type Party struct {
	Index round.Party
	Name  string
}

// Finding is what a file proves, and of which session.
type Finding struct {
	Kind    Kind
	Culprit Party
	// Accuser has signed the file. It need not be the only one who could.
	Accuser Party
	Check   string // that the culprit fails, as sessions name it
	Reason  string // lowercase, without secret values
	// Session and Protocol are those of the culprit's signature.
	Session  round.Digest
	Protocol string
	Job      job.Ref
	// When the accuser says that it was, in UTC.
	When time.Time
}

func (f *Finding) String() string {
	return fmt.Sprintf("%s: party %d (%s) failed check %s in session %s: %s",
		f.Kind, f.Culprit.Index, f.Culprit.Name, f.Check, f.Job, f.Reason)
}

// Problem says why a file proves nothing.
type Problem string

// The problems.
const (
	Unreadable   Problem = "unreadable"    // not an accusation, or damaged
	OtherVersion Problem = "other-version" // of the format, or of the protocol
	OtherRoster  Problem = "other-roster"  // of parties that are not those of this roster
	Unproven     Problem = "unproven"      // whole, and about this roster, but no proof of what it claims
)

// Error is the error of Verify for a file that proves nothing.
type Error struct {
	Problem Problem
	Reason  string // lowercase
	Cause   error  // may be nil
}

func (e *Error) Error() string { return fmt.Sprintf("evidence: %s: %s", e.Problem, e.Reason) }

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
