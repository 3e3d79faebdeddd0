package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// publishedRecord is the JSON of a version of keys.
type publishedRecord struct {
	Owner   string `json:"owner"`
	Version uint64 `json:"version"`
	Key     string `json:"key"`
	State   string `json:"state"`
	Present bool   `json:"present"`
}

type publishedList struct {
	Params string            `json:"params"`
	CRS    string            `json:"crs"`
	Keys   []publishedRecord `json:"keys"`
}

func (o *operator) mkRegistryCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "See whose public keys for multi-key ciphertexts a party has",
	}
	list := &cobra.Command{
		Use:   "list",
		Short: "List the versions of all parties' keys that a party knows",
		Long: "List the versions of the public keys of all parties, as the party knows them: what is current can be computed with,\n" +
			"where the party has the keys themselves.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.mkRegistryList(cmd) },
	}
	o.partyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(list)
	return cmd
}

func (o *operator) mkRegistryList(cmd *cobra.Command) error {
	p, pinned, c, err := o.mkParty()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), callTime)
	defer cancel()
	keys, err := p.Published(ctx)
	if err != nil {
		return plain(err)
	}
	crs := pinned.CRS()
	out := publishedList{Params: pinned.Name, CRS: hex.EncodeToString(crs[:]), Keys: []publishedRecord{}}
	for _, k := range keys {
		out.Keys = append(out.Keys, publishedRecord{k.GetName(), k.GetVersion(), hex.EncodeToString(k.GetKey()), k.GetState(), k.GetPresent()})
	}
	if o.json {
		return writeIndented(cmd.OutOrStdout(), out)
	}
	w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "OWNER\tVERSION\tSTATE\tHERE\tKEY")
	for _, k := range out.Keys {
		here := "no"
		if k.Present {
			here = "yes"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", k.Owner, k.Version, k.State, here, k.Key)
	}
	return w.Flush()
}
