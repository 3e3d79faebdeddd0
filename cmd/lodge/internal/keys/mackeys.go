package keys

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// macKeysCommand returns `lodge mac-keys`.
func macKeysCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("mac-keys", nil)
	o.Flags(cmd)
	o.PartyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(macKeysListCommand(o), macKeysDrawCommand(o), macKeysReportCommand(o))
	return cmd
}

type MacKeyRecord struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Epoch   uint64 `json:"epoch"`
	Field   string `json:"field"`
	Tenant  string `json:"tenant"`
	Created string `json:"created"`
	Reason  string `json:"reason,omitempty"`
	Failed  uint32 `json:"failed_checks,omitempty"`
}

func macKeyJSON(k *tuplesv1.MacKey) MacKeyRecord {
	return MacKeyRecord{k.GetId(), cli.Word(k.GetState()), k.GetEpoch(), k.GetField(), k.GetTenant(), cli.Time(k.GetCreated()), k.GetReason(), k.GetFailedChecks()}
}

func macKeysListCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			r, err := c.ListMacKeys(ctx, &tuplesv1.ListMacKeysRequest{})
			if err != nil {
				return err
			}
			if cli.JSON(cmd) {
				return cli.WriteJSON(cmd.OutOrStdout(), map[string]any{"keys": cli.Each(r.GetKeys(), macKeyJSON)})
			}
			return cli.PrintTable(cmd.OutOrStdout(), "no MAC keys", "ID\tSTATE\tEPOCH\tFIELD\tTENANT\tAGE\tFAILED\tREASON", r.GetKeys(), func(k *tuplesv1.MacKey) []any {
				return []any{k.GetId(), cli.Word(k.GetState()), k.GetEpoch(), k.GetField(), k.GetTenant(),
					time.Since(k.GetCreated().AsTime()).Round(time.Second), k.GetFailedChecks(), k.GetReason()}
			})
		})
	})
}

// drawing holds the flags of `lodge mac-keys draw`.
type drawing struct {
	cli.Confirmation
	out, into string
	pool      bool
}

func macKeysDrawCommand(o *cli.Operator) *cobra.Command {
	d := &drawing{}
	cmd := cli.Command("draw", func(cmd *cobra.Command, args []string) error {
		if err := d.check(); err != nil {
			return err
		}
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error { return drawKey(o, ctx, cmd, c, args[0], d) })
	}, o.CompleteMACKeys)
	cmd.Flags().StringVar(&d.out, "out", "", "file to create")
	cmd.Flags().StringVar(&d.into, "into", "", "with --pool: directory of fetched shares, whose manifest receives the share")
	cmd.Flags().BoolVar(&d.pool, "pool", false, "the share will be added to others, which retires its epoch")
	d.Flags(cmd)
	return cmd
}

