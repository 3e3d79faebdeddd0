package vault

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Statistical distances of two-party linear algebra. Each product on shares lets the client that asks learn a little more of
// the other client's matrix than its result, up to the distance of the product's plan, and distances of products with one
// matrix add up. The party does not know which products have the same matrix, and a client may draw a key for each product.
// So the vault keeps one sum for each pair of clients, over all keys and matrices, which bounds the sum for each of them.
//
// Sums go by the identities of the clients and not by their names: another name does not begin another sum. They belong to no
// epoch. A sum is durable before the first answer of a product leaves the party.
//
// After a restore, or when an old copy of the store was put back, the products since the backup are not known. Each sum was
// kept below its budget, so the store then counts every budget as used up: sums are raised to the budget that they were
// last compared with, and clients without a sum begin with the largest of these. An operator who raises the budget allows as
// much again, and the true sum stays below the raised budget.

// DefaultDistanceBudget is the least that a pair of clients counts as having spent after a restore.
const DefaultDistanceBudget = 0x1p-30

const (
	distancePrefix  = "distance/"
	lostDistanceKey = "distancelost"
)

// Distance is what products on shares between two clients have spent.
type Distance struct {
	// Asks and Answers are the identities of the clients: the owner of the keys, and the owner of the matrices.
	Asks    string `json:"asks"`
	Answers string `json:"answers"`
	// AsksName and AnswersName are the names that the clients had last.
	AsksName    string    `json:"asks_name"`
	AnswersName string    `json:"answers_name"`
	Spent       float64   `json:"spent"`  // sum of the distances
	Budget      float64   `json:"budget"` // that the last product was allowed under
	Products    uint64    `json:"products"`
	Last        time.Time `json:"last"`
	// Lost is set when products after a backup are not known, and Spent was raised to the budget.
	Lost bool `json:"lost,omitempty"`
}

// lostDistance is what clients without a record begin with, because a record may be lost.
type lostDistance struct {
	Spent float64 `json:"spent"`
}

// DistanceError says what is spent of a budget, and what a product would add.
type DistanceError struct {
	Spent, Wanted, Budget float64
	Lost                  bool // the store was restored, and counts the budget as used up
}

func (e *DistanceError) Error() string {
	return fmt.Sprintf("%v: 2^%.2f of 2^%.2f is spent, and the product has 2^%.2f", vaulterr.ErrDistance, math.Log2(e.Spent), math.Log2(e.Budget), math.Log2(e.Wanted))
}

// Unwrap gives ErrDistance.
func (e *DistanceError) Unwrap() error { return vaulterr.ErrDistance }

func distanceKey(asks, answers string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%s", len(asks), asks, answers)
	return fmt.Sprintf("%s%x", distancePrefix, h.Sum(nil))
}

// distance returns the record of a pair of clients, a new one if there is none.
func (v *Vault) distance(tx store.Tx, d *Distance) (*Distance, error) {
	known, err := get[Distance](v, tx, distanceKey(d.Asks, d.Answers))
	if !errors.Is(err, vaulterr.ErrNotFound) {
		return known, err
	}
	fresh := &Distance{Asks: d.Asks, Answers: d.Answers}
	lost, err := get[lostDistance](v, tx, lostDistanceKey)
	if errors.Is(err, vaulterr.ErrNotFound) {
		return fresh, nil
	}
	if err == nil {
		fresh.Spent, fresh.Lost = lost.Spent, true
	}
	return fresh, err
}

// checkDistance refuses a product that a pair of clients has no budget for, and returns the new sum, rounded up.
func (v *Vault) checkDistance(tx store.Tx, d *Distance, wanted, budget float64) (*Distance, float64, error) {
	if d.Asks == "" || d.Answers == "" || !(wanted > 0) || !(budget > 0) {
		return nil, 0, fmt.Errorf("%w: a distance of %v under a budget of %v for clients %q and %q", vaulterr.ErrRange, wanted, budget, d.Asks, d.Answers)
	}
	if err := v.trusted(tx); err != nil {
		return nil, 0, err
	}
	known, err := v.distance(tx, d)
	if err != nil {
		return nil, 0, err
	}
	sum := math.Nextafter(known.Spent+wanted, math.Inf(1)) // also if wanted is too small to change the sum
	//lodge:check vault/distance-budget [run=Distance] products go on after the budget of statistical distance is used up
	if sum > budget {
		return nil, 0, &DistanceError{Spent: known.Spent, Wanted: wanted, Budget: budget, Lost: known.Lost}
	}
	return known, sum, nil
}

// MayDistance returns the error that SpendDistance would return, and changes nothing.
func (v *Vault) MayDistance(d Distance, wanted, budget float64) error {
	return v.store.View(func(tx store.Tx) error {
		_, _, err := v.checkDistance(tx, &d, wanted, budget)
		return err
	})
}

// SpendDistance durably adds the distance of a product to the sum of a pair of clients. Of d it uses the identities and the
// names. The error wraps ErrDistance, as a *DistanceError, if the sum would exceed the budget, and ErrQuarantine for a store
// that was put back.
func (v *Vault) SpendDistance(d Distance, wanted, budget float64) (out Distance, err error) {
	err = v.advance(func(tx store.Tx) error {
		known, sum, err := v.checkDistance(tx, &d, wanted, budget)
		if err != nil {
			return err
		}
		known.AsksName, known.AnswersName = d.AsksName, d.AnswersName
		known.Spent, known.Budget, known.Last = sum, budget, v.now().UTC()
		known.Products++
		out = *known
		return put(v, tx, distanceKey(d.Asks, d.Answers), known)
	})
	return out, err
}

// Distances lists the sums of all pairs of clients.
func (v *Vault) Distances() ([]Distance, error) { return records[Distance](v, distancePrefix) }

// loseDistances counts every budget as used up.
func (v *Vault) loseDistances(tx store.Tx) error {
	all, err := list[Distance](v, tx, distancePrefix)
	if err != nil {
		return err
	}
	lost, err := get[lostDistance](v, tx, lostDistanceKey)
	if errors.Is(err, vaulterr.ErrNotFound) {
		lost, err = &lostDistance{Spent: DefaultDistanceBudget}, nil
	}
	if err != nil {
		return err
	}
	for _, d := range all {
		lost.Spent = max(lost.Spent, d.Budget)
		d.Spent, d.Lost = max(d.Spent, d.Budget), true
		if err := put(v, tx, distanceKey(d.Asks, d.Answers), d); err != nil {
			return err
		}
	}
	return put(v, tx, lostDistanceKey, lost)
}
