package main

import (
	"strings"

	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/services/multikey"
)

// mkCommand is `lodge mk`.
func mkCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "mk",
		Short: "Compute on bits that parties have encrypted under keys of their own",
		Long: "Every party makes keys by itself, and publishes those that it takes to compute with bits under them. A netlist is\n" +
			"computed on bits under several parties' keys, by any party; these parties decrypt the result together.\n" +
			"docs/guides/multikey.md says what it is worth.",
	}
	cmd.AddCommand(mkNetlistCommand(), mkDecryptCommand(), mkAttestCommand(), mkSeedCommand())
	for _, sub := range []func(*operator) *cobra.Command{
		(*operator).mkKeysCommand, (*operator).mkEncryptCommand, (*operator).mkRegistryCommand, (*operator).mkEvaluateCommand, (*operator).mkJobsCommand,
	} {
		o := &operator{}
		c := sub(o)
		o.flags(c)
		for _, d := range append(c.Commands(), c) {
			if !d.HasSubCommands() {
				d.Long = strings.TrimSpace(d.Long + "\n\n" + connecting)
			}
		}
		cmd.AddCommand(c)
	}
	return cmd
}

// mkContext is the context of multi-key ciphertexts that the roster pins.
func (o *operator) mkContext() (*multikey.Context, error) {
	p, err := o.places()
	if err != nil {
		return nil, err
	}
	return multikey.ContextOf(p.roster.Multikey)
}

// mkParty connects to the party that was named, for multi-key ciphertexts.
func (o *operator) mkParty() (*mkclient.Party, *multikey.Context, *partyClient, error) {
	context, err := o.mkContext()
	if err != nil {
		return nil, nil, nil, err
	}
	c, err := o.dialParty()
	if err != nil {
		return nil, nil, nil, err
	}
	return mkclient.At(c.conn, context.Scheme), context, c, nil
}
