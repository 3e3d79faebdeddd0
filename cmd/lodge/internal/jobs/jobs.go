package jobs

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// completeJobs returns the ids of the newest jobs.
func completeJobs(o *cli.Operator) []string {
	return o.CoordinatorWords(func(ctx context.Context, c *cli.Coordinator) (ids []string) {
		r, _ := c.ListJobs(ctx, &coordinatorv1.ListJobsRequest{Limit: cli.MaxWords})
		for _, j := range r.GetJobs() {
			ids = append(ids, cobra.CompletionWithDesc(j.GetId(), job.KindName(j.GetRequest().GetKind())+", "+cli.Word(j.GetState())))
		}
		return ids
	})
}

// jobsCommand returns `lodge jobs`, a client of the coordinator.
func jobsCommand() *cobra.Command {
	o := &cli.Operator{}
	cmd := cli.Command("jobs", nil)
	o.Flags(cmd)
	cmd.AddCommand(submitCommand(o), listCommand(o), showCommand(o), watchCommand(o), cancelCommand(o))
	return cmd
}

func listCommand(o *cli.Operator) *cobra.Command {
	var states []string
	r := &coordinatorv1.ListJobsRequest{}
	cmd := cli.Command("list", func(cmd *cobra.Command, _ []string) error {
		var err error
		if r.States, err = cli.ParseEnum[jobv1.JobState]("state", states); err != nil {
			return err
		}
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			got, err := c.ListJobs(ctx, r)
			if err != nil {
				return err
			}
			return cli.Write(cmd, cli.ListJSON(got), func(w io.Writer) error {
				if err := cli.PrintJobs(w, got.GetJobs(), time.Now()); err != nil {
					return err
				}
				if got.GetNext() != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "there are older jobs: lodge jobs list --before %s\n", got.GetNext())
				}
				return nil
			})
		})
	})
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only jobs in this state: "+strings.Join(cli.EnumWords[jobv1.JobState](), ", "))
	f.Uint32Var(&r.Limit, "limit", 20, "largest number of entries, up to 1000")
	f.StringVar(&r.Before, "before", "", "only jobs older than this id")
	cli.Complete(cmd, "state", cli.EnumWords[jobv1.JobState])
	return cmd
}

func showCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("show", func(cmd *cobra.Command, args []string) error {
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			r, err := c.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: args[0]})
			if err != nil {
				return err
			}
			return o.Write(cmd, r.GetJob())
		})
	}, func() []string { return completeJobs(o) })
}

func cancelCommand(o *cli.Operator) *cobra.Command {
	var dryRun bool
	r := &coordinatorv1.CancelJobRequest{}
	cmd := cli.Command("cancel", func(cmd *cobra.Command, args []string) error {
		r.Id = args[0]
		return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
			if dryRun {
				got, err := c.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: r.GetId()})
				if err != nil {
					return err
				}
				if s := got.GetJob().GetState(); s >= jobv1.JobState_JOB_STATE_ACTIVATING {
					return rpc.Errorf(rpc.Conflict, "the job has ended or is about to be completed", "job %s is %s", r.GetId(), cli.Word(s))
				}
				if !cli.JSON(cmd) {
					fmt.Fprintln(cmd.OutOrStdout(), "this job would be cancelled:")
				}
				return o.Write(cmd, got.GetJob())
			}
			got, err := c.CancelJob(ctx, r)
			if err != nil {
				return err
			}
			if cli.JSON(cmd) {
				return o.Write(cmd, got.GetJob())
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "job %s: %s\n", r.GetId(), cancelled(got.GetJob()))
			return err
		})
	}, func() []string { return completeJobs(o) })
	cmd.Flags().StringVar(&r.Reason, "reason", "", "reason, for later readers")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the job without cancelling it")
	return cmd
}

// cancelled describes the effect of a cancellation. A running job ends when its parties have been
// told.
func cancelled(j *coordinatorv1.Job) string {
	if job.Final(j.GetState()) {
		return cli.Word(j.GetState())
	}
	return "its parties are being told to stop"
}

func watchCommand(o *cli.Operator) *cobra.Command {
	return cli.Command("watch", func(cmd *cobra.Command, args []string) error {
		c, err := o.Dial()
		if err != nil {
			return err
		}
		defer c.Conn.Close()
		return watch(o, cmd, c, args[0])
	}, func() []string { return completeJobs(o) })
}

// watch shows a job until it ends, then its final state. With JSON it writes every change as one
// line.
func watch(o *cli.Operator, cmd *cobra.Command, c *cli.Coordinator, id string) error {
	p := terminal.NewProgress(cmd.ErrOrStderr())
	defer p.Done()
	var last *coordinatorv1.Job
	err := c.UntilOver(cmd.Context(), p, id, false, func(j *coordinatorv1.Job) error {
		if last = j; !cli.JSON(cmd) {
			p.Job(j)
			return nil
		}
		if job.Final(j.GetState()) {
			cli.Hold(cmd)
		}
		return cli.WriteJSONLine(cmd.OutOrStdout(), cli.JobJSON(j))
	})
	p.Done()
	if err != nil {
		return err
	}
	if !cli.JSON(cmd) {
		if err := o.Write(cmd, last); err != nil {
			return err
		}
	}
	return cli.UnlessCompleted(last)
}
