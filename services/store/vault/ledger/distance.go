package ledger

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Statistical distances of two-party linear algebra. Each product on shares lets the client that
// asks learn a little more of the other client's matrix than its result, up to the distance of the
// product's plan, and distances of products with one matrix add up. The party does not know which
// products have the same matrix, and a client may draw a key for each product. So the vault keeps
// one sum for each pair of clients, over all keys and matrices. It bounds the sum for each matrix.
//
// Sums go by the identities of the clients and not by their names: another name does not begin
// another sum. They belong to no epoch. A sum is durable before the first answer of a product
// leaves the party.
//
// After a restore, or when an old copy of the store was put back, the products since the backup are
// not known. Each sum was kept below its budget, so the store then counts every budget as used up:
// it raises each sum to the last budget that the sum was compared with, and clients without a sum
// begin with the largest such budget. An operator who raises the budget allows as much again, and
// the true sum stays below the raised budget.

// DefaultDistanceBudget is the least that a pair of clients counts as having spent after a restore.
const DefaultDistanceBudget = 0x1p-30

const (
	DistancePrefix  = "distance/"
	LostDistanceKey = "distancelost"
)

// Distance records the statistical distance that products on shares between two clients have spent.
type Distance struct {
	// Asks and Answers are the identities of the clients: the owner of the keys, and the owner of
	// the matrices.
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

// LostDistance is the initial sum of clients without a record, because their record may be lost.
type LostDistance struct {
	Spent float64 `json:"spent"`
}

// DistanceError holds the distance that is spent of a budget, and the distance that a product would
// add.
type DistanceError struct {
	Spent, Wanted, Budget float64
	Lost                  bool // the store was restored, and counts the budget as used up
}

func (e *DistanceError) Error() string {
	return fmt.Sprintf("%v: 2^%.2f of 2^%.2f is spent, and the product has 2^%.2f", vaulterr.ErrDistance, math.Log2(e.Spent), math.Log2(e.Budget), math.Log2(e.Wanted))
}

// Unwrap gives ErrDistance.
func (e *DistanceError) Unwrap() error { return vaulterr.ErrDistance }

func DistanceKey(asks, answers string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%d:%s%s", len(asks), asks, answers)
	return fmt.Sprintf("%s%x", DistancePrefix, h.Sum(nil))
}

// distance returns the record of a pair of clients, a new one if there is none.
func (v *Ledger) distance(tx store.Tx, d *Distance) (*Distance, error) {
	known, err := seal.Get[Distance](v.Store, tx, DistanceKey(d.Asks, d.Answers))
	if !errors.Is(err, vaulterr.ErrNotFound) {
		return known, err
	}
	fresh := &Distance{Asks: d.Asks, Answers: d.Answers}
	lost, err := seal.Get[LostDistance](v.Store, tx, LostDistanceKey)
	if errors.Is(err, vaulterr.ErrNotFound) {
		return fresh, nil
	}
	if err == nil {
		fresh.Spent, fresh.Lost = lost.Spent, true
	}
	return fresh, err
}

// checkDistance refuses a product that a pair of clients has no budget for, and returns the new
// sum, rounded up.
func (v *Ledger) checkDistance(tx store.Tx, d *Distance, wanted, budget float64) (*Distance, float64, error) {
	if d.Asks == "" || d.Answers == "" || !(wanted > 0) || !(budget > 0) {
		return nil, 0, fmt.Errorf("%w: a distance of %v under a budget of %v for clients %q and %q", vaulterr.ErrRange, wanted, budget, d.Asks, d.Answers)
	}
	if err := v.Trusted(tx); err != nil {
		return nil, 0, err
	}
	known, err := v.distance(tx, d)
	if err != nil {
		return nil, 0, err
	}
	sum := math.Nextafter(known.Spent+wanted, math.Inf(1)) // also if wanted is too small to change the sum
	//lodge:check vault/distance-budget [tests=./services/store/vault] [run=Distance] products go on
	//  after the budget of statistical distance is used up
	if sum > budget {
		return nil, 0, &DistanceError{Spent: known.Spent, Wanted: wanted, Budget: budget, Lost: known.Lost}
	}
	return known, sum, nil
}

// MayDistance returns the error that SpendDistance would return, and changes nothing.
func (v *Ledger) MayDistance(d Distance, wanted, budget float64) error {
	return v.Backend.View(func(tx store.Tx) error {
		_, _, err := v.checkDistance(tx, &d, wanted, budget)
		return err
	})
}

// SpendDistance durably adds the distance of a product to the sum of a pair of clients. Of d it
// uses the identities and the names. The error wraps ErrDistance, as a *DistanceError, if the sum
// would exceed the budget, and ErrQuarantine for a store that was put back.
func (v *Ledger) SpendDistance(d Distance, wanted, budget float64) (out Distance, err error) {
	err = v.Advance(func(tx store.Tx) error {
		known, sum, err := v.checkDistance(tx, &d, wanted, budget)
		if err != nil {
			return err
		}
		known.AsksName, known.AnswersName = d.AsksName, d.AnswersName
		known.Spent, known.Budget, known.Last = sum, budget, v.Clock().UTC()
		known.Products++
		out = *known
		return seal.Put(v.Store, tx, DistanceKey(d.Asks, d.Answers), known)
	})
	return out, err
}

// Distances lists the sums of all pairs of clients.
func (v *Ledger) Distances() ([]Distance, error) {
	return seal.Records[Distance](v.Store, DistancePrefix)
}

// LoseDistances counts every budget as used up.
func (v *Ledger) LoseDistances(tx store.Tx) error {
	all, err := seal.List[Distance](v.Store, tx, DistancePrefix)
	if err != nil {
		return err
	}
	lost, err := seal.Get[LostDistance](v.Store, tx, LostDistanceKey)
	if errors.Is(err, vaulterr.ErrNotFound) {
		lost, err = &LostDistance{Spent: DefaultDistanceBudget}, nil
	}
	if err != nil {
		return err
	}
	for _, d := range all {
		lost.Spent = max(lost.Spent, d.Budget)
		d.Spent, d.Lost = max(d.Spent, d.Budget), true
		if err := seal.Put(v.Store, tx, DistanceKey(d.Asks, d.Answers), d); err != nil {
			return err
		}
	}
	return seal.Put(v.Store, tx, LostDistanceKey, lost)
}
