package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// MaxSubmitted is how many jobs one command submits at most.
const MaxSubmitted = 1000

// Submission is the jobs of one command: as many as it takes to make the tuples that are asked for.
type Submission struct {
	*Operator
	cmd     *cobra.Command
	c       *Coordinator
	options *JobOptions
	request *coordinatorv1.JobRequest
	Jobs    []*coordinatorv1.Job
}

// NewSubmission returns the submission of a command. It has no jobs yet.
func NewSubmission(o *Operator, cmd *cobra.Command, c *Coordinator, q *JobOptions, r *coordinatorv1.JobRequest) *Submission {
	return &Submission{Operator: o, cmd: cmd, c: c, options: q, request: r}
}

func (o *Operator) Submit(cmd *cobra.Command, q *JobOptions, r *coordinatorv1.JobRequest) error {
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	s := NewSubmission(o, cmd, c, q, r)
	counts, err := s.first()
	if err != nil {
		return err
	}
	err = s.Add(counts)
	switch {
	case err != nil && len(s.Jobs) == 0:
		return err
	case err != nil:
		Hold(cmd)
		return errors.Join(s.Written(), err)
	case !q.Wait:
		return s.Written()
	}
	return s.Wait()
}

// first gives how many tuples to ask of each job, and has the parties choose the blocks unless they were named.
func (s *Submission) first() ([]uint64, error) {
	count, choose := s.request.GetCount(), job.Shaped(s.request.GetKind()) && s.request.GetDim() == 0
	if !job.MakesTuples(s.request.GetKind()) || count < 2 && !choose {
		return []uint64{count}, nil
	}
	ctx, cancel := context.WithTimeout(s.cmd.Context(), CallTime)
	defer cancel()
	e, err := s.c.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: s.request})
	if err != nil {
		// The coordinator cannot be reached, or will refuse the job itself, or queues it: the epoch may be in the making.
		if choose {
			s.request.Dim = EnclosingBlock(s.request.GetShape())
		}
		if !s.options.Wait && count > 1 {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "how many jobs that takes is not known yet: %s. This submits one, which may make less than %d.\n",
				OneLine(rpc.FromError(err).What), count)
		}
		return []uint64{count}, nil
	}
	if choose {
		s.request.Dim = e.GetDim()
	}
	return Split(count, e.GetTuples())
}

// Split divides a count among jobs that make up to so many each.
func Split(count, most uint64) (counts []uint64, err error) {
	if most == 0 || (count-1)/most >= MaxSubmitted {
		return nil, rpc.Errorf(rpc.Invalid, "ask for less, or keep a stock with `lodge stock policies set`",
			"--count %d: one job makes %d, and a command submits up to %d jobs", count, most, MaxSubmitted)
	}
	for ; count > most; count -= most {
		counts = append(counts, most)
	}
	return append(counts, count), nil
}

// Add submits jobs. After an error some of them may be there.
func (s *Submission) Add(counts []uint64) error {
	for i, n := range counts {
		r := proto.CloneOf(s.request)
		r.Count = n
		j, err := s.one(r)
		if err != nil {
			e := *rpc.FromError(s.c.Explain(err))
			if s.options.Key == "" && (e.Code == rpc.TimedOut || e.Code == rpc.Cancelled) {
				e.Next = "the job may have been queued: see `lodge jobs list`; with --idempotency-key a submission can be repeated"
			}
			if i > 0 {
				e.What = fmt.Sprintf("%d of %d jobs are submitted, and then: %s", i, len(counts), e.What)
			}
			return &e
		}
		s.Jobs = append(s.Jobs, j)
	}
	return nil
}

// one submits one job, as often as the coordinator lets this client call.
func (s *Submission) one(r *coordinatorv1.JobRequest) (*coordinatorv1.Job, error) {
	key := s.options.Key
	if n := len(s.Jobs); key != "" && n > 0 {
		key = fmt.Sprintf("%s.%d", key, n+1)
	}
	for {
		ctx, cancel := context.WithTimeout(s.cmd.Context(), CallTime)
		got, err := s.c.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: r, IdempotencyKey: key})
		cancel()
		if err == nil {
			return got.GetJob(), nil
		}
		retry := rpc.FromError(err).Retry
		if retry <= 0 || len(s.Jobs) == 0 {
			return nil, err
		}
		select {
		case <-time.After(retry):
		case <-s.cmd.Context().Done():
			return nil, err
		}
	}
}

