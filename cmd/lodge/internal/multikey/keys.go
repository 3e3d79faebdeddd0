package multikey

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// withOwner connects to the selected party as its own client, and calls f.
func withOwner(o *cli.Operator, cmd *cobra.Command, f func(context.Context, *mkclient.Client, int) error) error {
	c, party, err := owner(o)
	if err != nil {
		return err
	}
	defer c.Close()
	return cli.FromClient(f(cmd.Context(), c, party))
}

// owner connects to all parties as the client that the flags select, and returns the index of the
// selected party.
func owner(o *cli.Operator) (*mkclient.Client, int, error) {
	c, roster, err := o.Configuration()
	if err != nil {
		return nil, 0, err
	}
	party, known := roster.Index(o.Party)
	if !known {
		return nil, 0, rpc.Errorf(rpc.Invalid, "name a party of the roster", "--party %q", o.Party)
	}
	x, err := mkclient.Dial(c)
	return x, party, cli.FromClient(err)
}

// mkKeysCommand returns `lodge mk keys`.
func mkKeysCommand(o *cli.Operator) *cobra.Command {
	cmd := cli.Command("keys", nil)
	o.PartyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(mkKeysGenerateCommand(o, "generate"), cli.Former(mkKeysGenerateCommand(o, "make"), "mk keys generate"), mkKeysListCommand(o), mkKeysDestroyCommand(o))
	return cmd
}

func printOwnKeys(cmd *cobra.Command, list []*mkclient.OwnKeys) error {
	return cli.PrintTable(cmd.OutOrStdout(), "", "VERSION\tSTATE\tSET\tKEYS\tSIZE\tAGE\tREASON", list, func(k *mkclient.OwnKeys) []any {
		state := k.State
		if k.State == "active" && !k.Pinned {
			state = "of another context"
		}
		return []any{k.Version, state, k.Params, fmt.Sprintf("%.16s", k.Name), cli.Size(float64(k.Bytes)),
			time.Since(k.Created).Round(time.Second), k.Reason}
	})
}

func mkKeysGenerateCommand(o *cli.Operator, name string) *cobra.Command {
	return cli.Command(name, func(cmd *cobra.Command, _ []string) error {
		return withOwner(o, cmd, func(ctx context.Context, c *mkclient.Client, party int) error {
			k, err := c.MakeKeys(ctx, party)
			if err != nil {
				return err
			}
			return cli.Write(cmd, k, func(w io.Writer) error { return printOwnKeys(cmd, []*mkclient.OwnKeys{k}) })
		})
	})
}

func mkKeysListCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		return withOwner(o, cmd, func(ctx context.Context, c *mkclient.Client, party int) error {
			list, err := c.ListKeys(ctx, party)
			if err != nil {
				return err
			}
			return cli.Write(cmd, struct {
				Keys []*mkclient.OwnKeys `json:"keys"`
			}{append([]*mkclient.OwnKeys{}, list...)}, func(w io.Writer) error {
				if len(list) == 0 {
					_, err := fmt.Fprintln(w, "no keys")
					return err
				}
				return printOwnKeys(cmd, list)
			})
		})
	})
}

func mkKeysDestroyCommand(o *cli.Operator) *cobra.Command {
	var sure cli.Confirmation
	var reason string
	cmd := cli.Command("destroy", func(cmd *cobra.Command, args []string) error {
		version, err := strconv.ParseUint(args[0], 10, 64)
		if err != nil || version == 0 {
			return cli.Invalid("`lodge mk keys list` lists the versions", "version %q", args[0])
		}
		return withOwner(o, cmd, func(ctx context.Context, c *mkclient.Client, party int) error {
			list, err := c.ListKeys(ctx, party)
			if err != nil {
				return err
			}
			var found []*mkclient.OwnKeys
			for _, k := range list {
				if k.Version == version {
					found = append(found, k)
				}
			}
			if len(found) == 0 {
				return rpc.Errorf(rpc.NotFound, "`lodge mk keys list` lists the versions", "party %s has no version %d of its own keys", o.Party, version)
			}
			if goOn, err := sure.Before(func() error { return printOwnKeys(cmd, found) }); err != nil || !goOn {
				return err
			}
			k, err := c.DestroyKeys(ctx, party, version, reason)
			if err != nil {
				return err
			}
			return cli.Write(cmd, k, func(w io.Writer) error { return printOwnKeys(cmd, []*mkclient.OwnKeys{k}) })
		})
	})
	cmd.Flags().StringVar(&reason, "reason", "", "reason, for the party's records")
	sure.Flags(cmd)
	return cmd
}
