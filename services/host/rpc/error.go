package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
)

// Code is the stable machine-readable name of an error at the RPC boundary.
type Code string

// The codes. codesOf has the gRPC status code of each.
const (
	Unauthenticated Code = "unauthenticated"      // no usable certificate or token
	Forbidden       Code = "forbidden"            // this identity may not call this
	Invalid         Code = "invalid_request"      // a field is missing, malformed or out of range
	TooLarge        Code = "too_large"            // a message or request exceeds its limit
	PolicyRefused   Code = "policy_refused"       // this party's own job policy rejects the job
	RateLimited     Code = "rate_limited"         // allowed, but too often
	OverQuota       Code = "over_quota"           // allowed, but above the client's quota
	Busy            Code = "busy"                 // allowed, but too much work is running now
	PinMismatch     Code = "pin_mismatch"         // roster, parameters or protocol version differ from the pinned ones
	PassiveKeygen   Code = "passive_keygen"       // passively secure key generation is not allowed here
	KeyPurpose      Code = "key_purpose"          // the epoch was made for another purpose
	NotFound        Code = "not_found"            // no such job, session, epoch or batch
	Conflict        Code = "conflict"             // the name is in use with other content, or the object is in the wrong state
	Delivered       Code = "already_delivered"    // the batch or decryption was delivered to another client
	Taken           Code = "taken"                // the tuples belong to another reservation
	Expired         Code = "expired"              // the lease has ended
	OutOfStock      Code = "out_of_stock"         // too few tuples are in stock
	DiskLow         Code = "disk_low"             // too little disk space for new work
	CheckFailed     Code = "check_failed"         // stored data is damaged; an operator must act
	Quarantined     Code = "quarantined"          // the party's store was restored from a backup; its operator must act
	Stopped         Code = "stopped"              // too many sessions failed through unattributed cheats; an operator must act
	Excluded        Code = "excluded"             // evidence convicts a party; change the roster or pardon the party
	WrongQuorum     Code = "wrong_quorum"         // the parties are not a quorum of the keys, or not the quorum that decrypted before
	Foreign         Code = "foreign_ciphertext"   // the ciphertext belongs to other keys
	BadCiphertext   Code = "malformed_ciphertext" // the data is not a ciphertext of the parameter set
	BadProof        Code = "bad_proof"            // a proof of well-formedness does not verify
	UnknownKey      Code = "unknown_key"          // no party has published these multi-key keys
	RetiredKey      Code = "retired_key"          // their owner has retired these multi-key keys
	WrongOwner      Code = "wrong_owner"          // these multi-key keys belong to another party
	MaskSpent       Code = "mask_spent"           // a party of the quorum has already used the proposed masks
	ApprovalNeeded  Code = "approval_needed"      // other clients must approve the decryption first
	Burnt           Code = "burnt"                // the MAC key failed its check, or the epoch is retired
	Erased          Code = "erased"               // the data was used, discarded or revoked, and is erased
	SessionOver     Code = "session_over"         // the session has ended
	Unavailable     Code = "unavailable"          // not ready; try again
	TimedOut        Code = "timed_out"            // the deadline passed
	Cancelled       Code = "cancelled"            // the caller or the coordinator gave up
	Internal        Code = "internal"             // a fault of this process
)

// codesOf lists the codes by the gRPC status code that carries them. The first of a list is also
// the code of gRPC's own errors, except that gRPC itself has no reason for DataLoss and Aborted.
var codesOf = map[codes.Code][]Code{
	codes.Unauthenticated:   {Unauthenticated},
	codes.PermissionDenied:  {Forbidden},
	codes.InvalidArgument:   {Invalid, Foreign, BadCiphertext, WrongOwner, BadProof},
	codes.ResourceExhausted: {TooLarge, RateLimited, OverQuota, Busy, OutOfStock, DiskLow},
	codes.NotFound:          {NotFound, UnknownKey},
	codes.FailedPrecondition: {
		Conflict, PolicyRefused, PinMismatch, PassiveKeygen, KeyPurpose, Delivered, Taken, Expired, Quarantined, Stopped,
		Excluded, WrongQuorum, RetiredKey, ApprovalNeeded, Burnt, Erased, SessionOver,
	},
	codes.DataLoss:         {CheckFailed},
	codes.Aborted:          {MaskSpent},
	codes.Unavailable:      {Unavailable},
	codes.DeadlineExceeded: {TimedOut},
	codes.Canceled:         {Cancelled},
	codes.Internal:         {Internal},
}

// grpcCodes has the gRPC status code of each code.
var grpcCodes = func() map[Code]codes.Code {
	m := map[Code]codes.Code{}
	for status, list := range codesOf {
		for _, c := range list {
			m[c] = status
		}
	}
	return m
}()

// Error is the only error type at the RPC boundary, and survives the wire. Code is for programs,
// What and Next are for people. An Error never contains a secret.
type Error struct {
	Code Code
	What string // what happened, lowercase
	Next string // advice to the caller, or empty
	// Retry is the time after which the same call can succeed, counted from the response; 0 means
	// unknown.
	Retry time.Duration
}

// Errorf returns an Error with a formatted What.
func Errorf(code Code, next, format string, args ...any) *Error {
	return &Error{Code: code, What: fmt.Sprintf(format, args...), Next: next}
}

func (e *Error) Error() string {
	if e.Next == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.What)
	}
	return fmt.Sprintf("%s: %s (%s)", e.Code, e.What, e.Next)
}

// Is makes errors.Is compare codes, so that &Error{Code: c} is a sentinel.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.What == "" || t.What == e.What)
}

// GRPCStatus returns the gRPC status that carries the error.
func (e *Error) GRPCStatus() *status.Status {
	c, ok := grpcCodes[e.Code]
	if !ok {
		c = codes.Unknown
	}
	e = e.clipped() // the text may quote the caller's input
	s := status.New(c, e.Error())
	details := []protoadapt.MessageV1{&statusv1.ErrorDetail{Code: string(e.Code), What: e.What, Next: e.Next}}
	if e.Retry > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.Retry)})
	}
	detailed, err := s.WithDetails(details...)
	if err != nil {
		return s
	}
	return detailed
}

// FromError returns the Error of a failed call, converting gRPC's own errors; nil for nil.
func FromError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &Error{Code: TimedOut, What: "deadline exceeded"}
	case errors.Is(err, context.Canceled):
		return &Error{Code: Cancelled, What: "cancelled"}
	}
	s, ok := status.FromError(err)
	if !ok {
		return &Error{Code: Internal, What: err.Error()}
	}
	e := &Error{Code: fromGRPC(s.Code()), What: s.Message()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *statusv1.ErrorDetail:
			if _, known := grpcCodes[Code(d.GetCode())]; known { // a server must not invent codes: metrics use them as labels
				e.Code = Code(d.GetCode())
			}
			e.What, e.Next = d.GetWhat(), d.GetNext()
		case *errdetails.RetryInfo:
			e.Retry = max(d.GetRetryDelay().AsDuration(), 0)
		}
	}
	return e.clipped()
}

// maxText limits the texts of an error, in bytes, when it is sent and when it is received.
const maxText = 2000

func (e *Error) clipped() *Error {
	short := *e
	short.What, short.Next = clip(e.What), clip(e.Next)
	return &short
}

// clip shortens a text to maxText.
func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "..."
}

// fromGRPC returns the code for an error of gRPC itself.
func fromGRPC(c codes.Code) Code {
	if list := codesOf[c]; len(list) > 0 && c != codes.DataLoss && c != codes.Aborted {
		return list[0]
	}
	return Internal
}
