package main

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

// maxSubmitted is how many jobs one command submits at most.
const maxSubmitted = 1000

// submission is the jobs of one command: as many as it takes to make the tuples that are asked for.
type submission struct {
	*operator
	cmd     *cobra.Command
	c       *client
	options *jobOptions
	request *coordinatorv1.JobRequest
	jobs    []*coordinatorv1.Job
}

func (o *operator) submit(cmd *cobra.Command, q *jobOptions, r *coordinatorv1.JobRequest) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	s := &submission{o, cmd, c, q, r, nil}
	counts, err := s.first()
	if err != nil {
		return err
	}
	err = s.add(counts)
	switch {
	case err != nil && len(s.jobs) == 0:
		return err
	case err != nil:
		hold(cmd)
		return errors.Join(s.written(), err)
	case !q.wait:
		return s.written()
	}
	return s.wait()
}

// first gives how many tuples to ask of each job, and has the parties choose the blocks unless they were named.
func (s *submission) first() ([]uint64, error) {
	count, choose := s.request.GetCount(), job.Shaped(s.request.GetKind()) && s.request.GetDim() == 0
	if !job.MakesTuples(s.request.GetKind()) || count < 2 && !choose {
		return []uint64{count}, nil
	}
	ctx, cancel := context.WithTimeout(s.cmd.Context(), callTime)
	defer cancel()
	e, err := s.c.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: s.request})
	if err != nil {
		// The coordinator cannot be reached, or will refuse the job itself, or queues it: the epoch may be in the making.
		if choose {
			s.request.Dim = enclosing(s.request.GetShape())
		}
		if !s.options.wait && count > 1 {
			fmt.Fprintf(s.cmd.ErrOrStderr(), "how many jobs that takes is not known yet: %s. This submits one, which may make less than %d.\n",
				oneLine(rpc.FromError(err).What), count)
		}
		return []uint64{count}, nil
	}
	if choose {
		s.request.Dim = e.GetDim()
	}
	return split(count, e.GetTuples())
}

// split divides a count among jobs that make up to so many each.
func split(count, most uint64) (counts []uint64, err error) {
	if most == 0 || (count-1)/most >= maxSubmitted {
		return nil, rpc.Errorf(rpc.Invalid, "ask for less, or keep a stock with `lodge stock policies set`",
			"--count %d: one job makes %d, and a command submits up to %d jobs", count, most, maxSubmitted)
	}
	for ; count > most; count -= most {
		counts = append(counts, most)
	}
	return append(counts, count), nil
}

// add submits jobs. After an error some of them may be there.
func (s *submission) add(counts []uint64) error {
	for i, n := range counts {
		r := proto.CloneOf(s.request)
		r.Count = n
		j, err := s.one(r)
		if err != nil {
			e := *rpc.FromError(s.c.explain(err))
			if s.options.key == "" && (e.Code == rpc.TimedOut || e.Code == rpc.Cancelled) {
				e.Next = "the job may have been queued: see `lodge jobs list`; with --idempotency-key a submission can be repeated"
			}
			if i > 0 {
				e.What = fmt.Sprintf("%d of %d jobs are submitted, and then: %s", i, len(counts), e.What)
			}
			return &e
		}
		s.jobs = append(s.jobs, j)
	}
	return nil
}

// one submits one job, as often as the coordinator lets this client call.
func (s *submission) one(r *coordinatorv1.JobRequest) (*coordinatorv1.Job, error) {
	key := s.options.key
	if n := len(s.jobs); key != "" && n > 0 {
		key = fmt.Sprintf("%s.%d", key, n+1)
	}
	for {
		ctx, cancel := context.WithTimeout(s.cmd.Context(), callTime)
		got, err := s.c.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: r, IdempotencyKey: key})
		cancel()
		if err == nil {
			return got.GetJob(), nil
		}
		retry := rpc.FromError(err).Retry
		if retry <= 0 || len(s.jobs) == 0 {
			return nil, err
		}
		select {
		case <-time.After(retry):
		case <-s.cmd.Context().Done():
			return nil, err
		}
	}
}

// written writes what was submitted: one id a line, or with JSON one job, or the list of several.
func (s *submission) written() error {
	out := s.cmd.OutOrStdout()
	switch {
	case !s.json:
		for _, j := range s.jobs {
			if _, err := fmt.Fprintln(out, j.GetId()); err != nil {
				return err
			}
		}
		return nil
	case len(s.jobs) == 1:
		return s.write(s.cmd, s.jobs[0])
	}
	return writeIndented(out, listJSON(&coordinatorv1.ListJobsResponse{Jobs: s.jobs}))
}

// wait watches the jobs one after another until they have ended, and writes their last states, with JSON as one record.
func (s *submission) wait() error {
	p := terminal.NewProgress(s.cmd.ErrOrStderr())
	defer p.Done()
	made, failed, err := s.watchAll(p)
	p.Done()
	if s.json {
		hold(s.cmd)
		return errors.Join(s.written(), cmp.Or(err, failed))
	}
	if err != nil {
		return err
	}
	if len(s.jobs) == 1 {
		return errors.Join(s.write(s.cmd, s.jobs[0]), failed)
	}
	if err := printJobs(s.cmd.OutOrStdout(), s.jobs, time.Now()); err != nil {
		return err
	}
	fmt.Fprintf(s.cmd.OutOrStdout(), "asked %d, made %d\n", s.request.GetCount(), made)
	return failed
}

// watchAll watches the jobs, and submits more while what they made is too little: where nobody could say before how many
// tuples one job makes. It goes on after a job that failed, and gives how the first of those did; err is of the watching.
func (s *submission) watchAll(p *terminal.Progress) (made uint64, failed, err error) {
	for i, said := 0, 0; i < len(s.jobs); i++ {
		for ; said < len(s.jobs) && !s.json; said++ {
			fmt.Fprintln(s.cmd.ErrOrStderr(), "submitted", s.jobs[said].GetId())
		}
		if p.Prefix = ""; len(s.jobs) > 1 {
			p.Prefix = fmt.Sprintf("job %d of %d, ", i+1, len(s.jobs))
		}
		err := s.c.untilOver(s.cmd.Context(), p, s.jobs[i].GetId(), true, func(j *coordinatorv1.Job) error {
			if s.jobs[i] = j; !s.json {
				p.Job(j)
			}
			return nil
		})
		if err != nil {
			return made, failed, err
		}
		if err := unlessCompleted(s.jobs[i]); err != nil && failed == nil {
			failed = err
		}
		n := result(s.jobs[i]).GetCount()
		made += n
		if asked := s.request.GetCount(); i == len(s.jobs)-1 && failed == nil && n > 0 && made < asked {
			counts, err := split(asked-made, n)
			if err == nil {
				err = s.add(counts)
			}
			failed = err
		}
	}
	return made, failed, nil
}
