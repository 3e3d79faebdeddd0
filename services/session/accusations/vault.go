package accusations

import (
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
)

// Vault is the part of the party's vault that this package uses: accusations with their evidence,
// and failures without an accused party.
type Vault interface {
	Now() time.Time

	// Evidence and failures.
	Accusation(id string) (a conduct.Accusation, err error)
	Accusations() ([]conduct.Accusation, error)
	Accuse(a conduct.Accusation, e *conduct.Evidence, room conduct.EvidenceRoom) (fresh bool, err error)
	ClearUnnamed(roster [32]byte, last uint64, act conduct.Act) (n int, err error)
	Conduct(roster [32]byte) (out conduct.Conduct, err error)
	NewEvidence() (*conduct.Evidence, error)
	NoteUnnamed(u conduct.Unnamed, t conduct.Tolerance) (out conduct.Conduct, suspect bool, err error)
	OpenEvidence(id string) (io.ReadCloser, error)
	Pardon(id string, act conduct.Act) (a conduct.Accusation, err error)
	ToldOf(id string, peer string) error
	UnnamedFailures(roster [32]byte) ([]conduct.Unnamed, error)
}
