package vaulterr

import (
	"errors"
	"strings"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// rule translates one error of the vault.
type rule struct {
	err  error
	code rpc.Code
	next string
	text string // after the name of the object; if empty, the text of the error
}

// rules apply in order: an error that wraps another stands before it.
var rules = []rule{
	{ErrTaken, rpc.Taken, "reserve other tuples", "asks for tuples of another reservation"},
	{ErrRange, rpc.Invalid, "", ""},
	{ErrMasks, rpc.Invalid, "", ""},
	{ErrGone, rpc.Erased, "reserve again", "has tuples that were used, discarded or revoked, and are erased"},
	{ErrExpired, rpc.Expired, "request it again", "has expired"},
	{ErrWithdrawn, rpc.Conflict, "reserve again", "was withdrawn before it was fetched"},
	{ErrNotFound, rpc.NotFound, "", "does not exist at this party"},
	{ErrExists, rpc.Conflict, "", "exists already"},
	{ErrErased, rpc.Burnt, "", "is erased"},
	{ErrDelivered, rpc.Delivered, "a party delivers tuples and answers to one client only", "went to another client"},
	{ErrSpent, rpc.Burnt, "generate new keys: `lodge jobs submit --kind keys`", ""},
	{ErrQuarantine, rpc.Quarantined, "the operator runs `lodge store quarantine` at this party", ""},
	{ErrRoster, rpc.PinMismatch, "`lodge keys rotate` makes an epoch under the present roster", ""},
	{ErrQuorum, rpc.WrongQuorum, "use that quorum, or encrypt again", ""},
	{ErrReleased, rpc.Conflict, "encrypt it again",
		"has a ciphertext whose answer has left this party, and another party of the quorum has lost its own answer"},
	{ErrApproval, rpc.ApprovalNeeded, "have other clients approve it first", ""},
	{ErrOwn, rpc.Forbidden, "another client must approve it", "is this client's own"},
	{ErrWaiting, rpc.RateLimited, "have some requests approved, or let them expire", ""},
	{ErrState, rpc.Conflict, "", "is not in a state that allows this"},
}

// RPC translates an error of the vault about an object, such as "epoch 3", into an error with a
// code and a next step for the caller of an RPC. It returns any other error as it is.
func RPC(err error, object string) error {
	for _, r := range rules {
		if !errors.Is(err, r.err) {
			continue
		}
		if r.text != "" {
			return rpc.Errorf(r.code, r.next, "%s %s", object, r.text)
		}
		text := strings.TrimPrefix(err.Error(), "vault: ")
		return rpc.Errorf(r.code, r.next, "%s: %s", object, text)
	}
	return err
}
