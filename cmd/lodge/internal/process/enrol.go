package process

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/enrol"
)

// enrolReport is the JSON outcome of `lodge enrol`.
type enrolReport struct {
	Dir     string   `json:"dir"`
	Secrets []string `json:"secrets"`
	Public  []string `json:"public"`
}

// enrolCommand returns `lodge enrol`.
func enrolCommand() *cobra.Command {
	o := enrol.Options{}
	cmd := cli.Command("enrol", func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(enrol.Roles, o.Role) {
			return cli.Invalid("write one of "+strings.Join(enrol.Roles, ", "), "--role %q", o.Role)
		}
		secrets, err := enrol.Write(args[0], o)
		if err != nil {
			return cli.Invalid("see `lodge enrol --help`", "%v", err)
		}
		r := enrolReport{Dir: args[0], Secrets: secrets, Public: []string{enrol.RequestFile}}
		if o.Role == enrol.Party || o.Role == enrol.Coordinator {
			r.Public = append(r.Public, enrol.EntryFile)
		}
		return cli.Print(cmd, r, "wrote to %s\n  to keep: %s\n  to hand out: %s\n", r.Dir, strings.Join(r.Secrets, ", "), strings.Join(r.Public, ", "))
	})
	f := cmd.Flags()
	f.StringVar(&o.Role, "role", enrol.Party, strings.Join(enrol.Roles, ", "))
	f.StringVar(&o.Name, "name", "", "name of the party, client or evaluator")
	f.StringVar(&o.Address, "address", "", "host:port at which other processes reach the party or the coordinator")
	f.StringVar(&o.Identity, "identity", "", "URI or DNS name in its certificate (default spiffe://lodge/ROLE/NAME)")
	f.StringSliceVar(&o.Hosts, "host", nil, "further host names and addresses in its certificate")
	f.Bool("json", false, "write the result as JSON")
	return cmd
}

// rosterCommand returns `lodge roster`.
func rosterCommand() *cobra.Command {
	cmd := cli.Command("roster", nil)
	cmd.AddCommand(rosterJoinCommand(), rosterShowCommand())
	return cmd
}

func rosterJoinCommand() *cobra.Command {
	var out, transcript string
	cmd := cli.Command("join", func(cmd *cobra.Command, args []string) error {
		r, err := config.Join(args)
		if errors.Is(err, fs.ErrNotExist) {
			return rpc.Errorf(rpc.NotFound, "name the entry.yaml files that `lodge enrol` wrote", "%v", err)
		}
		if err != nil {
			return cli.Invalid("name the entries of at least two parties and of the coordinator", "%v", err)
		}
		if transcript != "" {
			if err := cli.AddToss(r, transcript); err != nil {
				return err
			}
		}
		text, err := r.Text()
		if err != nil {
			return err
		}
		if out != "" {
			return os.WriteFile(out, text, 0o644)
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	})
	cmd.Flags().StringVar(&out, "out", "", "write to this file instead of standard output")
	cmd.Flags().StringVar(&transcript, "toss", "", "transcript of the toss for the seed of multi-key keys")
	return cmd
}

// rosterReport is the JSON outcome of `lodge roster show`.
type rosterReport struct {
	Digest      string         `json:"digest"`
	Parties     []rosterMember `json:"parties"`
	Coordinator rosterMember   `json:"coordinator"`
}

type rosterMember struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Identity   string `json:"identity"`
	SigningKey string `json:"signing_key,omitempty"`
}

func rosterShowCommand() *cobra.Command {
	cmd := cli.Command("show", func(cmd *cobra.Command, args []string) error {
		roster, err := config.LoadRoster(filepath.Clean(args[0]))
		if err != nil {
			return cli.Misconfigured(err)
		}
		hash := roster.Hash()
		r := rosterReport{Digest: hex.EncodeToString(hash[:]),
			Coordinator: rosterMember{Name: config.CoordinatorName, Address: roster.Coordinator.Address, Identity: roster.Coordinator.Identity}}
		for _, m := range roster.Parties {
			r.Parties = append(r.Parties, rosterMember{Name: m.Name, Address: m.Address, Identity: m.Identity, SigningKey: m.SigningKey})
		}
		return cli.Write(cmd, r, func(w io.Writer) error {
			t := cli.NewTable(w)
			for _, m := range append(r.Parties, r.Coordinator) {
				fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", m.Name, m.Address, m.Identity, m.SigningKey)
			}
			fmt.Fprintf(t, "digest %s\n", r.Digest)
			return t.Flush()
		})
	})
	cmd.Flags().Bool("json", false, "write JSON")
	return cmd
}
