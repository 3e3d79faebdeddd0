package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// LostTime is how long a watch retries while the coordinator is unreachable.
const LostTime = 30 * time.Second

// Write writes the details of a job as text or JSON.
func (o *Operator) Write(cmd *cobra.Command, j *coordinatorv1.Job) error {
	return Write(cmd, JobJSON(j), func(w io.Writer) error { return printJob(w, j, time.Now()) })
}

// UntilOver calls each with every new state of a job until it has ended. If known is true, or once
// the first state has arrived, it reconnects when the coordinator restarts.
func (c *Coordinator) UntilOver(ctx context.Context, p *terminal.Progress, id string, known bool, each func(*coordinatorv1.Job) error) error {
	heard, over := time.Now(), false
	for !over {
		err := c.follow(ctx, id, func(j *coordinatorv1.Job) error {
			known, heard, over = true, time.Now(), job.Final(j.GetState())
			return each(j)
		})
		switch {
		case ctx.Err() != nil:
			return rpc.Errorf(rpc.Cancelled, "`lodge jobs cancel` stops it, `lodge jobs watch` shows it again", "job %s is still running", id)
		case err == nil: // the stream ended with the job
		case !errors.Is(err, &rpc.Error{Code: rpc.Unavailable}) || time.Since(heard) > LostTime || !known:
			return err
		default:
			p.Say("the coordinator is unreachable; retrying")
			time.Sleep(200 * time.Millisecond)
		}
	}
	return nil
}

// follow calls each with every new state of a job until the stream ends.
func (c *Coordinator) follow(ctx context.Context, id string, each func(*coordinatorv1.Job) error) error {
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
	return c.Explain(err)
}

// UnlessCompleted returns an error if the job ended without a result.
func UnlessCompleted(j *coordinatorv1.Job) error {
	switch j.GetState() {
	case jobv1.JobState_JOB_STATE_COMPLETED:
		return nil
	case jobv1.JobState_JOB_STATE_CANCELLED:
		return rpc.Errorf(rpc.Cancelled, "submit it again", "job %s: %s", j.GetId(), OneLine(j.GetReason()))
	case jobv1.JobState_JOB_STATE_TIMED_OUT:
		return rpc.Errorf(rpc.TimedOut, "check the parties that did not respond, or submit it with a longer --timeout", "%s", OneLine(cluster.JobError(j).Error()))
	}
	return rpc.Errorf(jobError(j.GetFailure()), "fix the cause and submit it again; a failed job leaves no data behind", "%s", OneLine(cluster.JobError(j).Error()))
}

// jobError returns the code of a failed job: the code of the party that refused it, if that is the
// cause, otherwise the outcome.
func jobError(f *jobv1.Failure) rpc.Code {
	if f.GetOutcome() == "refused" && f.GetCheck() != "" {
		return rpc.Code(f.GetCheck())
	}
	if slices.Contains([]string{"", "internal"}, f.GetOutcome()) {
		return rpc.Internal
	}
	return rpc.Code(f.GetOutcome())
}
