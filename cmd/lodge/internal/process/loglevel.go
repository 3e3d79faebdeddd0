package process

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/logs"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/doctor"
)

// levelRecord is the log level of a process.
type levelRecord struct {
	Process string `json:"process"`
	Level   string `json:"level,omitempty"`
	Until   string `json:"until,omitempty"`
	Error   string `json:"error,omitempty"`
}

// logLevelCommand returns `lodge log-level`.
func logLevelCommand() *cobra.Command {
	o := &cli.Operator{}
	var at []string
	var span time.Duration
	cmd := cli.Command("log-level", func(cmd *cobra.Command, args []string) error {
		var q *statusv1.SetLogLevelRequest
		if len(args) == 1 {
			if _, err := logs.ParseLevel(args[0]); err != nil {
				return cli.Invalid("", "the level %v", err)
			}
			q = &statusv1.SetLogLevelRequest{Level: args[0], Span: durationpb.New(span)}
		}
		return logLevel(o, cmd, at, q)
	}, func() []string { return logs.Levels })
	o.Flags(cmd)
	cmd.Flags().StringSliceVar(&at, "at", nil, "processes: \"coordinator\" or names of parties (default all)")
	cmd.Flags().DurationVar(&span, "for", 10*time.Minute, "time after which the configured level is restored; 0: when the process restarts")
	cli.Complete(cmd, "at", func() []string { return append(o.CompleteParties(), config.CoordinatorName) })
	return cmd
}

// logLevel prints the levels of processes. If q is not nil it changes them first.
func logLevel(o *cli.Operator, cmd *cobra.Command, at []string, q *statusv1.SetLogLevelRequest) error {
	p, err := o.Places()
	if err != nil {
		return err
	}
	credentials, err := p.Credentials()
	if err != nil {
		return err
	}
	for _, name := range at {
		if _, ok := p.Roster.Index(name); !ok && name != config.CoordinatorName {
			return rpc.Errorf(rpc.NotFound, "name the coordinator, or parties of the roster", "there is no process %q", name)
		}
	}
	answers := doctor.Ask(cmd.Context(), p.Roster, credentials, p.Options)
	var list []levelRecord
	var failed error
	for _, a := range answers {
		defer a.Close()
		if len(at) > 0 && !slices.Contains(at, a.Name) {
			continue
		}
		r, err := levelAt(cmd.Context(), a, q)
		if err != nil && failed == nil {
			failed = err
		}
		list = append(list, r)
	}
	err = cli.Write(cmd, map[string]any{"processes": list}, func(w io.Writer) error {
		return cli.PrintTable(w, "", "PROCESS\tLEVEL\tUNTIL\tNOTE", list, func(r levelRecord) []any { return []any{r.Process, r.Level, r.Until, r.Error} })
	})
	return cmp.Or(failed, err)
}

// levelAt returns the level of one process, after changing it if q is not nil.
func levelAt(ctx context.Context, a *doctor.Answer, q *statusv1.SetLogLevelRequest) (levelRecord, error) {
	r := levelRecord{Process: a.Name}
	level, err := a.Status.GetLogLevel(), a.Err
	if err == nil && q != nil {
		call, cancel := context.WithTimeout(ctx, cli.CallTime)
		defer cancel()
		var set *statusv1.SetLogLevelResponse
		set, err = statusv1.NewStatusServiceClient(a.Conn).SetLogLevel(call, q)
		level = set.GetLogLevel()
	}
	if err != nil {
		r.Error = rpc.FromError(err).Error()
		return r, rpc.FromError(err)
	}
	r.Level = level.GetLevel()
	if level.GetUntil() != nil {
		r.Until = cli.Time(level.GetUntil())
	}
	return r, nil
}
