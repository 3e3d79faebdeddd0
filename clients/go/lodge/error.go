package lodge

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
)

// Code is the stable identifier of an error.
type Code string

// Error codes of this client. A server may have more; the text of an error explains it too.
const (
	Unauthenticated Code = "unauthenticated"   // no usable certificate
	Forbidden       Code = "forbidden"         // this client may not do this
	Invalid         Code = "invalid_request"   // something is missing, malformed or out of range
	TooLarge        Code = "too_large"         // a message or request beyond its bound
	PolicyRefused   Code = "policy_refused"    // a policy says no
	RateLimited     Code = "rate_limited"      // allowed, but not so often; may be retried
	OverQuota       Code = "over_quota"        // more than this client may have
	Busy            Code = "busy"              // allowed, but not concurrently with the present work; may be retried
	NotFound        Code = "not_found"         // does not exist or belongs to another tenant
	Conflict        Code = "conflict"          // the same name with different content, or the wrong state
	Delivered       Code = "already_delivered" // the reservation went to another client
	Expired         Code = "expired"           // the lease has ended
	OutOfStock      Code = "out_of_stock"      // there are not enough tuples
	DiskLow         Code = "disk_low"          // a process has too little disk space for new work; try again when its operator has freed some
	CheckFailed     Code = "check_failed"      // what a process has stored is damaged; its operator must act
	Quarantined     Code = "quarantined"       // the party's store was restored from a backup; its operator must check it
	Stopped         Code = "stopped"           // too many sessions failed without blame; a party's operator must act
	Excluded        Code = "excluded"          // evidence convicts a party; the roster must change, or an operator pardon it
	KeyPurpose      Code = "key_purpose"       // keys for one purpose cannot be used for another
	Burnt           Code = "burnt"             // the MAC key is burnt, or its epoch retired
	Erased          Code = "erased"            // the tuples were used, discarded or revoked, and are erased
	Unavailable     Code = "unavailable"       // not ready or not reachable; may be retried
	TimedOut        Code = "timed_out"         // the deadline passed; may be retried
	Cancelled       Code = "cancelled"         // the caller gave up
	Internal        Code = "internal"          // a fault of the server
	// BadShares is set by this package: the received shares differ from the party's description.
	BadShares Code = "bad_shares"
)

// Error is the error type of every call of this package. Code is for programs, What and Next are
// for people. None of them contains a secret.
type Error struct {
	Code Code
	What string // what happened
	Next string // what to do about it, or empty
}

// Errorf returns an error with a formatted What. next may be empty.
func Errorf(code Code, next, format string, args ...any) *Error {
	return &Error{Code: code, What: fmt.Sprintf(format, args...), Next: next}
}

func (e *Error) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("lodge: %s: %s", e.Code, e.What)
	}
	return fmt.Sprintf("lodge: %s: %s (%s)", e.Code, e.What, e.Next)
}

// Is makes errors.Is compare codes: errors.Is(err, &lodge.Error{Code: lodge.OutOfStock}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.What == "" || t.What == e.What)
}

// Retry reports whether the same call may succeed later. The client has already retried for the
// duration of its patience.
func (e *Error) Retry() bool {
	switch e.Code {
	case Unavailable, TimedOut, Busy, RateLimited:
		return true
	}
	return false
}

// ofGRPC returns the code of an error from gRPC itself.
var ofGRPC = map[codes.Code]Code{
	codes.Unauthenticated: Unauthenticated, codes.PermissionDenied: Forbidden, codes.InvalidArgument: Invalid, codes.ResourceExhausted: TooLarge,
	codes.NotFound: NotFound, codes.FailedPrecondition: Conflict, codes.Unavailable: Unavailable, codes.DeadlineExceeded: TimedOut,
	codes.Canceled: Cancelled,
}

// FromError returns the Error of a call, or nil for nil.
func FromError(err error) *Error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	s, ok := status.FromError(err)
	if !ok {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return &Error{Code: TimedOut, What: "the deadline passed"}
		case errors.Is(err, context.Canceled):
			return &Error{Code: Cancelled, What: "cancelled"}
		}
		return &Error{Code: Internal, What: err.Error()}
	}
	for _, d := range s.Details() {
		if d, ok := d.(*statusv1.ErrorDetail); ok && d.GetCode() != "" {
			return &Error{Code: Code(d.GetCode()), What: d.GetWhat(), Next: d.GetNext()}
		}
	}
	code, ok := ofGRPC[s.Code()]
	if !ok {
		code = Internal
	}
	return &Error{Code: code, What: s.Message()}
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 3 * time.Second
)

// pauses are the increasing delays between attempts.
type pauses struct {
	next  time.Duration
	until time.Time
	last  *Error // from the server
}

func (c *Client) pause() *pauses {
	return &pauses{next: firstPause, until: time.Now().Add(c.patience)}
}

// after waits after a failure if a further attempt can succeed; otherwise it returns the final
// error.
func (p *pauses) after(ctx context.Context, err *Error) *Error {
	if ctx.Err() != nil {
		if end := FromError(ctx.Err()); err.Code == end.Code && p.last != nil {
			err = p.last
		}
		return ended(ctx, err)
	}
	p.last = err
	wait := p.next/2 + rand.N(p.next)
	if !err.Retry() || time.Now().Add(wait).After(p.until) {
		return err
	}
	p.next = min(2*p.next, maxPause)
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return ended(ctx, err)
	}
}

// ended returns the error for the end of ctx, with the failure before it.
func ended(ctx context.Context, err *Error) *Error {
	out := *FromError(ctx.Err())
	if err.Code != out.Code && err.Code != Cancelled {
		out.What += "; before that: " + err.Error()
	}
	out.Next = err.Next
	return &out
}
