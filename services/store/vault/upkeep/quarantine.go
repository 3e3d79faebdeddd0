package upkeep

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Identify makes the identity of a fresh store, or finds that the storage was failed over or put
// back. A start does not make a generation: an old copy must not catch up with the version that
// peers have seen by starting again and again.
func (v *Upkeep) Identify() error {
	var objects []string
	err := v.Update(func(tx store.Tx) error {
		objects = nil
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		switch {
		case errors.Is(err, vaulterr.ErrNotFound):
			id = v.NewIdentity()
			err = seal.Put(v.Store, tx, seal.IdentityKey, id)
		case err == nil && id.Lineage != v.Backend.Lineage():
			objects, err = v.QuarantineIn(tx, id, 0, fmt.Sprintf(
				"the storage's history was %q and is %q: it was failed over or put back", id.Lineage, v.Backend.Lineage()), false)
		case err == nil && id.Started():
			err = seal.Put(v.Store, tx, seal.IdentityKey, id)
		}
		return err
	})
	if err == nil {
		v.peers.Begin()
	}
	return v.EraseAfter(err, objects)
}

// Quarantine is for a store that may have been put back: nothing in it can prove that a tuple was
// not delivered before, that a MAC key was not burnt, that a ciphertext was not decrypted, or how
// many were under an epoch. It revokes every batch, burns every MAC key and retires every epoch,
// and refuses tuples and decryptions until LeaveQuarantine. beyond is the highest generation of
// this store that a peer has seen.
func (v *Upkeep) Quarantine(reason string, beyond uint64) error {
	var objects []string
	err := v.Update(func(tx store.Tx) error {
		objects = nil
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		if err == nil {
			objects, err = v.QuarantineIn(tx, id, beyond, reason, false)
		}
		return err
	})
	if err == nil {
		v.peers.Begin() // as which peers acknowledge it again
	}
	return v.EraseAfter(err, objects)
}

// MaxGeneration keeps a generation that a peer makes up from wrapping around.
const MaxGeneration = 1 << 62

// QuarantineIn records in one transaction everything that Quarantine does, and returns the names of
// the blobs to erase. With keep, epochs for decryption drain instead of being retired, with the
// decryptions that Epoch.PutBack leaves them.
func (v *Upkeep) QuarantineIn(tx store.Tx, id *seal.Identity, beyond uint64, reason string, keep bool) (objects []string, err error) {
	why := "quarantine: " + reason
	id.Quarantine, id.Lineage = reason, v.Backend.Lineage()
	//lodge:check vault/store/largest-generation [tests=./services/store/vault] [swap=min(beyond,
	//  MaxGeneration)=>beyond]
	//  [run=TestAcknowledge|TestSucceeds|TestVersions|TestGeneration|TestQuarantine|TestLineage] an
	//  invented generation overflows
	id.Generation = max(id.Generation, min(beyond, MaxGeneration)) + 1
	id.Floor, id.Peers = id.Generation, nil
	if err := seal.Put(v.Store, tx, seal.IdentityKey, id); err != nil {
		return nil, err
	}
	//lodge:check vault/approval/restored [tests=./services/store/vault]
	//  [swap=v.ledger.DropApprovals(tx, func(*ledger.Approval) bool {return true })=>error(nil)]
	//  [run=TestApprovalsAndBackups] a used approval comes back with a restore
	if err := v.ledger.DropApprovals(tx, func(*ledger.Approval) bool { return true }); err != nil {
		return nil, err
	}
	if err := v.ledger.LoseDistances(tx); err != nil {
		return nil, err
	}
	epochs, err := seal.List[keys.Epoch](v.Store, tx, keys.EpochPrefix)
	if err != nil {
		return nil, err
	}
	if err := v.ledger.CloseBudgets(tx, epochs); err != nil {
		return nil, err
	}
	for _, e := range epochs {
		//lodge:check vault/restore/flooding-retired [tests=./services/store/vault] [swap=e.Purpose
		//  == keys.PurposeThreshold=>e.Purpose == keys.PurposeThreshold && e.State !=
		//  keys.EpochRetired] [run=TestFloodingUnderNewSharesAfterRestore] a restored store answers
		//  again for a retired epoch that it has forgotten
		if e.Purpose == keys.PurposeThreshold {
			e.PutBack()
		}
		if e.State == keys.EpochRetired {
			if err := seal.Put(v.Store, tx, keys.EpochKey(e.ID), e); err != nil {
				return nil, err
			}
			continue
		}
		//lodge:check vault/restore/epochs [tests=./services/store/vault] [drop=e.Decrypts()]
		//  [run=TestRestore$] [redundant=a backup marks all other epochs as retired] keys other
		//  than those for decryption are restored
		if keep && e.Decrypts() && e.State != keys.EpochLocked {
			//lodge:check vault/restore/halved [tests=./services/store/vault] [run=TestRestore$] a
			//  restored key forgets the decryptions since the backup
			if e.Purpose != keys.PurposeThreshold {
				e.PutBack()
			}
			e.State = keys.EpochDraining // other parties may have drained or destroyed it since: no client may encrypt under it
			if err := seal.Put(v.Store, tx, keys.EpochKey(e.ID), e); err != nil {
				return nil, err
			}
			continue
		}
		more, _, err := v.keys.Retire(tx, e, why)
		if err != nil {
			return nil, err
		}
		objects = append(objects, more...)
	}
	//lodge:check vault/store/quarantine-batches [tests=./services/store/vault] [swap=true=>false]
	//  [run=TestQuarantine] [redundant=every epoch is retired in the same transaction, with its
	//  batches] batches survive a quarantine
	revoked, _, err := v.stock.Revoke(tx, func(*stock.Batch) bool { return true }, why)
	if err != nil {
		return nil, err
	}
	burnt, err := v.keys.Burn(tx, func(*keys.MACKey) bool { return true }, why)
	return append(append(objects, revoked...), burnt...), err
}

// LeaveQuarantine is the operator's word that the reason is known and mended. Revoked batches stay
// revoked.
func (v *Upkeep) LeaveQuarantine() error {
	return v.Advance(func(tx store.Tx) error {
		id, err := seal.Get[seal.Identity](v.Store, tx, seal.IdentityKey)
		if err != nil {
			return err
		}
		id.Quarantine = ""
		return seal.Put(v.Store, tx, seal.IdentityKey, id)
	})
}
