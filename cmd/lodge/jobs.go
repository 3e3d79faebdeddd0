package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// lostTime is how long a watch goes on while the coordinator cannot be reached.
const lostTime = 30 * time.Second

// jobsCommand is `lodge jobs`: a client of the coordinator.
func jobsCommand() *cobra.Command {
	o := &operator{}
	cmd := &cobra.Command{
		Use:   "jobs",
		Short: "Submit, list, show, watch and cancel jobs at a coordinator",
		Long:  "Ask a coordinator for jobs, as a client that it knows by its certificate or its token.\n\n" + connecting,
	}
	o.flags(cmd)
	cmd.AddCommand(o.submitCommand(), o.listCommand(), o.showCommand(), o.watchCommand(), o.cancelCommand())
	return cmd
}

func (o *operator) listCommand() *cobra.Command {
	var states []string
	r := &coordinatorv1.ListJobsRequest{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List jobs, newest first",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, name := range states {
				s, ok := jobv1.JobState_value["JOB_STATE_"+strings.ToUpper(name)]
				if !ok || s == 0 {
					return rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(stateNames(), ", "), "--state %q", name)
				}
				r.States = append(r.States, jobv1.JobState(s))
			}
			return o.call(cmd, func(ctx context.Context, c *client) error {
				got, err := c.ListJobs(ctx, r)
				if err != nil {
					return err
				}
				if o.json {
					return writeIndented(cmd.OutOrStdout(), listJSON(got))
				}
				if err := printJobs(cmd.OutOrStdout(), got.GetJobs(), time.Now()); err != nil {
					return err
				}
				if got.GetNext() != "" {
					fmt.Fprintf(cmd.ErrOrStderr(), "there are older ones: lodge jobs list --before %s\n", got.GetNext())
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&states, "state", nil, "only jobs in this state: "+strings.Join(stateNames(), ", "))
	f.Uint32Var(&r.Limit, "limit", 20, "at most this many, up to 1000")
	f.StringVar(&r.Before, "before", "", "only jobs older than this one")
	complete(cmd, "state", stateNames)
	return cmd
}

// stateNames are the states of jobs in the order in which they follow.
func stateNames() []string {
	var names []string
	for n := range len(jobv1.JobState_name) {
		if n != 0 {
			names = append(names, stateName(jobv1.JobState(n)))
		}
	}
	return names
}

func (o *operator) showCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "show ID",
		ValidArgsFunction: firstArgument(o.completeJobs),
		Short:             "Show a job: how far each party is, and how it ended",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.call(cmd, func(ctx context.Context, c *client) error {
				r, err := c.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: args[0]})
				if err != nil {
					return err
				}
				return o.write(cmd, r.GetJob())
			})
		},
	}
}

// write writes all that is known of a job.
func (o *operator) write(cmd *cobra.Command, j *coordinatorv1.Job) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), jobJSON(j))
	}
	return printJob(cmd.OutOrStdout(), j, time.Now())
}

func (o *operator) cancelCommand() *cobra.Command {
	var dryRun bool
	r := &coordinatorv1.CancelJobRequest{}
	cmd := &cobra.Command{
		Use:               "cancel ID",
		ValidArgsFunction: firstArgument(o.completeJobs),
		Short:             "Cancel a job that is not over; what it has made is lost",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r.Id = args[0]
			return o.call(cmd, func(ctx context.Context, c *client) error {
				if dryRun {
					got, err := c.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: r.GetId()})
					if err != nil {
						return err
					}
					if s := got.GetJob().GetState(); s >= jobv1.JobState_JOB_STATE_ACTIVATING {
						return rpc.Errorf(rpc.Conflict, "there is nothing to cancel", "job %s is %s", r.GetId(), stateName(s))
					}
					if !o.json {
						fmt.Fprintln(cmd.OutOrStdout(), "this job would be cancelled:")
					}
					return o.write(cmd, got.GetJob())
				}
				got, err := c.CancelJob(ctx, r)
				if err != nil {
					return err
				}
				if o.json {
					return o.write(cmd, got.GetJob())
				}
				_, err = fmt.Fprintf(cmd.OutOrStdout(), "job %s: %s\n", r.GetId(), cancelled(got.GetJob()))
				return err
			})
		},
	}
	cmd.Flags().StringVar(&r.Reason, "reason", "", "why, for those who look at the job later")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the job and cancel nothing")
	return cmd
}

