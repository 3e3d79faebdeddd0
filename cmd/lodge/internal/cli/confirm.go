package cli

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Confirmation is the pair of flags of a command that destroys.
type Confirmation struct {
	yes, DryRun bool
	cmd         *cobra.Command
}

func (q *Confirmation) Flags(cmd *cobra.Command) {
	q.cmd = cmd
	cmd.Flags().BoolVar(&q.yes, "yes", false, "do it; without this nothing is done")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show what would be done, and do nothing")
}

// Before says whether to go on: with --yes. Otherwise the caller has shown what would be done, and the error, without
// --dry-run, asks for the flag.
func (q *Confirmation) Before(shown func() error) (bool, error) {
	if q.yes && !q.DryRun {
		return true, nil
	}
	Hold(q.cmd)
	if err := shown(); err != nil || q.DryRun {
		return false, err
	}
	return false, rpc.Errorf(rpc.Invalid, "add --yes to do it", "nothing was done: this cannot be taken back")
}
