package try

import (
	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// ErrMoved is the error of a command that is another program now.
var ErrMoved = rpc.Errorf(rpc.Invalid, "run `lodge-bench`, which takes the same arguments", "`lodge bench` is a separate program")

// benchCommand points users of the former `lodge bench` to lodge-bench. Its exit code is that of
// wrong usage.
func benchCommand() *cobra.Command {
	return &cobra.Command{
		Use:                "bench",
		Short:              "Moved to the program lodge-bench",
		Hidden:             true,
		DisableFlagParsing: true,
		RunE:               func(*cobra.Command, []string) error { return ErrMoved },
	}
}