// cancelled says what a cancellation has come to: one that runs ends as soon as its parties have been told.
func cancelled(j *coordinatorv1.Job) string {
	if job.Final(j.GetState()) {
		return stateName(j.GetState())
	}
	return "its parties are being told to stop"
}

func (o *operator) watchCommand() *cobra.Command {
	return &cobra.Command{
		Use:               "watch ID",
		ValidArgsFunction: firstArgument(o.completeJobs),
		Short:             "Show the progress of a job until it ends; fails unless it completes",
		Args:              cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.dial()
			if err != nil {
				return err
			}
			defer c.conn.Close()
			return o.watch(cmd, c, args[0])
		},
	}
}

// watch shows a job until it ends, and its last state. With JSON every change is one line.
func (o *operator) watch(cmd *cobra.Command, c *client, id string) error {
	p := terminal.NewProgress(cmd.ErrOrStderr())
	defer p.Done()
	var last *coordinatorv1.Job
	err := c.untilOver(cmd.Context(), p, id, false, func(j *coordinatorv1.Job) error {
		if last = j; !o.json {
			p.Job(j)
			return nil
		}
		if job.Final(j.GetState()) {
			hold(cmd)
		}
		return writeLine(cmd.OutOrStdout(), jobJSON(j))
	})
	p.Done()
	if err != nil {
		return err
	}
	if !o.json {
		if err := o.write(cmd, last); err != nil {
			return err
		}
	}
	return unlessCompleted(last)
}

// untilOver calls each with a job at every change, until it has ended. Once the job is known it outlives a restart of the
// coordinator.
func (c *client) untilOver(ctx context.Context, p *terminal.Progress, id string, known bool, each func(*coordinatorv1.Job) error) error {
	heard, over := time.Now(), false
	for !over {
		err := c.follow(ctx, id, func(j *coordinatorv1.Job) error {
			known, heard, over = true, time.Now(), job.Final(j.GetState())
			return each(j)
		})
		switch {
		case ctx.Err() != nil:
			return rpc.Errorf(rpc.Cancelled, "`lodge jobs cancel` ends it, `lodge jobs watch` shows it again", "job %s goes on", id)
		case err == nil: // the stream ends with the job
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Since(heard) > lostTime || !known:
			return err
		default:
			p.Say("the coordinator cannot be reached; trying again")
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

// follow calls each with a job at every change, until the stream ends.
func (c *client) follow(ctx context.Context, id string, each func(*coordinatorv1.Job) error) error {
	stream, err := c.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: id})
	var ended bool
	for err == nil {
		var r *coordinatorv1.WatchJobResponse
		if r, err = stream.Recv(); err == nil {
			err = each(r.GetJob())
			ended = job.Final(r.GetJob().GetState())
		}
	}
	if ended {
		return nil
	}
	return c.explain(err)
}

// unlessCompleted is the error of a job that ended without a result.
func unlessCompleted(j *coordinatorv1.Job) error {
	switch j.GetState() {
	case jobv1.JobState_JOB_STATE_COMPLETED:
		return nil
	case jobv1.JobState_JOB_STATE_CANCELLED:
		return rpc.Errorf(rpc.Cancelled, "submit it again", "job %s: %s", j.GetId(), oneLine(j.GetReason()))
	case jobv1.JobState_JOB_STATE_TIMED_OUT:
		return rpc.Errorf(rpc.TimedOut, "see to the parties that were waited for, or submit it with a longer --timeout", "%s", oneLine(cluster.JobError(j).Error()))
	}
	return rpc.Errorf(jobError(j.GetFailure()), "see to the cause and submit it again; a failed job leaves nothing behind", "%s", oneLine(cluster.JobError(j).Error()))
}

// jobError is the code of a job that failed: the refusal of a party where that is the cause, else the outcome.
func jobError(f *jobv1.Failure) rpc.Code {
	if f.GetOutcome() == "refused" && f.GetCheck() != "" {
		return rpc.Code(f.GetCheck())
	}
	if slices.Contains([]string{"", "internal"}, f.GetOutcome()) {
		return rpc.Internal
	}
	return rpc.Code(f.GetOutcome())
}
