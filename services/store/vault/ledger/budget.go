package ledger

import (
	"errors"
	"fmt"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A party counts the messages that it decrypts for a client under a key, for rules with a total.
// The count belongs to the key's digest, so that neither new shares of the key nor a restart begins
// a new one. A store restored from a backup does not know the decryptions after the backup, so
// restoring closes the budgets of all keys in the store.
const BudgetPrefix = "budget/"

// Budget counts the messages decrypted under one key, for one client. A Budget without a client
// closes those of all clients.
type Budget struct {
	Key    [32]byte  `json:"key"` // the digest of threshold keys, or the name of the party's own multi-key keys
	Client string    `json:"client,omitempty"`
	Spent  uint64    `json:"spent"` // messages
	Closed bool      `json:"closed,omitempty"`
	When   time.Time `json:"when"` // of the last change
}

// BudgetError refuses a decryption that would exceed a budget. It wraps ErrSpent.
type BudgetError struct {
	Key         [32]byte
	Client      string
	Spent, Most uint64
	Wanted      uint64
	FromABackup bool // the store was restored, and counts as used up
}

func (e *BudgetError) Error() string {
	if e.FromABackup {
		return fmt.Sprintf("%v: the store was restored from a backup, and the budget of keys %.8x counts as used up", vaulterr.ErrSpent, e.Key)
	}
	return fmt.Sprintf("%v: %d of %d messages under keys %.8x for client %s, and %d more are requested", vaulterr.ErrSpent, e.Spent, e.Most, e.Key, e.Client, e.Wanted)
}

// Unwrap gives ErrSpent.
func (e *BudgetError) Unwrap() error { return vaulterr.ErrSpent }

func BudgetKey(key [32]byte, client string) string {
	return fmt.Sprintf("%s%x/%s", BudgetPrefix, key, client)
}

// SpendBudget counts n more messages for a client under each of the keys, durably, before they are
// decrypted, if the total under none of the keys exceeds most. It gives the largest new total. The
// error is a *BudgetError, which wraps ErrSpent, if a total would be too large or the store comes
// from a backup; then nothing is counted.
func (v *Ledger) SpendBudget(client string, keys [][32]byte, n, most uint64) (total uint64, err error) {
	if client == "" || !seal.ValidName(client) || len(keys) == 0 || n == 0 {
		return 0, fmt.Errorf("%w: a budget without a proper client, keys or messages", vaulterr.ErrRange)
	}
	err = v.Advance(func(tx store.Tx) error {
		total = 0
		if err := v.Trusted(tx); err != nil {
			return err
		}
		for _, key := range keys {
			b, err := v.budget(tx, key, client)
			if err != nil {
				return err
			}
			//lodge:check vault/budget [tests=./services/store/vault] [run=TestBudgets] a client
			//  decrypts more under a key than its rule allows
			if n > most || b.Spent > most-n {
				return &BudgetError{Key: key, Client: client, Spent: b.Spent, Most: most, Wanted: n}
			}
			b.Spent, b.When = b.Spent+n, v.Clock().UTC()
			total = max(total, b.Spent)
			if err := seal.Put(v.Store, tx, BudgetKey(key, client), b); err != nil {
				return err
			}
		}
		return nil
	})
	return total, err
}

// budget returns the count of a client under a key. The error is a *BudgetError if the budget is
// closed.
func (v *Ledger) budget(tx store.Tx, key [32]byte, client string) (*Budget, error) {
	closed, err := seal.Get[Budget](v.Store, tx, BudgetKey(key, ""))
	if err != nil && !errors.Is(err, vaulterr.ErrNotFound) {
		return nil, err
	}
	//lodge:check vault/budget-of-restored-store [tests=./services/store/vault]
	//  [run=TestBudgetsAreClosedByRestore] restoring a backup gives a client its budget anew
	if err == nil && closed.Closed {
		return nil, &BudgetError{Key: key, Client: client, FromABackup: true}
	}
	b, err := seal.Get[Budget](v.Store, tx, BudgetKey(key, client))
	if errors.Is(err, vaulterr.ErrNotFound) {
		return &Budget{Key: key, Client: client}, nil
	}
	return b, err
}

// Budgets lists all counts.
func (v *Ledger) Budgets() ([]Budget, error) { return seal.Records[Budget](v.Store, BudgetPrefix) }

// CloseBudgets closes the budgets of all keys in the store that decrypt, because nobody knows how
// much of them was spent.
func (v *Ledger) CloseBudgets(tx store.Tx, epochs []*keys.Epoch) error {
	own, err := seal.List[keys.MultikeyKey](v.Store, tx, keys.MultikeyPrefix)
	if err != nil {
		return err
	}
	var digests [][32]byte
	for _, e := range epochs {
		if e.Purpose == keys.PurposeThreshold {
			digests = append(digests, e.Digest)
		}
	}
	for _, k := range own {
		digests = append(digests, k.Key)
	}
	for _, key := range digests {
		if err := seal.Put(v.Store, tx, BudgetKey(key, ""), &Budget{Key: key, Closed: true, When: v.Clock().UTC()}); err != nil {
			return err
		}
	}
	return nil
}
