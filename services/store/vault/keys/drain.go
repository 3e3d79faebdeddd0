package keys

import (
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// DrainEpoch puts an active epoch into the draining state. No session starts under it and no batch
// is added. Its batches may still be reserved and delivered, and clients' ciphertexts are still
// decrypted. Its successor is the epoch that is used instead, 0 for none; the first that was named
// stays. One that drains already stays so.
func (v *Keys) DrainEpoch(id, successor uint64) error {
	//lodge:check vault/drain/generation [tests=./services/store/vault] [swap=v.Advance=>v.Update]
	//  [run=TestDrainEpoch] an old copy of the store forgets unnoticed that an epoch drains
	return v.Advance(func(tx store.Tx) error {
		e, err := v.Drainable(tx, id)
		if err != nil {
			return err
		}
		return v.drain(tx, e, successor)
	})
}

// Drainable gives an epoch that is active, or drains already.
func (v *Keys) Drainable(tx store.Tx, id uint64) (*Epoch, error) {
	e, err := v.EpochIn(tx, id)
	switch {
	case err != nil:
		return nil, err
	//lodge:check vault/drain/there [tests=./services/store/vault] [run=TestDrainEpoch] a retired
	//  epoch drains
	case e.State == EpochRetired:
		return nil, fmt.Errorf("%w: epoch %d is retired", vaulterr.ErrErased, id)
	//lodge:check vault/drain/locked [tests=./services/store/vault] [run=TestDrainEpoch] an epoch
	//  drains before it is active at every party
	case e.State == EpochLocked:
		return nil, fmt.Errorf("%w: epoch %d is %s", vaulterr.ErrState, id, e.State)
	}
	return e, nil
}

func (v *Keys) drain(tx store.Tx, e *Epoch, successor uint64) error {
	//lodge:check vault/drain/successor [tests=./services/store/vault] [drop=e.Successor != 0]
	//  [run=TestDrainEpoch] an epoch has two successors
	if e.State == EpochDraining && (e.Successor != 0 || successor == 0) {
		return nil
	}
	e.State, e.Successor = EpochDraining, successor
	return seal.Put(v.Store, tx, EpochKey(e.ID), e)
}

// RevokeEpoch drains an epoch, burns its MAC keys and erases every batch under them. Its own keys
// stay until it is retired. It counts the batches that held data.
func (v *Keys) RevokeEpoch(id, successor uint64, reason string) (batches int, err error) {
	var objects []string
	//lodge:check vault/drain/revoke-generation [tests=./services/store/vault]
	//  [swap=v.Advance=>v.Update] [run=TestGeneration] an old copy of the store forgets unnoticed
	//  that an epoch was revoked
	err = v.Advance(func(tx store.Tx) error {
		objects = nil
		e, err := v.Drainable(tx, id)
		if err == nil {
			err = v.drain(tx, e, successor)
		}
		if err != nil {
			return err
		}
		objects, batches, err = v.revokeUnder(tx, e, reason)
		return err
	})
	return batches, v.EraseAfter(err, objects)
}

// revokeUnder burns the MAC keys of an epoch and revokes its batches, and names the blobs to erase.
func (v *Keys) revokeUnder(tx store.Tx, e *Epoch, reason string) (objects []string, batches int, err error) {
	//lodge:check vault/drain/keys [tests=./services/store/vault] [swap=k.Epoch == e.ID=>false]
	//  [run=TestDrainEpoch] MAC keys survive the revocation of their epoch
	burnt, err := v.Burn(tx, func(k *MACKey) bool { return k.Epoch == e.ID }, reason)
	if err != nil {
		return nil, 0, err
	}
	//lodge:check vault/drain/batches [tests=./services/store/vault] [swap=epoch == e.ID=>false]
	//  [run=TestDrainEpoch] batches survive the revocation of their epoch
	revoked, batches, err := v.Under.RevokeBatches(tx, func(epoch uint64, _ string) bool { return epoch == e.ID }, reason)
	return append(burnt, revoked...), batches, err
}
