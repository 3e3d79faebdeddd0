package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// composePort is that of the coordinator in docker-compose.yml, as it is in the repository.
const composePort = 7100

// composeCommand is `lodge compose`.
func composeCommand() *cobra.Command {
	var parties, port int
	var out string
	cmd := &cobra.Command{
		Use:   "compose",
		Short: "Write a cluster of n parties for Docker Compose",
		Long: "Write the file for Docker Compose with which `docker compose up` runs a coordinator and n parties on this machine.\n" +
			"The one in the repository is for three; docs/guides/compose.md says how to use it.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := devnet.Compose(parties, port)
			if err != nil {
				return cli.Invalid("see `lodge compose --help`", "%v", err)
			}
			if out != "" {
				return os.WriteFile(out, text, 0o644)
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&parties, "parties", 3, "number of parties")
	f.IntVar(&port, "port", composePort, "port of the coordinator on this machine; party i has the one that is 1+i higher")
	f.StringVar(&out, "out", "", "write to this file instead of standard output")
	cmd.AddCommand(composeInitCommand())
	return cmd
}

// imageUser is who processes run as in the image.
const imageUser = 65532

// composeInitCommand is `lodge compose init`.
func composeInitCommand() *cobra.Command {
	o := devnet.Options{}
	user := imageUser
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Put a cluster into the volumes of containers, where there is none",
		Long: "Write certificates, keys, a roster and configurations into directories under DIR that are mounted from elsewhere: one\n" +
			"for each process with its own secrets only, `clients` with what clients need, and a copy of that into `host`. Where\n" +
			"there is a cluster already only that copy is seen to. The service `init` of docker-compose.yml does this. If the\n" +
			"environment's COMPOSE_PROFILES has postgres in it, that is --postgres.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			profiles := strings.Split(os.Getenv("COMPOSE_PROFILES"), ",")
			o.Postgres = o.Postgres || slices.Contains(profiles, "postgres") || slices.Contains(profiles, "*")
			if err := cli.RefuseLegacy(o.Params...); err != nil { // an existing cluster is installed again with the sets that it has
				return err
			}
			made, err := devnet.Install(args[0], o, user)
			switch {
			case errors.Is(err, devnet.ErrOtherStore):
				return rpc.Errorf(rpc.Conflict, "stores cannot be moved: have postgres in COMPOSE_PROFILES or not, as when the cluster was made, or remove the cluster with `docker compose down --volumes`", "%v", err)
			case errors.Is(err, devnet.ErrInstalled):
				return rpc.Errorf(rpc.Conflict, "give back the volumes that belong together, or remove all of them and what they hold with `docker compose down --volumes`", "%v", err)
			case errors.Is(err, fs.ErrNotExist):
				return rpc.Errorf(rpc.NotFound, "mount one there: this is for the containers of docker-compose.yml", "%v", err)
			case err != nil:
				return err
			}
			says := "a cluster of %d parties is there"
			if made {
				says = "wrote a cluster of %d parties"
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), says+"; clients find it in %s\n", o.Parties, filepath.Join(args[0], "host"))
			return err
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Parties, "parties", 3, "number of parties")
	f.StringVar(&o.Host, "host", "127.0.0.1", "address at which clients find all processes")
	f.IntVar(&o.Port, "port", composePort, "port of the coordinator there; party i has the one that is 1+i higher")
	f.StringSliceVar(&o.Params, "params", []string{params.Default}, "parameter sets to pin")
	f.BoolVar(&o.Dev, "dev", false, "accept key generation that is only passively secure")
	f.BoolVar(&o.Insecure, "allow-insecure-params", false, "accept parameter sets for tests")
	f.BoolVar(&o.Postgres, "postgres", false, "keep the parties' stores in the service postgres")
	f.IntVar(&user, "user", imageUser, "who processes run as, by number; this command gives files away if it runs as root")
	cli.Complete(cmd, "params", cli.ParamsWords)
	return cmd
}
