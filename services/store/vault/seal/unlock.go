package seal

import (
	"errors"
	"fmt"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

var errUnfinished = fmt.Errorf("%w: a restore into this store did not finish; run it again", vaulterr.ErrState)

// UnlockOnly opens the header, which must be there.
func (v *Store) UnlockOnly(key *Key) error {
	root := make([]byte, KeyLen)
	defer clear(root)
	err := v.openRoot(key, root)
	switch {
	//lodge:check vault/restore/unfinished [tests=./services/store/vault]
	//  [run=TestRestoreAfterACrash] [redundant=an unfinished restore has no header, so opening it
	//  fails anyway] an unfinished restore opens as a vault
	case errors.Is(err, vaulterr.ErrNotFound) && v.UnfinishedRestore():
		return errUnfinished
	case errors.Is(err, vaulterr.ErrNotFound):
		return fmt.Errorf("%w: there is no vault in this store", vaulterr.ErrNotFound)
	case err != nil:
		return err
	}
	return v.UnlockWith(root)
}

const RestoreKey = "restore" // is there while a restore is under way

func (v *Store) UnfinishedRestore() (unfinished bool) {
	err := v.Backend.View(func(tx store.Tx) error {
		mark, err := tx.Get(RestoreKey)
		unfinished = mark != nil
		return err
	})
	return err == nil && unfinished
}
