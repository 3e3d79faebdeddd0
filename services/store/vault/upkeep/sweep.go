package upkeep

import (
	"errors"
)

// Sweep does all due work: it withdraws undelivered reservations whose leases have ended and erases
// the tuples of delivered ones; what waited in vain to go back into stock is erased; masks that
// were spent are erased; and what ended long ago is forgotten. A reservation whose record cannot be
// decrypted is part of the error and does not stop the rest.
func (v *Upkeep) Sweep() error {
	return errors.Join(v.stock.SweepTuples(), v.ledger.SweepApprovals(), v.eraseOrphans())
}
