package process

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// configCommand returns `lodge config`.
func configCommand() *cobra.Command {
	cmd := cli.Command("config", nil)
	cmd.AddCommand(configCheckCommand(), configKeysCommand())
	return cmd
}

// configReport is the JSON outcome for one file.
type configReport struct {
	File     string           `json:"file"`
	Of       string           `json:"of"` // party, coordinator, evaluator or roster
	Name     string           `json:"name,omitempty"`
	Listen   string           `json:"listen,omitempty"`
	Parties  int              `json:"parties"`
	Settings []settingReport  `json:"settings,omitempty"`
	Warnings []string         `json:"warnings,omitempty"` // about dangerous settings
	Error    string           `json:"error,omitempty"`
	settings []config.Setting // files that were read
}

type settingReport struct {
	Key   string `json:"key"`
	Value string `json:"value"`
	From  string `json:"from"`
}

func configCheckCommand() *cobra.Command {
	var set []string
	cmd := cli.Command("check", func(cmd *cobra.Command, args []string) error {
		list, bad, absent := []configReport{}, 0, 0
		for _, path := range args {
			r, err := checkConfig(path, set)
			if err != nil {
				bad++
				r.Error = err.Error()
			}
			if errors.Is(err, fs.ErrNotExist) {
				absent++
			}
			list = append(list, r)
		}
		w := cmd.OutOrStdout()
		if cli.JSON(cmd) {
			if err := cli.WriteJSON(w, map[string]any{"files": list}); err != nil {
				return err
			}
		} else {
			printConfigs(w, list)
		}
		switch {
		case bad == 0:
			return nil
		case absent == bad:
			return rpc.Errorf(rpc.NotFound, "name existing files, such as CLUSTER/p0/party.yaml", "%d of %d files are missing, or files that they refer to", bad, len(args))
		default:
			return cli.Invalid("correct them as docs/operations/operate.md describes", "%d of %d files are invalid", bad, len(args))
		}
	})
	cmd.Flags().Bool("json", false, "write JSON")
	cli.SetFlag(cmd, &set)
	return cmd
}

// checkConfig loads a file as the type that its keys indicate.
func checkConfig(path string, set []string) (configReport, error) {
	r := configReport{File: path}
	b, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	var keys map[string]any
	if err := yaml.Unmarshal(b, &keys); err != nil {
		return r, fmt.Errorf("config: %s: %w", path, err)
	}
	_, parties := keys["parties"]
	_, signing := keys["signing_key"]
	_, data := keys["data_dir"]
	_, owner := keys["party"]
	switch {
	case parties:
		r.Of = "roster"
		roster, err := config.LoadRoster(path)
		if err == nil {
			r.Parties = len(roster.Parties)
			if m := roster.Multikey; m != nil {
				r.Warnings = plan.Warnings(m.Set)
			}
		}
		return r, err
	case data && !signing:
		r.Of, r.Name = "coordinator", config.CoordinatorName
		f, err := config.LoadCoordinator(path, set...)
		if err == nil {
			r.Listen, r.Parties, r.settings, r.Warnings = f.Listen, len(f.Roster.Parties), f.Settings, warnings(f.Params)
		}
		return r.withSettings(), err
	case owner && !signing:
		r.Of = "evaluator"
		f, err := config.LoadEvaluator(path, set...)
		if err == nil {
			r.Name, r.Listen, r.settings, r.Warnings = f.Name, f.Listen, f.Settings, warnings(f.Params)
		}
		return r.withSettings(), err
	case signing:
		r.Of = "party"
		f, err := config.LoadParty(path, set...)
		if err == nil {
			r.Name, r.Listen, r.Parties, r.settings = f.Name, f.Listen, len(f.Roster.Parties), f.Settings
			r.Warnings = warnings(f.Policy.Params)
			readers := f.Threshold.KeyReaders()
			for i := range readers {
				r.Warnings = append(r.Warnings, "threshold.rules: "+readers[i].Warning())
			}
		}
		return r.withSettings(), err
	}
	return r, errors.New("not a configuration of a party (which has signing_key), of a coordinator (data_dir) or of an evaluator (party), and not a roster (parties)")
}

// warnings returns the warnings about the pinned sets.
func warnings(pins []config.ParamsPin) []string {
	var names []string
	for _, p := range pins {
		names = append(names, p.Name)
	}
	return plan.Warnings(names...)
}

func (r configReport) withSettings() configReport {
	for _, s := range r.settings {
		r.Settings = append(r.Settings, settingReport{Key: s.Key, Value: s.Value, From: s.From})
	}
	return r
}

func printConfigs(w io.Writer, list []configReport) {
	for _, r := range list {
		switch {
		case r.Error != "":
			fmt.Fprintf(w, "%s: invalid\n"+
				"  %s\n", r.File, r.Error)
			continue
		case r.Of == "roster":
			fmt.Fprintf(w, "%s: a roster of %d parties\n", r.File, r.Parties)
			printWarnings(w, r)
			continue
		}
		parties := ""
		if r.Parties > 0 {
			parties = fmt.Sprintf(", with %d parties", r.Parties)
		}
		fmt.Fprintf(w, "%s: of %s %s%s, listens on %s\n", r.File, r.Of, r.Name, parties, r.Listen)
		for _, s := range r.Settings {
			fmt.Fprintf(w, "  %s: %s (%s)\n", s.Key, s.Value, s.From)
		}
		printWarnings(w, r)
	}
}

func printWarnings(w io.Writer, r configReport) {
	for _, text := range r.Warnings {
		fmt.Fprintf(w, "  warning: %s\n", text)
	}
}

func configKeysCommand() *cobra.Command {
	cmd := cli.Command("keys", func(cmd *cobra.Command, args []string) error {
		keys := config.Keys(new(config.PartyFile))
		switch args[0] {
		case "coordinator":
			keys = config.Keys(new(config.CoordinatorFile))
		case "evaluator":
			keys = config.Keys(new(config.EvaluatorFile))
		}
		return cli.Write(cmd, map[string]any{"keys": keys}, func(w io.Writer) error {
			return cli.PrintTable(w, "", "KEY\tTYPE\tVARIABLE", keys, func(k config.Key) []any { return []any{k.Name, k.Type, k.Variable} })
		})
	})
	cmd.Flags().Bool("json", false, "write JSON")
	return cmd
}
