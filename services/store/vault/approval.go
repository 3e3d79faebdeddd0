package vault

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A party may want others to approve a client's request for decryption first. The request waits until enough of them have,
// each known by the name of a client, or until it expires. What is approved is used once, with what is recorded of it. No
// backup has approvals, and none outlives a quarantine.
const (
	approvalPrefix = "approval/"

	// MaxWaiting requests of a client wait for approval, or have it and are not used.
	MaxWaiting = 100
	// MaxApprovalTime is how long from now a request may wait.
	MaxApprovalTime = 30 * 24 * time.Hour

	maxNote = 1000 // bytes
)

// Approval is a client's request for decryption, and who has approved it.
type Approval struct {
	Digest   [32]byte  `json:"digest"` // of all that is asked for
	Epoch    uint64    `json:"epoch"`
	Client   string    `json:"client"` // who asks
	Messages uint64    `json:"messages"`
	Note     string    `json:"note,omitempty"`
	Needs    int       `json:"needs"` // how many must approve
	When     time.Time `json:"when"`
	Expires  time.Time `json:"expires"`
	By       []string  `json:"by,omitempty"`  // clients, in the order in which they approved
	Used     time.Time `json:"used,omitzero"` // when it was
}

func approvalKey(digest [32]byte) string { return fmt.Sprintf("%s%x", approvalPrefix, digest) }

// waits: it may be approved or used yet.
func (a *Approval) waits(now time.Time) bool { return a.Used.IsZero() && now.Before(a.Expires) }

//lodge:check vault/approval/enough [swap=a.Needs > 0 && len(a.By) >= a.Needs=>len(a.By) > 0] [run=TestApproval$] one approval is enough for every request
func (a *Approval) approved() bool { return a.Needs > 0 && len(a.By) >= a.Needs }

func (a *Approval) check(now time.Time) error {
	switch {
	//lodge:check vault/approval/client [drop=a.Client == ""] [drop=!validName(a.Client)]
	//  [run=TestApprovalRefuses] a request has no client, or a name that cannot be recorded
	//lodge:check vault/approval/note [drop=len(a.Note) > maxNote] [drop=!utf8.ValidString(a.Note)]
	//  [run=TestApprovalRefuses] the note of a request has any size, or invalid text
	case a.Client == "" || !validName(a.Client) || len(a.Note) > maxNote || !utf8.ValidString(a.Note):
		return fmt.Errorf("%w: a request for approval without a proper client or note", vaulterr.ErrRange)
	//lodge:check vault/approval/needs [run=TestApprovalRefuses] a request needs no approval
	case a.Needs < 1 || a.Needs > maxClients:
		return fmt.Errorf("%w: %d approvals", vaulterr.ErrRange, a.Needs)
	//lodge:check vault/approval/expires [run=TestApprovalRefuses] a request waits forever
	case !now.Before(a.Expires) || a.Expires.After(now.Add(MaxApprovalTime)):
		return fmt.Errorf("%w: a request for approval expires within %s", vaulterr.ErrRange, MaxApprovalTime)
	}
	return nil
}

