package vault

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/lodge-mpc/lodge/services/store"
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

// The refusals about approvals.
var (
	ErrApproval = errors.New("vault: not approved")
	ErrOwn      = errors.New("vault: nobody approves a request of one's own")
	ErrWaiting  = errors.New("vault: too many requests wait for approval")
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

func (a *Approval) approved() bool { return a.Needs > 0 && len(a.By) >= a.Needs }

func (a *Approval) check(now time.Time) error {
	switch {
	case a.Client == "" || !validName(a.Client) || len(a.Note) > maxNote || !utf8.ValidString(a.Note):
		return fmt.Errorf("%w: a request for approval without a proper client or note", ErrRange)
	case a.Needs < 1 || a.Needs > maxClients:
		return fmt.Errorf("%w: %d approvals", ErrRange, a.Needs)
	case !now.Before(a.Expires) || a.Expires.After(now.Add(MaxApprovalTime)):
		return fmt.Errorf("%w: a request for approval expires within %s", ErrRange, MaxApprovalTime)
	}
	return nil
}

// RequestApproval records that a client asks for something that others must approve, and gives what is recorded. While it
// waits, the same again changes nothing; when it was used or has expired, it begins anew. ErrWaiting says that too many
// of the client's wait.
func (v *Vault) RequestApproval(a Approval) (out Approval, err error) {
	now := v.now().UTC()
	a.When, a.Expires, a.By, a.Used = now, a.Expires.UTC(), nil, time.Time{}
	if err := a.check(now); err != nil {
		return Approval{}, err
	}
	err = v.update(func(tx store.Tx) error {
		if _, err := v.answers(tx, a.Epoch, PurposeThreshold); err != nil {
			return err
		}
		old, err := get[Approval](v, tx, approvalKey(a.Digest))
		switch {
		case err == nil && old.waits(now):
			if out = *old; old.Client != a.Client || old.Epoch != a.Epoch {
				return fmt.Errorf("%w: such a request, of another client or epoch", ErrExists)
			}
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
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
		if waiting >= MaxWaiting {
			return fmt.Errorf("%w: %d of client %s", ErrWaiting, waiting, a.Client)
		}
		out = a
		return put(v, tx, approvalKey(a.Digest), &a)
	})
	return out, err
}

// Approve records that a client approves another's request. It counts once, however often it is said.
func (v *Vault) Approve(digest [32]byte, by string) (out Approval, err error) {
	if by == "" || !validName(by) {
		return out, fmt.Errorf("%w: nobody approves", ErrRange)
	}
	err = v.update(func(tx store.Tx) error {
		if err := v.trusted(tx); err != nil {
			return err
		}
		a, err := v.approval(tx, digest)
		if err != nil {
			return err
		}
		out = *a
		switch {
		case a.Client == by:
			return fmt.Errorf("%w: client %s", ErrOwn, by)
		case !a.Used.IsZero():
			return fmt.Errorf("%w: this request was used", ErrState)
		case !a.waits(v.now()):
			return fmt.Errorf("%w: this request, at %s", ErrExpired, a.Expires.Format(time.RFC3339))
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
	if errors.Is(err, ErrNotFound) {
		err = nil
	}
	return names, ok, err
}

// Approvals lists the requests that wait, have approval, or were used, until they expire.
func (v *Vault) Approvals() ([]Approval, error) { return records[Approval](v, approvalPrefix) }

// UseApproval has a call use the approval of a client's request up, or be refused with ErrApproval.
func UseApproval(digest [32]byte, client string) Also {
	return Also{func(v *Vault, tx store.Tx) error {
		a, err := v.approval(tx, digest)
		switch {
		case errors.Is(err, ErrNotFound):
			return fmt.Errorf("%w: nobody has asked for it", ErrApproval)
		case err != nil:
			return err
		case a.Client != client || !a.approved() || !a.waits(v.now()):
			return fmt.Errorf("%w: %d of %d have, or it was used, or has expired, or is another client's", ErrApproval, len(a.By), a.Needs)
		}
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
