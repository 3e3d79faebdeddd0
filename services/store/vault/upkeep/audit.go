package upkeep

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const AuditKey = "audit"

// AuditHead returns the hash that was last passed to RememberAudit, or "". An audit log without an
// entry of this hash was cut or rewritten.
func (v *Upkeep) AuditHead() (hash string, err error) {
	err = v.Backend.View(func(tx store.Tx) error {
		h, err := seal.Get[string](v.Store, tx, AuditKey)
		if errors.Is(err, vaulterr.ErrNotFound) {
			return nil
		}
		if err == nil {
			hash = *h
		}
		return err
	})
	return hash, err
}

// RememberAudit stores the hash of the last entry of the audit log.
func (v *Upkeep) RememberAudit(hash string) error {
	if known, err := v.AuditHead(); err != nil || known == hash {
		return err
	}
	err := v.Update(func(tx store.Tx) error { return seal.Put(v.Store, tx, AuditKey, &hash) })
	if err != nil {
		return fmt.Errorf("vault: the audit log's head: %w", err)
	}
	return nil
}
