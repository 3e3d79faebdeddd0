package multikey

import (
	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// mkCommand returns `lodge mk`.
func mkCommand() *cobra.Command {
	cmd := cli.Command("mk", nil)
	cmd.AddCommand(mkNetlistCommand(), mkDecryptCommand(), mkAttestCommand(), mkSeedCommand())
	for _, sub := range []func(*cli.Operator) *cobra.Command{
		mkKeysCommand, mkEncryptCommand, mkRegistryCommand, mkEvaluateCommand, mkJobsCommand,
	} {
		o := &cli.Operator{}
		c := sub(o)
		o.Flags(c)
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
