package process

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/coordinator"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/coredump"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/offline/evaluator"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/party"
)

// InitReport is the JSON outcome of `lodge init`: the cluster's directory and its configuration
// files.
type InitReport struct {
	Dir         string   `json:"dir"`
	Coordinator string   `json:"coordinator"`
	Parties     []string `json:"parties"`
	Clients     []string `json:"clients"`
}

// initCommand returns `lodge init`.
func initCommand() *cobra.Command {
	o := devnet.Options{}
	cmd := cli.Command("init", func(cmd *cobra.Command, args []string) error {
		if err := cli.RefuseLegacy(append([]string{o.Multikey}, o.Params...)...); err != nil {
			return err
		}
		c, err := devnet.Write(args[0], o)
		if err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		if cli.JSON(cmd) {
			return cli.WriteJSON(w, InitReport{Dir: c.Dir, Coordinator: c.Coordinator, Parties: c.Parties, Clients: c.Clients})
		}
		fmt.Fprintf(w, "wrote %d parties and a coordinator to %s; start them with\n", o.Parties, c.Dir)
		fmt.Fprintf(w, "  lodge coordinator --config %s\n", c.Coordinator)
		for _, p := range c.Parties {
			fmt.Fprintf(w, "  lodge party --config %s\n", p)
		}
		fmt.Fprintf(w, "Programs find the cluster by the clients' configurations, such as %s.\n", c.Clients[0])
		for _, name := range o.Params {
			if set, err := plan.Lookup(name); !o.Dev && err == nil && set.Threshold {
				fmt.Fprintf(w, "The parties reject threshold keys such as those of %s, which are secure only against parties that follow the protocol: --dev accepts them.\n", name)
			}
			if set, err := params.Lookup(name); !o.Dev && err == nil && set.Keys != params.KeysProved {
				fmt.Fprintf(w, "The parties refuse to make keys with %s, whose parameters do not allow proofs of key shares: --dev accepts it.\n", name)
			}
		}
		return nil
	})
	f := cmd.Flags()
	f.IntVar(&o.Parties, "parties", 3, "number of parties")
	f.StringVar(&o.Host, "host", "127.0.0.1", "address that all processes listen on")
	f.IntVar(&o.Port, "port", 7100, "port of the coordinator; party i has this port + 1 + i; 0 selects free ports")
	f.StringSliceVar(&o.Params, "params", []string{params.Default}, "parameter sets to pin")
	f.StringVar(&o.Multikey, "multikey", "", "pin a context of multi-key ciphertexts, with this set")
	f.BoolVar(&o.Console, "console", false, "serve a console at every process, at the ports after the last party's")
	f.BoolVar(&o.Dev, "dev", false, "accept key generation that is only passively secure, including threshold keys")
	f.BoolVar(&o.Insecure, "allow-insecure-params", false, "accept parameter sets for tests")
	f.Bool("json", false, "write the result as JSON")
	cli.Complete(cmd, "params", cli.AllSetWords)
	return cmd
}

// processCommand returns a command that runs a process with a configuration until a signal ends it.
func processCommand(name string, run func(ctx context.Context, log *slog.Logger, file string, set []string) error) *cobra.Command {
	var file string
	var set []string
	var logJSON bool
	cmd := cli.Command(name, func(cmd *cobra.Command, _ []string) error {
		log := logs.New(cmd.ErrOrStderr(), logJSON)
		coredump.OffOrWarn(log) // before it has a secret
		return run(cmd.Context(), log, file, set)
	})
	cmd.Flags().StringVar(&file, "config", name+".yaml", "configuration of the "+name)
	cli.SetFlag(cmd, &set)
	cmd.Flags().BoolVar(&logJSON, "log-json", false, "log as JSON")
	return cmd
}

func runParty(ctx context.Context, log *slog.Logger, file string, set []string) error {
	f, err := config.LoadParty(file, set...)
	if err != nil {
		return cli.Misconfigured(err)
	}
	setUp(log, f.LogLevel, f.Settings)
	return party.Run(ctx, f, cli.Version(), log)
}

func runCoordinator(ctx context.Context, log *slog.Logger, file string, set []string) error {
	f, err := config.LoadCoordinator(file, set...)
	if err != nil {
		return cli.Misconfigured(err)
	}
	setUp(log, f.LogLevel, f.Settings)
	return coordinator.Run(ctx, f, cli.Version(), log)
}

func runEvaluator(ctx context.Context, log *slog.Logger, file string, set []string) error {
	f, err := config.LoadEvaluator(file, set...)
	if err != nil {
		return cli.Misconfigured(err)
	}
	setUp(log, f.LogLevel, f.Settings)
	return evaluator.Run(ctx, f, cli.Version(), log)
}

// setUp sets the log level of a process, and logs the settings that do not come from the file.
// Configurations contain no secrets, only the paths of secrets.
func setUp(log *slog.Logger, level string, list []config.Setting) {
	if l, err := logs.ParseLevel(level); err == nil {
		logs.LevelOf(log).Configure(l)
	}
	for _, s := range list {
		log.Info("setting", "key", s.Key, "value", s.Value, "from", s.From)
	}
}
