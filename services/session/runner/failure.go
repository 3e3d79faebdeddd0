package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Outcome is the way in which a session ended. It is used as a label of metrics and on the wire.
type Outcome string

// The outcomes.
const (
	OK        Outcome = "ok"
	Blamed    Outcome = "blame"      // a party is named for certain
	Aborted   Outcome = "abort"      // a check failed and no party can be named for certain
	PeerAbort Outcome = "peer_abort" // a peer ended the session first
	Timeout   Outcome = "timeout"
	Cancelled Outcome = "cancelled"
	Internal  Outcome = "internal" // this party's own fault
)

// CheckSignature is the check that a message's envelope is signed by its sender.
const CheckSignature = "signature"

// Failure describes why a session ended without a result.
type Failure struct {
	Outcome  Outcome
	Round    string // name of the round; empty before the first
	Index    int    // of the round
	Check    string // that failed, if one is named
	Reason   string // for people; without secrets
	Party    round.Party
	Suspects []round.Party // who was waited for, or may be at fault
	Words    []Word        // with PeerAbort: the peers' signed statements about how the session ended for them
	Cause    error         // with Internal: for this party's own log only
}

func (f *Failure) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "runner: %s", f.Outcome)
	if f.Outcome == Blamed {
		fmt.Fprintf(&b, " of party %d", f.Party)
	}
	if f.Round != "" {
		fmt.Fprintf(&b, " in round %s", f.Round)
	}
	if f.Check != "" {
		fmt.Fprintf(&b, ", check %s", f.Check)
	}
	fmt.Fprintf(&b, ": %s", f.Reason)
	return b.String()
}

// Word is a peer's signed statement of how a session ended for it.
type Word struct {
	exchange.Farewell
	Signature []byte
}

// Rejects reports whether the party states that one of these checks of its own failed.
func (w Word) Rejects(checks ...string) bool {
	return w.Outcome == string(Aborted) && slices.Contains(checks, w.Check)
}

// words returns the signed statements of a peer, including those that it relays.
func (d *driver) words(gone *exchange.AbortedError) (words []Word) {
	heard := map[round.Party]bool{}
	for _, said := range append([]*exchange.AbortedError{gone}, gone.Relayed...) {
		f := d.farewellOf(said, said.Peer)
		if heard[said.Peer] || !f.Verify(d.o.Keys[said.Peer], said.Signature) {
			continue
		}
		heard[said.Peer] = true
		words = append(words, Word{f, said.Signature})
	}
	return words
}

// farewellOf returns the content that a party signs about its end of the session.
func (d *driver) farewellOf(a *exchange.AbortedError, from round.Party) exchange.Farewell {
	return exchange.Farewell{
		Protocol: d.o.Terms.Protocol, Version: uint32(d.o.Terms.Version), Session: d.id, From: from,
		Outcome: a.Outcome, Round: a.Round, Check: a.Check, Reason: a.Reason, Blamed: a.Blamed,
	}
}

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Proto returns the failure's wire form, as reported by a party.
func (f *Failure) Proto(reporter round.Party) *jobv1.Failure {
	out := &jobv1.Failure{
		Outcome: string(f.Outcome), Round: f.Round, RoundIndex: uint32(f.Index),
		Check: f.Check, Reason: f.Reason, Reporter: uint32(reporter),
	}
	if f.Outcome == Blamed {
		out.Blame = &jobv1.Blame{Party: uint32(f.Party), Check: f.Check, Reason: f.Reason}
	}
	for _, p := range f.Suspects {
		out.Suspects = append(out.Suspects, uint32(p))
	}
	return out
}

// State returns the job state in which the failure ends a session.
func (f *Failure) State() jobv1.JobState {
	switch f.Outcome {
	case Timeout:
		return jobv1.JobState_JOB_STATE_TIMED_OUT
	case Cancelled:
		return jobv1.JobState_JOB_STATE_CANCELLED
	}
	return jobv1.JobState_JOB_STATE_FAILED
}

// classify makes a Failure of whatever ended the chain.
func (d *driver) classify(ctx context.Context, err error) *Failure {
	f := &Failure{Round: d.label, Index: d.index, Cause: err}
	var (
		ready *Failure
		blame *round.Blame
		abort *round.Abort
		gone  *exchange.AbortedError
		lost  *exchange.LostError
	)
	// The first two errors are more specific than the errors that wrap or cause them.
	switch {
	case errors.As(err, &ready):
		return ready
	case errors.As(err, &blame):
		f.Outcome, f.Party, f.Check, f.Reason = Blamed, blame.Party, blame.Check, blame.Reason
	case errors.As(err, &abort):
		f.Outcome, f.Check, f.Reason, f.Suspects = Aborted, abort.Check, abort.Reason, abort.Suspects
	case errors.As(err, &gone):
		f.Outcome, f.Check, f.Words = PeerAbort, gone.Check, d.words(gone)
		f.Reason = fmt.Sprintf("%s ended the session in round %s: %s: %s", d.name(gone.Peer), gone.Round, gone.Outcome, gone.Reason)
		f.Suspects = []round.Party{gone.Peer}
		if gone.Blamed != nil && *gone.Blamed != gone.Peer {
			f.Reason += fmt.Sprintf(" (it blames %s)", d.name(*gone.Blamed))
			f.Suspects = append(f.Suspects, *gone.Blamed)
		}
	case errors.As(err, &lost):
		f.Outcome, f.Check, f.Suspects = Aborted, lost.Check, []round.Party{lost.Peer}
		f.Reason = fmt.Sprintf("%s: %s", d.name(lost.Peer), lost.Reason)
		if lost.Check == exchange.CheckStalled {
			f.Outcome = Timeout
		}
	case errors.Is(context.Cause(ctx), context.DeadlineExceeded):
		f.Outcome, f.Reason = Timeout, "the session's deadline is over"
		f.Suspects = d.awaited()
	case ctx.Err() != nil:
		f.Outcome, f.Reason = Cancelled, context.Cause(ctx).Error()
	default:
		f.Outcome, f.Reason = Internal, "this party failed; its log says more"
	}
	return f
}
