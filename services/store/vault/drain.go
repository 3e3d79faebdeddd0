package vault

import (
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// DrainEpoch records that an active epoch makes nothing new: no session starts under it and no batch comes to lie under
// it, while what lies there may be reserved and delivered until it is used up, and clients' ciphertexts are decrypted. Its
// successor is the epoch that is used instead, 0 for none; the first that was named stays. One that drains already stays so.
func (v *Vault) DrainEpoch(id, successor uint64) error {
	//lodge:check vault/drain/generation [swap=v.advance=>v.update] [run=TestDrainEpoch] an old copy
	//  of the store forgets unnoticed that an epoch drains
	return v.advance(func(tx store.Tx) error {
		e, err := v.drainable(tx, id)
		if err != nil {
			return err
		}
		return v.drain(tx, e, successor)
	})
}

// drainable gives an epoch that is active, or drains already.
func (v *Vault) drainable(tx store.Tx, id uint64) (*Epoch, error) {
	e, err := get[Epoch](v, tx, epochKey(id))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: epoch %d", err, id)
	//lodge:check vault/drain/there [run=TestDrainEpoch] a retired epoch drains
	case e.State == EpochRetired:
		return nil, fmt.Errorf("%w: epoch %d is retired", vaulterr.ErrErased, id)
	//lodge:check vault/drain/locked [run=TestDrainEpoch] an epoch drains before it is active at
	//  every party
	case e.State == EpochLocked:
		return nil, fmt.Errorf("%w: epoch %d is %s", vaulterr.ErrState, id, e.State)
	}
	return e, nil
}

func (v *Vault) drain(tx store.Tx, e *Epoch, successor uint64) error {
	//lodge:check vault/drain/successor [drop=e.Successor != 0] [run=TestDrainEpoch] an epoch has
	//  two successors
	if e.State == EpochDraining && (e.Successor != 0 || successor == 0) {
		return nil
	}
	e.State, e.Successor = EpochDraining, successor
	return put(v, tx, epochKey(e.ID), e)
}

// RevokeEpoch drains an epoch, burns its MAC keys and erases every batch under them. Its own keys stay until it is
// retired. It counts the batches that held data.
func (v *Vault) RevokeEpoch(id, successor uint64, reason string) (batches int, err error) {
	var objects []string
	//lodge:check vault/drain/revoke-generation [swap=v.advance=>v.update] [run=TestGeneration] an
	//  old copy of the store forgets unnoticed that an epoch was revoked
	err = v.advance(func(tx store.Tx) error {
		objects = nil
		e, err := v.drainable(tx, id)
		if err == nil {
			err = v.drain(tx, e, successor)
		}
		if err != nil {
			return err
		}
		objects, batches, err = v.revokeUnder(tx, e, reason)
		return err
	})
	return batches, v.eraseAfter(err, objects)
}

// revokeUnder burns the MAC keys of an epoch and revokes its batches, and names the blobs to erase.
func (v *Vault) revokeUnder(tx store.Tx, e *Epoch, reason string) (objects []string, batches int, err error) {
	//lodge:check vault/drain/keys [swap=k.Epoch == e.ID=>false] [run=TestDrainEpoch] MAC keys
	//  survive the revocation of their epoch
	burnt, err := v.burn(tx, func(k *MACKey) bool { return k.Epoch == e.ID }, reason)
	if err != nil {
		return nil, 0, err
	}
	//lodge:check vault/drain/batches [swap=epoch == e.ID=>false] [run=TestDrainEpoch] batches
	//  survive the revocation of their epoch
	revoked, batches, err := v.under.RevokeBatches(tx, func(epoch uint64, _ string) bool { return epoch == e.ID }, reason)
	return append(burnt, revoked...), batches, err
}
