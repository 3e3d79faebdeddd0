package keys

import (
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// With flooding, a key decrypts at most L ciphertexts over its whole life. Each holder may count
// its part of L: with n holders and the threshold T the part is L/(n-T), because every quorum has
// an honest member, which counts, and at least n-T holders are honest. The epoch in which the keys
// were made has that part as its Limit. New shares of the keys add nothing to it.
//
// A run under new shares may have only one honest member, if all dishonest holders are in its
// quorum, for any new number of holders. So it counts T+1 times, T being that of the epoch in which
// the keys were made. With h honest holders of that one, of whom s = T+1-(n-h) are in each of its
// quorums, and runs of which each counts u_i and w_i for holder i,
//
//	runs <= sum u_i/s + sum w_i <= sum (u_i + (T+1) w_i)/s <= h/s L/(n-T) <= L
//
// as s <= T+1, and h/s is largest, n-T, for s = 1. That holds for any number of epochs of the same
// keys, concurrent or successive. A party that did not hold a share when the keys were made has no
// allowance and answers nothing. The same applies to a party whose store has no record of that
// epoch.

// origin is the epoch among some of the same keys in which they were made, nil if it is not there.
func origin(epochs []*Epoch) *Epoch {
	for _, e := range epochs {
		//lodge:check vault/flooding/newcomer [tests=./services/store/vault] [swap=e.From ==
		//  0=>true] [run=TestFloodingByNewHolders] resharing resets the count of floods
		if e.From == 0 {
			return e
		}
	}
	return nil
}

// cost returns how much a ciphertext counts that is decrypted with flooding under e, if the keys
// were made in epoch origin.
func (e *Epoch) cost(origin *Epoch) uint64 {
	if e == origin {
		return 1
	}
	//lodge:check vault/flooding/cost [tests=./services/store/vault] [swap=uint64(origin.Threshold)
	//  + 1=>1] [run=TestFloodingCostsByTheFirstThreshold] runs with one honest member count less
	//  than the answers they may hide
	return uint64(origin.Threshold) + 1
}

// floodsLeft is how many more ciphertexts this party answers for with flooding under the first of
// some epochs, which are all of its keys.
func floodsLeft(epochs []*Epoch) uint64 {
	made := origin(epochs)
	if made == nil || epochs[0].Limit == 0 {
		return 0
	}
	left := made.Limit
	for _, e := range epochs {
		each := e.cost(made)
		if e.Decrypted > left/each {
			return 0
		}
		//lodge:check vault/flooding/others-count [tests=./services/store/vault]
		//  [run=TestFloodingUnderNewShares] answers under other epochs of the same keys are not
		//  counted
		left -= e.Decrypted * each
	}
	return left / epochs[0].cost(made)
}

// MayFlood refuses with ErrSpent if the keys of an epoch, which the others are of too, do not
// answer for n more ciphertexts.
func MayFlood(epoch *Epoch, others []*Epoch, n int) error {
	if left := floodsLeft(append([]*Epoch{epoch}, others...)); uint64(n) > left {
		return fmt.Errorf("%w: %d left under epoch %d, and %d more are asked for", vaulterr.ErrSpent, left, epoch.ID, n)
	}
	return nil
}

// SameKeys gives the epochs of an epoch's keys, it first.
func (v *Keys) SameKeys(tx store.Tx, e *Epoch) ([]*Epoch, error) {
	out := []*Epoch{e}
	all, err := seal.List[Epoch](v.Store, tx, EpochPrefix)
	for _, x := range all {
		//lodge:check vault/flooding/others [tests=./services/store/vault] [swap=x.Digest ==
		//  e.Digest=>x.Digest != x.Digest] [run=TestFloodingUnderNewShares] two epochs of the same
		//  keys flood one ciphertext with different quorums
		if x != nil && x.ID != e.ID && x.Purpose == PurposeThreshold && x.Digest == e.Digest {
			out = append(out, x)
		}
	}
	return out, err
}

// FloodingLimit returns the number of ciphertexts that this party may answer with flooding under an
// epoch, including those that it has already answered.
func (v *Keys) FloodingLimit(id uint64) (limit uint64, err error) {
	err = v.Backend.View(func(tx store.Tx) error {
		e, err := v.EpochIn(tx, id)
		if err != nil {
			return err
		}
		epochs, err := v.SameKeys(tx, e)
		limit = e.Decrypted + floodsLeft(epochs)
		return err
	})
	return limit, err
}

// limitShares sets the Limit of new shares to the number of ciphertexts that this party may still
// answer for under them.
func (v *Keys) limitShares(e *Epoch) error {
	if e.From == 0 || e.Limit == 0 {
		return nil
	}
	return v.Backend.View(func(tx store.Tx) error {
		epochs, err := v.SameKeys(tx, e)
		if err != nil {
			return err
		}
		e.Limit = floodsLeft(epochs)
		return nil
	})
}
