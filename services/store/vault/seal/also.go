package seal

import (
	"github.com/lodge-mpc/lodge/services/store"
)

// Also is an additional action in the transaction of a call: both become durable or neither, and
// the call fails if the action fails.
type Also struct {
	Do func(store.Tx) error
}

func DoAll(tx store.Tx, also []Also) error {
	for _, a := range also {
		if err := a.Do(tx); err != nil {
			return err
		}
	}
	return nil
}
