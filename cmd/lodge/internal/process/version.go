package process

import (
	"encoding/hex"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/params"
)

// versionCommand returns `lodge version`.
func versionCommand() *cobra.Command {
	cmd := cli.Command("version", func(cmd *cobra.Command, _ []string) error {
		r := cli.Build()
		for _, s := range params.Sets() {
			hash := s.Hash()
			r.Sets = append(r.Sets, cli.VersionOfASet{Name: s.Name, Insecure: s.Insecure, Hash: hex.EncodeToString(hash[:])})
		}
		return cli.Write(cmd, r, func(w io.Writer) error {
			commit := cli.OrDash(r.Commit)
			if r.Modified {
				commit += ", with local changes"
			}
			t := cli.NewTable(w)
			fmt.Fprintf(t, "lodge\t%s\ncommit\t%s\nbuilt with\t%s for %s\nprotocol\t%d\n", r.Version, commit, r.Go, r.Platform, r.Protocol)
			for _, s := range r.Sets {
				if !s.Insecure {
					fmt.Fprintf(t, "%s\t%s\n", s.Name, s.Hash)
				}
			}
			return t.Flush()
		})
	})
	cmd.Flags().Bool("json", false, "write JSON, including the parameter sets for tests")
	return cmd
}
