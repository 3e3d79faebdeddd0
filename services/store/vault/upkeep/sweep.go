package upkeep

import (
	"errors"
)

// Sweep does all due work. It withdraws undelivered reservations whose leases have ended, and
// erases the tuples of delivered ones. It erases the tuples of reservations that were withdrawn
// long ago and never released, erases spent masks, and deletes old records. Sweep skips a
// reservation whose record cannot be decrypted, and reports it in the error.
func (v *Upkeep) Sweep() error {
	return errors.Join(v.stock.SweepTuples(), v.ledger.SweepApprovals(), v.eraseOrphans())
}
