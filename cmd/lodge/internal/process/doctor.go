package process

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
)

// doctorReport is the JSON outcome of `lodge doctor`.
type doctorReport struct {
	OK       int              `json:"ok"`
	Warn     int              `json:"warn"`
	Fail     int              `json:"fail"`
	Findings []doctor.Finding `json:"findings"`
}

// doctorCommand returns `lodge doctor`.
func doctorCommand() *cobra.Command {
	o := &cli.Operator{}
	var file string
	var probe uint64
	var offline, quiet bool
	cmd := cli.Command("doctor", func(cmd *cobra.Command, _ []string) error {
		if probe > 16<<20 {
			return rpc.Errorf(rpc.Invalid, "write at most 16777216", "--probe-bytes %d", probe)
		}
		d := doctor.Options{Version: cli.Version(), ProbeBytes: probe}
		if err := examined(o, &d, file, offline); err != nil {
			return err
		}
		return diagnose(o, cmd, d, quiet)
	})
	o.Flags(cmd)
	f := cmd.Flags()
	f.StringVar(&file, "config", "", "configuration of a party, of the coordinator or of an evaluator on this machine")
	f.Uint64Var(&probe, "probe-bytes", 4<<20, "bytes that parties send to each other; 0 to measure round trips only")
	f.BoolVar(&offline, "offline", false, "check files only, without a connection")
	f.BoolVar(&quiet, "quiet", false, "omit checks that are ok")
	return cmd
}

// examined says which files and processes to check, and with which credentials.
func examined(o *cli.Operator, d *doctor.Options, file string, offline bool) error {
	if file != "" {
		d.Files = []string{file}
		p, err := doctor.Load(file)
		if err != nil || offline {
			return nil //nolint:nilerr // the examination says what is wrong with it
		}
		d.Self = p.Name
		d.Roster, d.Credentials = p.Connect()
		return nil
	}
	if dir := cli.ClusterDir(o.Cluster); o.Roster == "" && o.Client == "" {
		if _, err := os.Stat(filepath.Join(dir, cli.RosterFile)); err != nil {
			return cli.MissingFile(err)
		}
		d.Files, _ = filepath.Glob(filepath.Join(dir, "*", "party.yaml"))
		if path := filepath.Join(dir, "coordinator", "coordinator.yaml"); cli.Exists(path) {
			d.Files = append([]string{path}, d.Files...)
		}
	}
	p, err := o.Places()
	if err != nil || offline {
		return err
	}
	d.Roster, d.Routes, d.Dial = p.Roster, p.Routes, p.Options
	d.Credentials, err = p.Credentials()
	return err
}

// diagnose runs the checks and writes the findings.
func diagnose(o *cli.Operator, cmd *cobra.Command, d doctor.Options, quiet bool) error {
	r := doctorReport{Findings: []doctor.Finding{}}
	w := cli.NewTable(cmd.OutOrStdout())
	d.Found = func(f doctor.Finding) {
		f.What, f.Next = cli.OneLine(f.What), cli.OneLine(f.Next)
		r.add(f)
		if cli.JSON(cmd) || quiet && f.Status == doctor.OK {
			return
		}
		text := f.What
		if f.Next != "" {
			text += ": " + f.Next
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", f.Status, f.Subject, f.Check, text)
	}
	doctor.Examine(cmd.Context(), d)
	if cli.Hold(cmd); cli.JSON(cmd) {
		if err := cli.WriteJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	} else {
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%d ok, %d warnings, %d failures\n", r.OK, r.Warn, r.Fail)
	}
	if cmd.Context().Err() != nil {
		return cli.ErrInterrupted
	}
	if r.Fail > 0 {
		return rpc.Errorf(cli.CheckFailed, "follow the next step of each finding", "%d of %d checks failed", r.Fail, r.OK+r.Warn+r.Fail)
	}
	return nil
}

func (r *doctorReport) add(f doctor.Finding) {
	r.Findings = append(r.Findings, f)
	switch f.Status {
	case doctor.OK:
		r.OK++
	case doctor.Warn:
		r.Warn++
	case doctor.Fail:
		r.Fail++
	}
}
