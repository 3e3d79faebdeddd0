package multikey

import (
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/multikey"
)

// publishedRecord is the JSON form of a version of keys.
type publishedRecord struct {
	Owner   string `json:"owner"`
	Version uint64 `json:"version"`
	Key     string `json:"key"`
	State   string `json:"state"`
	Present bool   `json:"present"`
	Weak    bool   `json:"weak_owner"` // identified by only 32 bits of a hash of the owner's signing key
}

type publishedList struct {
	Params string            `json:"params"`
	CRS    string            `json:"crs"`
	Keys   []publishedRecord `json:"keys"`
}

func mkRegistryCommand(o *cli.Operator) *cobra.Command {
	cmd := cli.Command("registry", nil)
	list := cli.Command("list", func(cmd *cobra.Command, _ []string) error { return mkRegistryList(o, cmd) })
	o.PartyFlag(cmd, "the party, by name or index")
	cmd.AddCommand(list, mkRegistryFetchCommand(o))
	return cmd
}

func mkRegistryFetchCommand(o *cli.Operator) *cobra.Command {
	var out string
	cmd := cli.Command("fetch", func(cmd *cobra.Command, args []string) error { return mkRegistryFetch(o, cmd, args[0], out) })
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func mkRegistryFetch(o *cli.Operator, cmd *cobra.Command, name, out string) error {
	id, err := hex.DecodeString(name)
	if err != nil || len(id) != len(multikey.KeyID{}) {
		return cli.Invalid("use one of the digests that `lodge mk registry list` shows", "%.80q is not the digest of keys", name)
	}
	if err := cli.CheckNewFile(out); err != nil {
		return err
	}
	p, _, c, err := mkParty(o)
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	progress := cli.ProgressOf(cmd)
	defer progress.Done()
	k, err := p.Keys(cmd.Context(), multikey.KeyID(id), func(chunks, of int) { progress.Show(fmt.Sprintf("%d of %d chunks", chunks, of), false) })
	progress.Done()
	if err != nil {
		return cli.FromClient(err)
	}
	digests := k.ChunkDigests()
	err = cli.WriteNewFile(out, 0o644, func(w io.Writer) error {
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
	return cli.Print(cmd, map[string]string{"file": out, "key": name}, "%s: keys %s\n", out, name)
}

func mkRegistryList(o *cli.Operator, cmd *cobra.Command) error {
	p, pinned, c, err := mkParty(o)
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), cli.CallTime)
	defer cancel()
	keys, err := p.Published(ctx)
	if err != nil {
		return cli.FromClient(err)
	}
	crs := pinned.CRS()
	out := publishedList{Params: pinned.Name, CRS: hex.EncodeToString(crs[:]), Keys: []publishedRecord{}}
	for _, k := range keys {
		out.Keys = append(out.Keys, publishedRecord{k.GetName(), k.GetVersion(), hex.EncodeToString(k.GetKey()), k.GetState(), k.GetPresent(), k.GetWeakOwner()})
	}
	return cli.Write(cmd, out, func(w io.Writer) error {
		err := cli.PrintTable(w, "", "OWNER\tVERSION\tSTATE\tHERE\tKEY", out.Keys, func(k publishedRecord) []any {
			key := k.Key
			if k.Weak {
				key += "  weak owner"
			}
			return []any{k.Owner, k.Version, k.State, k.Present, key}
		})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(out.Keys, func(k publishedRecord) bool { return k.Weak && k.State == "current" }) {
			_, err = fmt.Fprintln(w, "weak owner: made by an older version, which bound keys to 32 bits of their owner's signing key; `lodge mk keys generate` at the owner replaces them")
		}
		return err
	})
}
