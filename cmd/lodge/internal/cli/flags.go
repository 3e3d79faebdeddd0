package cli

import (
	"strconv"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func SetFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVar(set, "set", nil, "use `KEY=VALUE` instead of the value in the file and the environment; `lodge config keys` lists the keys")
}

// EpochCommand returns a command whose first argument is the number of an epoch. words completes
// it.
func EpochCommand(name string, run func(cmd *cobra.Command, epoch uint64, args []string) error, words func() []string) *cobra.Command {
	return Command(name, func(cmd *cobra.Command, args []string) error {
		epoch, err := epochArgument(args[0])
		if err != nil {
			return err
		}
		return run(cmd, epoch, args[1:])
	}, words)
}

// epochArgument parses the number of an epoch.
func epochArgument(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil || n == 0 {
		return 0, rpc.Errorf(rpc.Invalid, "`lodge keys list` lists the epochs", "%q is not the number of an epoch", text)
	}
	return n, nil
}
