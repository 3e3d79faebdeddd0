package main

import (
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// versionReport says which build this is, and what must be the same at all parties.
type versionReport struct {
	Version  string          `json:"version"`          // of the module
	Commit   string          `json:"commit,omitempty"` // that it was built from, if Go recorded it
	Modified bool            `json:"modified"`         // since that commit
	Time     string          `json:"time,omitempty"`   // of the commit
	Go       string          `json:"go"`
	Platform string          `json:"platform"`
	Protocol uint32          `json:"protocol_version"`
	Sets     []versionOfASet `json:"parameter_sets"`
}

type versionOfASet struct {
	Name     string `json:"name"`
	Insecure bool   `json:"insecure,omitempty"`
	Hash     string `json:"hash"`
}

// builtFrom is the commit of a build that Go does not record, such as that of the image, which has no git.
var builtFrom string

// build is what Go recorded of this build.
func build() versionReport {
	r := versionReport{Version: "unknown", Commit: builtFrom, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Protocol: job.ProtocolVersion}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return r
	}
	if r.Version = info.Main.Version; r.Version == "" {
		r.Version = "(devel)"
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			r.Commit = s.Value
		case "vcs.time":
			r.Time = s.Value
		case "vcs.modified":
			r.Modified = s.Value == "true"
		}
	}
	return r
}

// version is the module's version with the commit where there is one; processes compare it.
func version() string {
	r := build()
	if r.Commit != "" {
		return r.Version + " " + r.Commit
	}
	return r.Version
}

// versionCommand is `lodge version`.
func versionCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Say which build this is, and what must be the same at all parties",
		Long: "Say which build this is. The protocol version, and the hash of a parameter set that a cluster uses, must be the same\n" +
			"at all parties.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r := build()
			for _, s := range params.Sets() {
				hash := s.Hash()
				r.Sets = append(r.Sets, versionOfASet{s.Name, s.Insecure, hex.EncodeToString(hash[:])})
			}
			if asJSON {
				return writeIndented(cmd.OutOrStdout(), r)
			}
			commit := orDash(r.Commit)
			if r.Modified {
				commit += ", modified since"
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintf(w, "lodge\t%s\ncommit\t%s\nbuilt with\t%s for %s\nprotocol\t%d\n", r.Version, commit, r.Go, r.Platform, r.Protocol)
			for _, s := range r.Sets {
				if !s.Insecure {
					fmt.Fprintf(w, "%s\t%s\n", s.Name, s.Hash)
				}
			}
			return w.Flush()
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write JSON, with the parameter sets of tests too")
	return cmd
}