// RequestApproval records that a client asks for something that others must approve, and gives what is recorded. While it
// waits, the same again changes nothing; when it was used or has expired, it begins anew. ErrWaiting says that too many
// of the client's wait.
func (v *Vault) RequestApproval(a Approval) (out Approval, err error) {
	now := v.now().UTC()
	//lodge:check vault/approval/begins [as=a.When, a.Expires, a.Used = now, a.Expires.UTC(),
	//  time.Time{}] [run=TestApproval] a client submits a request that is already approved
	a.When, a.Expires, a.By, a.Used = now, a.Expires.UTC(), nil, time.Time{}
	if err := a.check(now); err != nil {
		return Approval{}, err
	}
	err = v.update(func(tx store.Tx) error {
		//lodge:check vault/approval/epoch [run=TestApprovalRefuses] a request is for an epoch that
		//  cannot decrypt
		if _, err := v.answers(tx, a.Epoch, PurposeThreshold); err != nil {
			return err
		}
		old, err := get[Approval](v, tx, approvalKey(a.Digest))
		switch {
		//lodge:check vault/approval/waits [run=TestApproval$] a retry loses approvals, or changes
		//  what was approved
		case err == nil && old.waits(now):
			//lodge:check vault/approval/another [drop=old.Client != a.Client] [run=TestApproval$] a
			//  client takes over another client's request
			if out = *old; old.Client != a.Client || old.Epoch != a.Epoch {
				return fmt.Errorf("%w: such a request, of another client or epoch", vaulterr.ErrExists)
			}
			return nil
		case err != nil && !errors.Is(err, vaulterr.ErrNotFound):
			return err
		}
		waiting := 0
		err = tx.Scan(approvalPrefix, func(key string, sealed []byte) error {
			if x, err := decodeRecord[Approval](v, key, sealed); err == nil && x.Client == a.Client && x.waits(now) {
				waiting++
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		//lodge:check vault/approval/many [run=TestApprovalRefuses] one client's requests fill the
		//  store
		if waiting >= MaxWaiting {
			return fmt.Errorf("%w: %d of client %s", vaulterr.ErrWaiting, waiting, a.Client)
		}
		out = a
		return put(v, tx, approvalKey(a.Digest), &a)
	})
	return out, err
}

// Approve records that a client approves another's request. It counts once, however often it is said.
func (v *Vault) Approve(digest [32]byte, by string) (out Approval, err error) {
	//lodge:check vault/approval/nobody [run=TestApproval] an approver has no name, or one that
	//  cannot be recorded
	if by == "" || !validName(by) {
		return out, fmt.Errorf("%w: nobody approves", vaulterr.ErrRange)
	}
	err = v.update(func(tx store.Tx) error {
		//lodge:check vault/approval/quarantine [run=TestApprovalsAndBackups] requests are approved
		//  in quarantine
		if err := v.trusted(tx); err != nil {
			return err
		}
		a, err := v.approval(tx, digest)
		if err != nil {
			return err
		}
		out = *a
		switch {
		//lodge:check vault/approval/own [run=TestApproval$] a client approves its own request
		case a.Client == by:
			return fmt.Errorf("%w: client %s", vaulterr.ErrOwn, by)
		//lodge:check vault/approval/used-closed [run=TestApproval$] a used request is approved
		//  again
		case !a.Used.IsZero():
			return fmt.Errorf("%w: this request was used", vaulterr.ErrState)
		//lodge:check vault/approval/late [run=TestApprovalExpires] an expired request is approved
		case !a.waits(v.now()):
			return fmt.Errorf("%w: this request, at %s", vaulterr.ErrExpired, a.Expires.Format(time.RFC3339))
		//lodge:check vault/approval/twice [drop=slices.Contains(a.By, by)] [run=TestApproval$] one
		//  approver counts twice
		case slices.Contains(a.By, by) || len(a.By) >= maxClients:
			return nil
		}
		out.By = append(slices.Clone(a.By), by)
		return put(v, tx, approvalKey(digest), &out)
	})
	return out, err
}

func (v *Vault) approval(tx store.Tx, digest [32]byte) (*Approval, error) {
	a, err := get[Approval](v, tx, approvalKey(digest))
	if err != nil {
		return nil, fmt.Errorf("%w: request %x", err, digest)
	}
	return a, nil
}

// Approved says who has approved a request, and whether that is enough to use it now.
func (v *Vault) Approved(digest [32]byte) (names []string, ok bool, err error) {
	err = v.store.View(func(tx store.Tx) error {
		a, err := v.approval(tx, digest)
		if err == nil {
			names, ok = a.By, a.approved() && a.waits(v.now())
		}
		return err
	})
	if errors.Is(err, vaulterr.ErrNotFound) {
		err = nil
	}
	return names, ok, err
}

// Approvals lists the requests that wait, have approval, or were used, until they expire.
func (v *Vault) Approvals() ([]Approval, error) { return records[Approval](v, approvalPrefix) }

// UseApproval has a call use the approval of a client's request up, or be refused with ErrApproval.
func (v *Vault) UseApproval(digest [32]byte, client string) Also {
	return Also{func(tx store.Tx) error {
		a, err := v.approval(tx, digest)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			return fmt.Errorf("%w: nobody has asked for it", vaulterr.ErrApproval)
		case err != nil:
			return err
		//lodge:check vault/approval/use-client [drop=a.Client != client] [run=TestApproval$] a
		//  client uses another client's approval
		//lodge:check vault/approval/use-waits [drop=!a.waits(v.now())] [run=TestApproval] an
		//  approval is used twice, or after it expired
		case a.Client != client || !a.approved() || !a.waits(v.now()):
			return fmt.Errorf("%w: %d of %d have, or it was used, or has expired, or is another client's", vaulterr.ErrApproval, len(a.By), a.Needs)
		}
		//lodge:check vault/approval/use-durable [run=TestApproval] a used approval is not recorded
		//  as used
		a.Used = v.now().UTC()
		return put(v, tx, approvalKey(digest), a)
	}}
}

// dropApprovals forgets those that which selects, and those that do not open.
func (v *Vault) dropApprovals(tx store.Tx, which func(*Approval) bool) error {
	var gone []string
	err := tx.Scan(approvalPrefix, func(key string, sealed []byte) error {
		if a, err := decodeRecord[Approval](v, key, sealed); err != nil || which(a) {
			gone = append(gone, key)
		}
		return nil
	})
	for i := 0; i < len(gone) && err == nil; i++ {
		err = tx.Delete(gone[i])
	}
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// sweepApprovals forgets what has expired. A record that does not open keeps no other.
func (v *Vault) sweepApprovals() error {
	var expired []string
	var bad error
	now := v.now()
	err := v.store.View(func(tx store.Tx) error {
		expired, bad = nil, nil
		return tx.Scan(approvalPrefix, func(key string, sealed []byte) error {
			a, err := decodeRecord[Approval](v, key, sealed)
			switch {
			case err != nil:
				bad = fmt.Errorf("%w: %s", err, key)
			//lodge:check vault/approval/swept [run=TestApprovalExpires] expired requests are never
			//  deleted
			case !now.Before(a.Expires):
				expired = append(expired, key)
			}
			return nil
		})
	})
	if err != nil || len(expired) == 0 {
		return errors.Join(err, bad)
	}
	err = v.update(func(tx store.Tx) error {
		for _, key := range expired {
			a, err := get[Approval](v, tx, key)
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
