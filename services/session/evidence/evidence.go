// Package evidence records the signed messages of the parties of a session. When a party cheats,
// the package makes a file that proves the cheat to every reader who has the roster and no other
// information.
//
// A file proves that the holder of one signing key of the roster has signed a message that a party
// which follows the protocol never signs. The expected content of the message follows from the
// signature: an envelope names the session and the transcript of all earlier broadcasts, and their
// preimages are in the file. The accuser's own claims therefore do not count; if the accuser omits
// or changes anything, the file proves nothing. docs/security/evidence.md lists the statements.
package evidence

import (
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Kind is the kind of cheat that a file proves.
type Kind string

// The kinds of evidence.
const (
	Equivocation Kind = "equivocation"  // two versions of one broadcast
	WrongOpening Kind = "wrong-opening" // an opening that differs from its commitment
	BadProof     Kind = "bad-proof"     // a wrong proof of plaintext knowledge
	BadKeyProof  Kind = "bad-key-proof" // a wrong proof of a share of the keys
	Malformed    Kind = "malformed"     // a message that no honest party sends
	FalseEcho    Kind = "false-echo"    // a report of a broadcast that its sender has not signed
	WrongVerdict Kind = "wrong-verdict" // the acceptance of a result that is not the session's
)

// Party is a member of the roster.
type Party struct {
	Index round.Party
	Name  string
}

// Finding describes the cheat that a file proves, and its session.
type Finding struct {
	Kind    Kind
	Culprit Party
	// Accuser signed the file. Other parties may be able to make the same accusation.
	Accuser Party
	Check   string // the check that the accused party fails, as sessions name it
	Reason  string // lowercase, without secret values
	// Session and Protocol come from the accused party's signature.
	Session  round.Digest
	Protocol string
	Job      job.Ref
	// When is the time that the accuser claims, in UTC.
	When time.Time
}

func (f *Finding) String() string {
	return fmt.Sprintf("%s: party %d (%s) failed check %s in session %s: %s",
		f.Kind, f.Culprit.Index, f.Culprit.Name, f.Check, f.Job, f.Reason)
}

// Problem is the reason why a file proves nothing.
type Problem string

// The problems of a file.
const (
	Unreadable   Problem = "unreadable"    // not an accusation, or damaged
	OtherVersion Problem = "other-version" // of the format, or of the protocol
	OtherRoster  Problem = "other-roster"  // the parties are not those of this roster
	Unproven     Problem = "unproven"      // intact and about this roster, but without proof of its claim
)

// Error is the error of Verify for a file that proves nothing.
type Error struct {
	Problem Problem
	Reason  string // lowercase
	Cause   error  // may be nil
}

func (e *Error) Error() string { return fmt.Sprintf("evidence: %s: %s", e.Problem, e.Reason) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Cause }
