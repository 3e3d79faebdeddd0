// Package vaulterr holds the errors of a party's vault, and RPC, the one translation of them for
// the callers of RPCs.
package vaulterr

import (
	"errors"
	"fmt"
)

// Errors of opening, sealing and storing.
var (
	ErrWrongKey = errors.New("vault: the key file is not the one that this vault was made with")
	ErrCorrupt  = errors.New("vault: stored data does not authenticate")
	ErrNotFound = errors.New("vault: not found")
	ErrExists   = errors.New("vault: exists already")
	ErrState    = errors.New("vault: the state does not allow this")
	ErrErased   = errors.New("vault: erased")
	ErrRange    = errors.New("vault: out of range")
	// ErrBackup rejects a stream that is not a backup, or is damaged.
	ErrBackup = errors.New("vault: not a backup, or damaged")
	// ErrQuarantine rejects an operation because the store may be an old copy.
	ErrQuarantine = errors.New("vault: in quarantine")
	// ErrRolledBack reports that an old copy of a peer's store was put back.
	ErrRolledBack = errors.New("vault: the peer's store is an old copy")
)

// Errors about keys.
var (
	// ErrRoster rejects keys that were made under another roster than the present one.
	ErrRoster = errors.New("vault: made under another roster")
	ErrSpent  = errors.New("vault: the key has decrypted its limit of ciphertexts")
	// ErrCheckUnended reports that BeginCheck burnt a MAC key under unproved keys, because the end
	// of an earlier check was not recorded: that check may have revealed the key.
	ErrCheckUnended = fmt.Errorf("%w: an earlier MAC check has no recorded end", ErrState)
)

// Errors about tuples and masks.
var (
	// ErrGone wraps ErrErased: the tuples themselves were used, not only their keys erased.
	ErrGone      = fmt.Errorf("%w: tuples that were used, discarded or revoked", ErrErased)
	ErrDelivered = errors.New("vault: delivered to, or reserved for, another client")
	ErrTaken     = errors.New("vault: tuples belong to another reservation")
	ErrExpired   = errors.New("vault: expired")
	ErrWithdrawn = errors.New("vault: withdrawn")
	// ErrMasks rejects masks where tuples are needed, and tuples where masks are needed.
	ErrMasks = errors.New("vault: masks are only for threshold decryption, which uses no tuples")
)

// Errors about decryptions, approvals and budgets.
var (
	// ErrQuorum rejects a ciphertext that is decrypted with another quorum; the error is a
	// *ledger.QuorumError.
	ErrQuorum = errors.New("vault: decrypted with another quorum")
	// ErrReleased rejects a new run for a ciphertext whose answer may have left this party.
	ErrReleased = errors.New("vault: the answer has left this party")
	ErrApproval = errors.New("vault: not approved")
	ErrOwn      = errors.New("vault: a client cannot approve its own request")
	ErrWaiting  = errors.New("vault: too many requests wait for approval")
	// ErrDistance rejects a product that exceeds the budget of statistical distance; the error is a
	// *ledger.DistanceError.
	ErrDistance = errors.New("vault: the budget of statistical distance is used up")
)

// ErrFull rejects more evidence than the vault may keep.
var ErrFull = errors.New("vault: the evidence exceeds its storage limit")
