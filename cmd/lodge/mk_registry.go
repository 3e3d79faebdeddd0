package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/engine/multikey"
)

// publishedRecord is the JSON of a version of keys.
type publishedRecord struct {
	Owner   string `json:"owner"`
	Version uint64 `json:"version"`
	Key     string `json:"key"`
	State   string `json:"state"`
	Present bool   `json:"present"`
	Weak    bool   `json:"weak_owner"` // named by 32 bits of a hash of the owner's signing key only
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
	cmd.AddCommand(list, o.mkRegistryFetchCommand())
	return cmd
}

func (o *operator) mkRegistryFetchCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "fetch KEY --out FILE",
		Short: "Write public keys that a party has to a file, checked by their name",
		Long: "Fetch the public keys of a name, which `lodge mk registry list` shows, check every chunk, and write the header, the\n" +
			"digests of the chunks, and the chunks into a new file.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return o.mkRegistryFetch(cmd, args[0], out) },
	}
	cmd.Flags().StringVar(&out, "out", "", "file to make")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (o *operator) mkRegistryFetch(cmd *cobra.Command, name, out string) error {
	id, err := hex.DecodeString(name)
	if err != nil || len(id) != len(multikey.KeyID{}) {
		return invalid("write one of those that `lodge mk registry list` shows", "%.80q is no name of keys", name)
	}
	if err := absentFile(out); err != nil {
		return err
	}
	p, _, c, err := o.mkParty()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	progress := progressOf(cmd, o.json)
	defer progress.Done()
	k, err := p.Keys(cmd.Context(), multikey.KeyID(id), func(chunks, of int) { progress.Show(fmt.Sprintf("%d of %d chunks", chunks, of), false) })
	progress.Done()
	if err != nil {
		return plain(err)
	}
	digests := k.ChunkDigests()
	err = writeNew(out, 0o644, func(w io.Writer) error {
		b := k.Header()
		for _, d := range digests {
			b = append(b, d[:]...)
		}
		_, err := w.Write(b)
		for i := 0; err == nil && i < len(digests); i++ {
			_, err = w.Write(k.AppendChunk(nil, i))
		}
		return err
	})
	if err != nil {
		return err
	}
	if o.json {
		return writeIndented(cmd.OutOrStdout(), map[string]string{"file": out, "key": name})
	}
	_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: keys %s\n", out, name)
	return err
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
		out.Keys = append(out.Keys, publishedRecord{k.GetName(), k.GetVersion(), hex.EncodeToString(k.GetKey()), k.GetState(), k.GetPresent(), k.GetWeakOwner()})
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
		key := k.Key
		if k.Weak {
			key += "  weak owner"
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", k.Owner, k.Version, k.State, here, key)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(out.Keys, func(k publishedRecord) bool { return k.Weak && k.State == "current" }) {
		_, err = fmt.Fprintln(cmd.OutOrStdout(), "weak owner: made by an older version, which bound keys to 32 bits of their owner's signing key; `lodge mk keys make` at the owner replaces them")
	}
	return err
}
