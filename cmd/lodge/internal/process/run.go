package process

import (
	"fmt"
	"log/slog"
	"path/filepath"

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
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write the files of a development cluster",
		Long: "Write a roster, a certificate authority, certificates, keys and configurations for n parties, a coordinator and their\n" +
			"clients. One directory contains all secrets of all parties: this is for development only.",
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := cli.RefuseLegacy(append([]string{o.Multikey}, o.Params...)...); err != nil {
				return err
			}
			c, err := devnet.Write(args[0], o)
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if asJSON {
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
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Parties, "parties", 3, "number of parties")
	f.StringVar(&o.Host, "host", "127.0.0.1", "address that all processes listen on")
	f.IntVar(&o.Port, "port", 7100, "port of the coordinator; party i has this port + 1 + i; 0 selects free ports")
	f.StringSliceVar(&o.Params, "params", []string{params.Default}, "parameter sets to pin")
	f.StringVar(&o.Multikey, "multikey", "", "pin a context of multi-key ciphertexts, with this set")
	f.BoolVar(&o.Console, "console", false, "serve a console at every process, at the ports after the last party's")
	f.BoolVar(&o.Dev, "dev", false, "accept key generation that is only passively secure, including threshold keys")
	f.BoolVar(&o.Insecure, "allow-insecure-params", false, "accept parameter sets for tests")
	f.BoolVar(&asJSON, "json", false, "write the result as JSON")
	cli.Complete(cmd, "params", cli.AllSetWords)
	return cmd
}

// partyCommand returns `lodge party`.
func partyCommand() *cobra.Command {
	var file string
	var set []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "party",
		Short: "Run one party",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logs.New(cmd.ErrOrStderr(), asJSON)
			coredump.OffOrWarn(log) // before it has a secret
			f, err := config.LoadParty(file, set...)
			if err != nil {
				return cli.Misconfigured(err)
			}
			setUp(log, f.LogLevel, f.Settings)
			return party.Run(cmd.Context(), f, cli.Version(), log)
		},
	}
	cmd.Flags().StringVar(&file, "config", "party.yaml", "configuration of the party")
	cli.SetFlag(cmd, &set)
	cmd.Flags().BoolVar(&asJSON, "log-json", false, "log as JSON")
	return cmd
}

// coordinatorCommand returns `lodge coordinator`.
func coordinatorCommand() *cobra.Command {
	file := filepath.Join("coordinator.yaml")
	var set []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "coordinator",
		Short: "Run the coordinator",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logs.New(cmd.ErrOrStderr(), asJSON)
			coredump.OffOrWarn(log) // before it has a secret
			f, err := config.LoadCoordinator(file, set...)
			if err != nil {
				return cli.Misconfigured(err)
			}
			setUp(log, f.LogLevel, f.Settings)
			return coordinator.Run(cmd.Context(), f, cli.Version(), log)
		},
	}
	cmd.Flags().StringVar(&file, "config", file, "configuration of the coordinator")
	cli.SetFlag(cmd, &set)
	cmd.Flags().BoolVar(&asJSON, "log-json", false, "log as JSON")
	return cmd
}

// evaluatorCommand returns `lodge evaluator`.
func evaluatorCommand() *cobra.Command {
	var file string
	var set []string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "evaluator",
		Short: "Run an evaluator, which computes products for one party",
		Long: "Compute products under encryption for the one party that the configuration names. An evaluator holds no secrets of the\n" +
			"party; docs/guides/evaluators.md describes when a party uses its results.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			log := logs.New(cmd.ErrOrStderr(), asJSON)
			coredump.OffOrWarn(log) // it has a TLS key
			f, err := config.LoadEvaluator(file, set...)
			if err != nil {
				return cli.Misconfigured(err)
			}
			setUp(log, f.LogLevel, f.Settings)
			return evaluator.Run(cmd.Context(), f, cli.Version(), log)
		},
	}
	cmd.Flags().StringVar(&file, "config", "evaluator.yaml", "configuration of the evaluator")
	cli.SetFlag(cmd, &set)
	cmd.Flags().BoolVar(&asJSON, "log-json", false, "log as JSON")
	return cmd
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
