package ledger

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A party may want others to approve a client's request for decryption first. The request waits
// until enough of them have, each known by the name of a client, or until it expires. An approval
// is used only once, in the transaction that records the answers. No backup has approvals, and none
// outlives a quarantine.
const (
	ApprovalPrefix = "approval/"

	// MaxWaiting requests of a client wait for approval, or have it and are not used.
	MaxWaiting = 100
	// MaxApprovalTime is how long from now a request may wait.
	MaxApprovalTime = 30 * 24 * time.Hour

	MaxNote = 1000 // bytes
)

// Approval is a client's request for decryption, with the clients that have approved it.
type Approval struct {
	Digest   [32]byte  `json:"digest"` // of the whole request
	Epoch    uint64    `json:"epoch"`
	Client   string    `json:"client"` // the requesting client
	Messages uint64    `json:"messages"`
	Note     string    `json:"note,omitempty"`
	Needs    int       `json:"needs"` // number of clients that must approve
	When     time.Time `json:"when"`
	Expires  time.Time `json:"expires"`
	By       []string  `json:"by,omitempty"`  // clients, in the order in which they approved
	Used     time.Time `json:"used,omitzero"` // when it was
}

func ApprovalKey(digest [32]byte) string { return fmt.Sprintf("%s%x", ApprovalPrefix, digest) }

// Waits: it may be approved or used yet.
func (a *Approval) Waits(now time.Time) bool { return a.Used.IsZero() && now.Before(a.Expires) }

//lodge:check vault/approval/enough [tests=./services/store/vault] [swap=a.Needs > 0 && len(a.By) >= a.Needs=>len(a.By) > 0] [run=TestApproval$] one approval is enough for every request
func (a *Approval) approved() bool { return a.Needs > 0 && len(a.By) >= a.Needs }

func (a *Approval) check(now time.Time) error {
	switch {
	//lodge:check vault/approval/client [tests=./services/store/vault] [drop=a.Client == ""]
	//  [drop=!seal.ValidName(a.Client)] [run=TestApprovalRefuses] a request has no client, or a
	//  name that cannot be recorded
	//lodge:check vault/approval/note [tests=./services/store/vault] [drop=len(a.Note) > MaxNote]
	//  [drop=!utf8.ValidString(a.Note)] [run=TestApprovalRefuses] the note of a request has any
	//  size, or invalid text
	case a.Client == "" || !seal.ValidName(a.Client) || len(a.Note) > MaxNote || !utf8.ValidString(a.Note):
		return fmt.Errorf("%w: a request for approval without a proper client or note", vaulterr.ErrRange)
	//lodge:check vault/approval/needs [tests=./services/store/vault] [run=TestApprovalRefuses] a
	//  request needs no approval
	case a.Needs < 1 || a.Needs > seal.MaxClients:
		return fmt.Errorf("%w: %d approvals", vaulterr.ErrRange, a.Needs)
	//lodge:check vault/approval/expires [tests=./services/store/vault] [run=TestApprovalRefuses] a
	//  request waits forever
	case !now.Before(a.Expires) || a.Expires.After(now.Add(MaxApprovalTime)):
		return fmt.Errorf("%w: a request for approval expires within %s", vaulterr.ErrRange, MaxApprovalTime)
	}
	return nil
}

