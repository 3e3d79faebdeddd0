package vault

import (
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A key decrypts so many ciphertexts with flooding over its whole life, L, of which each holder has a part: with n holders
// and the threshold T, L/(n-T), for of a quorum one at least is honest and counts, and n-T are if T are not. The epoch in
// which the keys were made has that part as its Limit, and there is nothing beside it: new shares bring none.
//
// A run under new shares may have one honest member alone, where all that are not are in its quorum, whatever the new
// number of holders is. So it counts T+1 times, T being that of the epoch in which the keys were made. With h honest
// holders of that one, of whom s = T+1-(n-h) are in each of its quorums, and runs of which each counts u_i and w_i for
// holder i,
//
//	runs <= sum u_i/s + sum w_i <= sum (u_i + (T+1) w_i)/s <= h/s L/(n-T) <= L
//
// as s <= T+1, and h/s is largest, n-T, for s = 1. That holds for any number of epochs of the same keys, side by side or
// one after the other. A party that did not hold a share when the keys were made counts nothing, and so answers nothing,
// as does one whose store has no record of it.

// origin is the epoch among some of the same keys in which they were made, nil if it is not there.
func origin(epochs []*Epoch) *Epoch {
	for _, e := range epochs {
		//lodge:check vault/flooding/newcomer [swap=e.From == 0=>true]
		//  [run=TestFloodingByNewHolders] resharing resets the count of floods
		if e.From == 0 {
			return e
		}
	}
	return nil
}

// cost is what a ciphertext counts that is decrypted with flooding under an epoch of keys that were made in another.
func (e *Epoch) cost(origin *Epoch) uint64 {
	if e == origin {
		return 1
	}
	//lodge:check vault/flooding/cost [swap=uint64(origin.Threshold) + 1=>1]
	//  [run=TestFloodingCostsByTheFirstThreshold] runs with one honest member count less than the
	//  answers they may hide
	return uint64(origin.Threshold) + 1
}

// floodsLeft is how many more ciphertexts this party answers for with flooding under the first of some epochs, which are all
// of its keys.
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
		//lodge:check vault/flooding/others-count [run=TestFloodingUnderNewShares] answers under
		//  other epochs of the same keys are not counted
		left -= e.Decrypted * each
	}
	return left / epochs[0].cost(made)
}

// mayFlood refuses with ErrSpent if the keys of an epoch, which the others are of too, do not answer for n more ciphertexts.
func mayFlood(epoch *Epoch, others []*Epoch, n int) error {
	if left := floodsLeft(append([]*Epoch{epoch}, others...)); uint64(n) > left {
		return fmt.Errorf("%w: %d left under epoch %d, and %d more are asked for", vaulterr.ErrSpent, left, epoch.ID, n)
	}
	return nil
}

// sameKeys gives the epochs of an epoch's keys, it first.
func (v *Vault) sameKeys(tx store.Tx, e *Epoch) ([]*Epoch, error) {
	out := []*Epoch{e}
	all, err := list[Epoch](v, tx, epochPrefix)
	for _, x := range all {
		//lodge:check vault/flooding/others [swap=x.Digest == e.Digest=>x.Digest != x.Digest]
		//  [run=TestFloodingUnderNewShares] two epochs of the same keys flood one ciphertext with
		//  different quorums
		if x != nil && x.ID != e.ID && x.Purpose == PurposeThreshold && x.Digest == e.Digest {
			out = append(out, x)
		}
	}
	return out, err
}

// FloodingLimit is how many ciphertexts this party answers for with flooding under an epoch, those included that it has
// answered for.
func (v *Vault) FloodingLimit(id uint64) (limit uint64, err error) {
	err = v.store.View(func(tx store.Tx) error {
		e, err := get[Epoch](v, tx, epochKey(id))
		if err != nil {
			return fmt.Errorf("%w: epoch %d", err, id)
		}
		epochs, err := v.sameKeys(tx, e)
		limit = e.Decrypted + floodsLeft(epochs)
		return err
	})
	return limit, err
}

// limitShares sets the Limit of new shares to what this party may answer for under them at most.
func (v *Vault) limitShares(e *Epoch) error {
	if e.From == 0 || e.Limit == 0 {
		return nil
	}
	return v.store.View(func(tx store.Tx) error {
		epochs, err := v.sameKeys(tx, e)
		if err != nil {
			return err
		}
		e.Limit = floodsLeft(epochs)
		return nil
	})
}
