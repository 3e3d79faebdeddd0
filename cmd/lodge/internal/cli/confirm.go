package cli

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Confirmation holds the two flags of a command that destroys data.
type Confirmation struct {
	yes, DryRun bool
	cmd         *cobra.Command
}

func (q *Confirmation) Flags(cmd *cobra.Command) {
	q.cmd = cmd
	cmd.Flags().BoolVar(&q.yes, "yes", false, "confirm; without this flag nothing is changed")
	cmd.Flags().BoolVar(&q.DryRun, "dry-run", false, "show the effect and change nothing")
}

// Before reports whether to go on, which --yes confirms. Otherwise it calls show, which prints the
// effect, and without --dry-run it returns an error that names the flag.
func (q *Confirmation) Before(shown func() error) (bool, error) {
	if q.yes && !q.DryRun {
		return true, nil
	}
	Hold(q.cmd)
	if err := shown(); err != nil || q.DryRun {
		return false, err
	}
	return false, rpc.Errorf(rpc.Invalid, "add --yes to confirm", "nothing was changed: this cannot be undone")
}
