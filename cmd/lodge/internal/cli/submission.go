package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// MaxSubmitted is the largest number of jobs that one command submits.
const MaxSubmitted = 1000

// Submission is the set of jobs that one command submits to make the requested tuples.
type Submission struct {
	*Operator
	cmd     *cobra.Command
	c       *Coordinator
	options *JobOptions
	request *coordinatorv1.JobRequest
	Jobs    []*coordinatorv1.Job
}

// NewSubmission returns a submission without jobs.
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

// first returns the number of tuples for each job. It also lets the parties choose the block
// dimension unless the request has one.
func (s *Submission) first() ([]uint64, error) {
	count, choose := s.request.GetCount(), job.Shaped(s.request.GetKind()) && s.request.GetDim() == 0
	if !job.MakesTuples(s.request.GetKind()) || count < 2 && !choose {
		return []uint64{count}, nil
	}
	ctx, cancel := context.WithTimeout(s.cmd.Context(), CallTime)
	defer cancel()
	e, err := s.c.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: s.request})
	if err != nil {
		// The coordinator may be unreachable, or reject the job itself, or queue it until the epoch
		// is made.
		if choose {
			s.request.Dim = EnclosingBlock(s.request.GetShape())
		}
		if !s.options.Wait && count > 1 {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "the number of jobs is not known yet: %s. One job was submitted, which may make fewer than %d.\n",
				OneLine(rpc.FromError(err).What), count)
		}
		return []uint64{count}, nil
	}
	if choose {
		s.request.Dim = e.GetDim()
	}
	return Split(count, e.GetTuples())
}

// Split divides a count into jobs of at most most tuples each.
func Split(count, most uint64) (counts []uint64, err error) {
	if most == 0 || (count-1)/most >= MaxSubmitted {
		return nil, rpc.Errorf(rpc.Invalid, "use a smaller --count, or keep a stock with `lodge stock policies set`",
			"--count %d: one job makes %d, and a command submits up to %d jobs", count, most, MaxSubmitted)
	}
	for ; count > most; count -= most {
		counts = append(counts, most)
	}
	return append(counts, count), nil
}

// Add submits one job for each count. If it fails, some of the jobs may have been submitted.
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
				e.What = fmt.Sprintf("%d of %d jobs are submitted, then: %s", i, len(counts), e.What)
			}
			return &e
		}
		s.Jobs = append(s.Jobs, j)
	}
	return nil
}

// one submits one job. It retries when the coordinator's rate limit allows it.
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

// Written prints the submitted jobs: one id a line, or as JSON one job or a list.
func (s *Submission) Written() error {
	out := s.cmd.OutOrStdout()
	switch {
	case !JSON(s.cmd):
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

// Wait watches the jobs one after another until all have ended, and writes their final states, with
// JSON as one record.
func (s *Submission) Wait() error {
	p := terminal.NewProgress(s.cmd.ErrOrStderr())
	defer p.Done()
	made, failed, err := s.watchAll(p)
	p.Done()
	if JSON(s.cmd) {
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

// watchAll watches the jobs until they end. It submits more jobs if those made too few tuples
// because no estimate was available. It continues after a failed job: failed is the first such
// failure, and err is an error of the watching itself.
func (s *Submission) watchAll(p *terminal.Progress) (made uint64, failed, err error) {
	for i, said := 0, 0; i < len(s.Jobs); i++ {
		for ; said < len(s.Jobs) && !JSON(s.cmd); said++ {
			fmt.Fprintln(s.cmd.ErrOrStderr(), "submitted", s.Jobs[said].GetId())
		}
		if p.Prefix = ""; len(s.Jobs) > 1 {
			p.Prefix = fmt.Sprintf("job %d of %d, ", i+1, len(s.Jobs))
		}
		err := s.c.UntilOver(s.cmd.Context(), p, s.Jobs[i].GetId(), true, func(j *coordinatorv1.Job) error {
			if s.Jobs[i] = j; !JSON(s.cmd) {
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

// JobOptions holds the flags of `lodge jobs submit`.
type JobOptions struct {
	Kind, Params, Field, Purpose, Tenant, Key string
	ShapeFlags
	Dim, InputParty           uint32
	Count, Epoch              uint64
	Timeout                   time.Duration
	Wait, DryRun, NoSacrifice bool
}

// RunFlags adds the flags of all commands that submit jobs.
func (q *JobOptions) RunFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.DurationVar(&q.Timeout, "timeout", 0, "end the job this long after its submission, even if it is still queued (default: the coordinator's limit for an attempt)")
	f.StringVar(&q.Key, "idempotency-key", "", "repeating a submission with the same key returns the same jobs")
	f.BoolVar(&q.Wait, "wait", false, "watch the jobs until they end; fail unless all complete")
}

// SetTimeout sets the timeout of a job to that of the flags.
func (q *JobOptions) SetTimeout(r *coordinatorv1.JobRequest) error {
	if q.Timeout < 0 {
		return Invalid("write a duration such as 10m", "--timeout %s", q.Timeout)
	}
	if q.Timeout > 0 {
		r.Timeout = durationpb.New(q.Timeout)
	}
	return nil
}