// Written writes what was submitted: one id a line, or with JSON one job, or the list of several.
func (s *Submission) Written() error {
	out := s.cmd.OutOrStdout()
	switch {
	case !s.JSON:
		for _, j := range s.Jobs {
			if _, err := fmt.Fprintln(out, j.GetId()); err != nil {
				return err
			}
		}
		return nil
	case len(s.Jobs) == 1:
		return s.Write(s.cmd, s.Jobs[0])
	}
	return WriteJSON(out, ListJSON(&coordinatorv1.ListJobsResponse{Jobs: s.Jobs}))
}

// Wait watches the jobs one after another until they have ended, and writes their last states, with JSON as one record.
func (s *Submission) Wait() error {
	p := terminal.NewProgress(s.cmd.ErrOrStderr())
	defer p.Done()
	made, failed, err := s.watchAll(p)
	p.Done()
	if s.JSON {
		Hold(s.cmd)
		return errors.Join(s.Written(), cmp.Or(err, failed))
	}
	if err != nil {
		return err
	}
	if len(s.Jobs) == 1 {
		return errors.Join(s.Write(s.cmd, s.Jobs[0]), failed)
	}
	if err := PrintJobs(s.cmd.OutOrStdout(), s.Jobs, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(s.cmd.OutOrStdout(), "asked %d, made %d\n", s.request.GetCount(), made)
	return failed
}

// watchAll watches the jobs, and submits more while what they made is too little: where nobody could say before how many
// tuples one job makes. It goes on after a job that failed, and gives how the first of those did; err is of the watching.
func (s *Submission) watchAll(p *terminal.Progress) (made uint64, failed, err error) {
	for i, said := 0, 0; i < len(s.Jobs); i++ {
		for ; said < len(s.Jobs) && !s.JSON; said++ {
			fmt.Fprintln(s.cmd.ErrOrStderr(), "submitted", s.Jobs[said].GetId())
		}
		if p.Prefix = ""; len(s.Jobs) > 1 {
			p.Prefix = fmt.Sprintf("job %d of %d, ", i+1, len(s.Jobs))
		}
		err := s.c.UntilOver(s.cmd.Context(), p, s.Jobs[i].GetId(), true, func(j *coordinatorv1.Job) error {
			if s.Jobs[i] = j; !s.JSON {
				p.Job(j)
			}
			return nil
		})
		if err != nil {
			return made, failed, err
		}
		if err := UnlessCompleted(s.Jobs[i]); err != nil && failed == nil {
			failed = err
		}
		n := result(s.Jobs[i]).GetCount()
		made += n
		if asked := s.request.GetCount(); i == len(s.Jobs)-1 && failed == nil && n > 0 && made < asked {
			counts, err := Split(asked-made, n)
			if err == nil {
				err = s.Add(counts)
			}
			failed = err
		}
	}
	return made, failed, nil
}

// JobOptions are the flags of `lodge jobs submit`.
type JobOptions struct {
	Kind, Params, Field, Purpose, Tenant, Key string
	ShapeFlags
	Dim, InputParty           uint32
	Count, Epoch              uint64
	Timeout                   time.Duration
	Wait, DryRun, NoSacrifice bool
}

// RunFlags are those of commands that submit jobs for threshold keys.
func (q *JobOptions) RunFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&q.Timeout, "timeout", 0, "end the job this long after its submission, also while it waits (default: the coordinator's limit for an attempt)")
	f.StringVar(&q.Key, "idempotency-key", "", "the same key gives the same jobs, so that a submission can be repeated")
	f.BoolVar(&q.Wait, "wait", false, "watch until it ends; fail unless it completes")
}
