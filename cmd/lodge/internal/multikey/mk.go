package multikey

import (
	"strings"

	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// mkCommand returns `lodge mk`.
func mkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mk",
		Short: "Compute on bits that parties have encrypted under their own keys",
		Long: "Each party generates its own keys, and publishes the public keys that are needed for computing on bits. Any party can\n" +
			"compute a netlist on bits under several parties' keys; these parties decrypt the result together.\n" +
			"docs/guides/multikey.md describes the security.",
	}
	cmd.AddCommand(mkNetlistCommand(), mkDecryptCommand(), mkAttestCommand(), mkSeedCommand())
	for _, sub := range []func(*cli.Operator) *cobra.Command{
		mkKeysCommand, mkEncryptCommand, mkRegistryCommand, mkEvaluateCommand, mkJobsCommand,
	} {
		o := &cli.Operator{}
		c := sub(o)
		o.Flags(c)
		for _, d := range append(c.Commands(), c) {
			if !d.HasSubCommands() {
				d.Long = strings.TrimSpace(d.Long + "\n\n" + cli.Connecting)
			}
		}
		cmd.AddCommand(c)
	}
	return cmd
}

// mkContext returns the context for multi-key ciphertexts that the roster pins.
func mkContext(o *cli.Operator) (*multikey.Context, error) {
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	return multikey.ContextOf(p.Roster.Multikey)
}

// mkParty connects to the selected party, for multi-key ciphertexts.
func mkParty(o *cli.Operator) (*mkclient.Party, *multikey.Context, *cli.Party, error) {
	context, err := mkContext(o)
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := o.DialParty()
	if err != nil {
		return nil, nil, nil, err
	}
	return mkclient.At(c.Conn, context.Scheme), context, c, nil
}
