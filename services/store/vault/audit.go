package vault

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const auditKey = "audit"

// AuditHead is the hash of an entry of the party's audit log that RememberAudit was given last; empty for none. A log
// that has it not was cut or written anew.
func (v *Vault) AuditHead() (hash string, err error) {
	err = v.store.View(func(tx store.Tx) error {
		h, err := get[string](v, tx, auditKey)
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

// RememberAudit keeps the hash of the audit log's head.
func (v *Vault) RememberAudit(hash string) error {
	if known, err := v.AuditHead(); err != nil || known == hash {
		return err
	}
	err := v.update(func(tx store.Tx) error { return put(v, tx, auditKey, &hash) })
	if err != nil {
		return fmt.Errorf("vault: the audit log's head: %w", err)
	}
	return nil
}