// check rejects outputs that cannot be written, before the key is drawn.
func (d *drawing) check() error {
	switch {
	case (d.out == "") == (d.into == ""):
		return rpc.Errorf(rpc.Invalid, "use one of the two", "--out %q and --into %q", d.out, d.into)
	case d.into != "" && !d.pool:
		return rpc.Errorf(rpc.Invalid, "`lodge fetch --with-mac-key` adds the share for an online phase", "--into without --pool")
	case d.into == "":
		return cli.CheckNewFile(d.out)
	}
	if _, err := tuplefile.ReadManifest(d.into); err != nil {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge fetch` wrote", "%v", err)
	}
	return nil
}

// fits returns an error if the key does not belong to the shares in the directory. Drawing it would
// retire it in vain.
func (d *drawing) fits(k *tuplesv1.MacKey, party int) error {
	if d.into == "" {
		return nil
	}
	m, err := tuplefile.ReadManifest(d.into)
	switch {
	case err != nil:
		return err
	case m.Epoch != k.GetEpoch() || m.Field != k.GetField() || m.Party != party:
		return rpc.Errorf(rpc.Invalid, "`lodge reservations show` prints the MAC key of a reservation", "%s has shares of party %d over %s of epoch %d, but MAC key %s of party %d is over %s of epoch %d",
			d.into, m.Party, m.Field, m.Epoch, k.GetId(), party, k.GetField(), k.GetEpoch())
	case m.MACKeyShare != "":
		return rpc.Errorf(rpc.Conflict, "run `lodge fetch` without --with-mac-key to check tuples", "%s already has a share of the MAC key", d.into)
	}
	return nil
}

func drawKey(o *cli.Operator, ctx context.Context, cmd *cobra.Command, c *cli.Party, id string, d *drawing) error {
	q := &tuplesv1.DrawMacKeyRequest{MacKeyId: id, Purpose: tuplesv1.Purpose_PURPOSE_ONLINE}
	if d.pool {
		k, err := macKey(c, ctx, id)
		if err == nil {
			err = d.fits(k, c.Index)
		}
		if err != nil {
			return err
		}
		if yes, err := d.Before(func() error { return showEpoch(o, ctx, cmd, c, k.GetEpoch()) }); !yes {
			return err
		}
		q.Purpose = tuplesv1.Purpose_PURPOSE_VERIFY
	}
	r, err := c.DrawMacKey(ctx, q)
	if err != nil {
		return err
	}
	defer clear(r.GetShare())
	file, share := d.out, lodge.Element(r.GetShare()).Int().String()
	if d.into != "" {
		file = filepath.Join(d.into, tuplefile.ManifestName)
		err = tuplefile.AddPooledKey(d.into, share)
	} else {
		err = writeSecret(d.out, share+"\n")
	}
	if err != nil {
		return err
	}
	return cli.Print(cmd, struct {
		MacKeyRecord
		Params string `json:"params"`
		File   string `json:"file"`
	}{macKeyJSON(r.GetKey()), r.GetParams(), file}, "%s has party %s's share of MAC key %s, over %s of %s\n", file, o.Party, id, r.GetKey().GetField(), r.GetParams())
}

// writeSecret creates a file that only its owner can read.
func writeSecret(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// macKey returns a MAC key of the party.
func macKey(c *cli.Party, ctx context.Context, id string) (*tuplesv1.MacKey, error) {
	r, err := c.ListMacKeys(ctx, &tuplesv1.ListMacKeysRequest{})
	if err != nil {
		return nil, err
	}
	for _, k := range r.GetKeys() {
		if k.GetId() == id {
			return k, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge mac-keys list` lists the MAC keys", "there is no MAC key %q at %s", id, c.Name)
}

func macKeysReportCommand(o *cli.Operator) *cobra.Command {
	ok := &cli.Confirmation{}
	q := &tuplesv1.ReportFailedCheckRequest{}
	cmd := cli.Command("report-failed", func(cmd *cobra.Command, args []string) error {
		q.MacKeyId = args[0]
		return o.CallParty(cmd, func(ctx context.Context, c *cli.Party) error {
			if yes, err := ok.Before(func() error { return showMACKey(o, ctx, cmd, c, args[0]) }); !yes {
				return err
			}
			r, err := c.ReportFailedCheck(ctx, q)
			if err != nil {
				return err
			}
			return cli.Print(cmd, struct {
				MacKeyRecord
				Batches uint32 `json:"batches"`
			}{macKeyJSON(r.GetKey()), r.GetBatches()}, "party %s: MAC key %s is burnt, and %d batches under it erased\n", o.Party, args[0], r.GetBatches())
		})
	}, o.CompleteMACKeys)
	cmd.Flags().StringVar(&q.Reason, "reason", "", "failed check, for the party's log")
	ok.Flags(cmd)
	return cmd
}

// showMACKey prints what burning a MAC key would erase.
func showMACKey(o *cli.Operator, ctx context.Context, cmd *cobra.Command, c *cli.Party, id string) error {
	k, err := macKey(c, ctx, id)
	if err != nil {
		return err
	}
	lost, err := left(c, ctx, k.GetEpoch(), id)
	if err != nil {
		return err
	}
	return cli.Print(cmd, struct {
		MacKeyRecord
		remains
		DryRun bool `json:"dry_run"`
	}{macKeyJSON(k), lost, true}, "party %s would burn MAC key %s, and erase %s\n", o.Party, id, lost)
}