// RequestApproval records a client's request that other clients must approve, and returns the
// record. While it waits, the same again changes nothing; when it was used or has expired, it
// begins anew. ErrWaiting says that too many of the client's wait.
func (v *Ledger) RequestApproval(a Approval) (out Approval, err error) {
	now := v.Clock().UTC()
	//lodge:check vault/approval/begins [tests=./services/store/vault] [as=a.When, a.Expires, a.Used
	//  = now, a.Expires.UTC(), time.Time{}] [run=TestApproval] a client submits a request that is
	//  already approved
	a.When, a.Expires, a.By, a.Used = now, a.Expires.UTC(), nil, time.Time{}
	if err := a.check(now); err != nil {
		return Approval{}, err
	}
	err = v.Update(func(tx store.Tx) error {
		//lodge:check vault/approval/epoch [tests=./services/store/vault] [run=TestApprovalRefuses]
		//  a request is for an epoch that cannot decrypt
		if _, err := v.answers(tx, a.Epoch, keys.PurposeThreshold); err != nil {
			return err
		}
		old, err := seal.Get[Approval](v.Store, tx, ApprovalKey(a.Digest))
		switch {
		//lodge:check vault/approval/waits [tests=./services/store/vault] [run=TestApproval$] a
		//  retry loses approvals, or changes what was approved
		case err == nil && old.Waits(now):
			//lodge:check vault/approval/another [tests=./services/store/vault] [drop=old.Client !=
			//  a.Client] [run=TestApproval$] a client takes over another client's request
			if out = *old; old.Client != a.Client || old.Epoch != a.Epoch {
				return fmt.Errorf("%w: such a request, of another client or epoch", vaulterr.ErrExists)
			}
			return nil
		case err != nil && !errors.Is(err, vaulterr.ErrNotFound):
			return err
		}
		waiting := 0
		err = tx.Scan(ApprovalPrefix, func(key string, sealed []byte) error {
			if x, err := seal.Decode[Approval](v.Store, key, sealed); err == nil && x.Client == a.Client && x.Waits(now) {
				waiting++
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		//lodge:check vault/approval/many [tests=./services/store/vault] [run=TestApprovalRefuses]
		//  one client's requests fill the store
		if waiting >= MaxWaiting {
			return fmt.Errorf("%w: %d of client %s", vaulterr.ErrWaiting, waiting, a.Client)
		}
		out = a
		return seal.Put(v.Store, tx, ApprovalKey(a.Digest), &a)
	})
	return out, err
}

// Approve records that a client approves another's request. It counts once, however often it is
// said.
func (v *Ledger) Approve(digest [32]byte, by string) (out Approval, err error) {
	//lodge:check vault/approval/nobody [tests=./services/store/vault] [run=TestApproval] an
	//  approver has no name, or one that cannot be recorded
	if by == "" || !seal.ValidName(by) {
		return out, fmt.Errorf("%w: nobody approves", vaulterr.ErrRange)
	}
	err = v.Update(func(tx store.Tx) error {
		//lodge:check vault/approval/quarantine [tests=./services/store/vault]
		//  [run=TestApprovalsAndBackups] requests are approved in quarantine
		if err := v.Trusted(tx); err != nil {
			return err
		}
		a, err := v.Approval(tx, digest)
		if err != nil {
			return err
		}
		out = *a
		switch {
		//lodge:check vault/approval/own [tests=./services/store/vault] [run=TestApproval$] a client
		//  approves its own request
		case a.Client == by:
			return fmt.Errorf("%w: client %s", vaulterr.ErrOwn, by)
		//lodge:check vault/approval/used-closed [tests=./services/store/vault] [run=TestApproval$]
		//  a used request is approved again
		case !a.Used.IsZero():
			return fmt.Errorf("%w: this request was used", vaulterr.ErrState)
		//lodge:check vault/approval/late [tests=./services/store/vault] [run=TestApprovalExpires]
		//  an expired request is approved
		case !a.Waits(v.Clock()):
			return fmt.Errorf("%w: this request, at %s", vaulterr.ErrExpired, a.Expires.Format(time.RFC3339))
		//lodge:check vault/approval/twice [tests=./services/store/vault]
		//  [drop=slices.Contains(a.By, by)] [run=TestApproval$] one approver counts twice
		case slices.Contains(a.By, by) || len(a.By) >= seal.MaxClients:
			return nil
		}
		out.By = append(slices.Clone(a.By), by)
		return seal.Put(v.Store, tx, ApprovalKey(digest), &out)
	})
	return out, err
}

func (v *Ledger) Approval(tx store.Tx, digest [32]byte) (*Approval, error) {
	a, err := seal.Get[Approval](v.Store, tx, ApprovalKey(digest))
	if err != nil {
		return nil, fmt.Errorf("%w: request %x", err, digest)
	}
	return a, nil
}

// Approvals lists the requests that wait, have approval, or were used, until they expire.
func (v *Ledger) Approvals() ([]Approval, error) {
	return seal.Records[Approval](v.Store, ApprovalPrefix)
}

// UseApproval has a call use the approval of a client's request up, or be refused with ErrApproval.
func (v *Ledger) UseApproval(digest [32]byte, client string) seal.Also {
	return seal.Also{Do: func(tx store.Tx) error {
		a, err := v.Approval(tx, digest)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			return fmt.Errorf("%w: nobody has asked for it", vaulterr.ErrApproval)
		case err != nil:
			return err
		//lodge:check vault/approval/use-client [tests=./services/store/vault] [drop=a.Client !=
		//  client] [run=TestApproval$] a client uses another client's approval
		//lodge:check vault/approval/use-waits [tests=./services/store/vault]
		//  [drop=!a.Waits(v.Clock())] [run=TestApproval] an approval is used twice, or after it
		//  expired
		case a.Client != client || !a.approved() || !a.Waits(v.Clock()):
			return fmt.Errorf("%w: %d of %d have, or it was used, or has expired, or is another client's", vaulterr.ErrApproval, len(a.By), a.Needs)
		}
		//lodge:check vault/approval/use-durable [tests=./services/store/vault] [run=TestApproval] a
		//  used approval is not recorded as used
		a.Used = v.Clock().UTC()
		return seal.Put(v.Store, tx, ApprovalKey(digest), a)
	}}
}

// DropApprovals deletes the selected approvals, and those that cannot be decrypted.
func (v *Ledger) DropApprovals(tx store.Tx, which func(*Approval) bool) error {
	var gone []string
	err := tx.Scan(ApprovalPrefix, func(key string, sealed []byte) error {
		if a, err := seal.Decode[Approval](v.Store, key, sealed); err != nil || which(a) {
			gone = append(gone, key)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return seal.DeleteAll(tx, gone)
}

// SweepApprovals deletes expired approvals. A record that does not open keeps no other.
func (v *Ledger) SweepApprovals() error {
	var expired []string
	var bad error
	now := v.Clock()
	err := v.Backend.View(func(tx store.Tx) error {
		expired, bad = nil, nil
		return tx.Scan(ApprovalPrefix, func(key string, sealed []byte) error {
			a, err := seal.Decode[Approval](v.Store, key, sealed)
			switch {
			case err != nil:
				bad = fmt.Errorf("%w: %s", err, key)
			//lodge:check vault/approval/swept [tests=./services/store/vault]
			//  [run=TestApprovalExpires] expired requests are never deleted
			case !now.Before(a.Expires):
				expired = append(expired, key)
			}
			return nil
		})
	})
	if err != nil || len(expired) == 0 {
		return errors.Join(err, bad)
	}
	err = v.Update(func(tx store.Tx) error {
		for _, key := range expired {
			a, err := seal.Get[Approval](v.Store, tx, key)
			if err == nil && now.Before(a.Expires) { // it was asked for anew meanwhile
				continue
			}
			if err := tx.Delete(key); err != nil {
				return fmt.Errorf("vault: %w", err)
			}
		}
		return nil
	})
	return errors.Join(err, bad)
}
