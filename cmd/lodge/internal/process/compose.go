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

// composePort is the port of the coordinator in the repository's docker-compose.yml.
const composePort = 7100

// composeCommand returns `lodge compose`.
func composeCommand() *cobra.Command {
	var parties, port int
	var out string
	cmd := cli.Command("compose", func(cmd *cobra.Command, _ []string) error {
		text, err := devnet.Compose(parties, port)
		if err != nil {
			return cli.Invalid("see `lodge compose --help`", "%v", err)
		}
		if out != "" {
			return os.WriteFile(out, text, 0o644)
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	})
	f := cmd.Flags()
	f.IntVar(&parties, "parties", 3, "number of parties")
	f.IntVar(&port, "port", composePort, "port of the coordinator on this machine; party i has this port + 1 + i, and the consoles the ports after these")
	f.StringVar(&out, "out", "", "write to this file instead of standard output")
	cmd.AddCommand(composeInitCommand())
	return cmd
}

// imageUser is the user of the processes in the image.
const imageUser = 65532

// composeInitCommand returns `lodge compose init`.
func composeInitCommand() *cobra.Command {
	o := devnet.Options{Console: true}
	user := imageUser
	cmd := cli.Command("init", func(cmd *cobra.Command, args []string) error {
		profiles := strings.Split(os.Getenv("COMPOSE_PROFILES"), ",")
		o.Postgres = o.Postgres || slices.Contains(profiles, "postgres") || slices.Contains(profiles, "*")
		if err := cli.RefuseLegacy(o.Params...); err != nil { // an existing cluster keeps its sets
			return err
		}
		made, err := devnet.Install(args[0], o, user)
		switch {
		case errors.Is(err, devnet.ErrOtherStore):
			return rpc.Errorf(rpc.Conflict, "stores cannot be moved: set or unset postgres in COMPOSE_PROFILES as when the cluster was made, or remove the cluster with `docker compose down --volumes`", "%v", err)
		case errors.Is(err, devnet.ErrInstalled):
			return rpc.Errorf(rpc.Conflict, "restore the volumes that belong together, or remove all of them with their data by `docker compose down --volumes`", "%v", err)
		case errors.Is(err, fs.ErrNotExist):
			return rpc.Errorf(rpc.NotFound, "mount a volume there: this command is for the containers of docker-compose.yml", "%v", err)
		case err != nil:
			return err
		}
		says := "a cluster of %d parties exists"
		if made {
			says = "wrote a cluster of %d parties"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), says+"; clients find it in %s\n", o.Parties, filepath.Join(args[0], "host"))
		return err
	})
	f := cmd.Flags()
	f.IntVar(&o.Parties, "parties", 3, "number of parties")
	f.StringVar(&o.Host, "host", "127.0.0.1", "address at which clients reach all processes")
	f.IntVar(&o.Port, "port", composePort, "port of the coordinator at that address; party i has this port + 1 + i, and the consoles the ports after these")
	f.StringSliceVar(&o.Params, "params", []string{params.Default}, "parameter sets to pin")
	f.BoolVar(&o.Dev, "dev", false, "accept key generation that is only passively secure")
	f.BoolVar(&o.Insecure, "allow-insecure-params", false, "accept parameter sets for tests")
	f.BoolVar(&o.Postgres, "postgres", false, "keep the parties' stores in the service postgres")
	f.IntVar(&user, "user", imageUser, "numeric user that the processes run as; if this command runs as root it gives the files to that user")
	cli.Complete(cmd, "params", cli.ParamsWords)
	return cmd
}
