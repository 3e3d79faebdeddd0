package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func SetFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "use `KEY=VALUE` in place of the file's and the environment's; `lodge config keys` lists the keys")
}

// EpochArgument reads the number of an epoch.
func EpochArgument(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, rpc.Errorf(rpc.Invalid, "`lodge epochs list` names those that there are", "%q is not the number of an epoch", text)
	}
	return n, nil
}
