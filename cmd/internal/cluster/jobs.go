package cluster

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Job submits a job, shows its progress, and returns it when it is complete. Without a timeout it
// may take an hour.
func (c *Cluster) Job(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.Job, error) {
	if q.GetTimeout() == nil {
		q = proto.CloneOf(q)
		q.Timeout = durationpb.New(time.Hour)
	}
	client := coordinatorv1.NewCoordinatorServiceClient(c.Operator)
	r, err := client.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: q})
	if err != nil {
		return nil, rpc.FromError(err)
	}
	stream, err := client.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: r.GetJob().GetId()})
	for err == nil {
		var w *coordinatorv1.WatchJobResponse
		if w, err = stream.Recv(); err != nil {
			break
		}
		j := w.GetJob()
		c.Progress.Job(j)
		if j.GetState() == jobv1.JobState_JOB_STATE_COMPLETED {
			return j, nil
		}
		if job.Final(j.GetState()) {
			return nil, JobError(j)
		}
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return nil, rpc.FromError(err)
}

// JobError returns the error of a job that failed.
func JobError(j *coordinatorv1.Job) error {
	f := j.GetFailure()
	who := ""
	if f.GetBlame() != nil {
		who = fmt.Sprintf("; party %d is to blame", f.GetBlame().GetParty())
	} else if len(f.GetSuspects()) > 0 {
		who = fmt.Sprintf("; suspects: parties %v", f.GetSuspects())
	}
	in := ""
	if f.GetRound() != "" {
		in = fmt.Sprintf(" in round %d (%s)", f.GetRoundIndex(), f.GetRound())
	}
	return fmt.Errorf("job %s failed%s: %s%s", j.GetId(), in, f.GetReason(), who)
}

// ThresholdKeys generates keys that any threshold+1 of all parties decrypt with.
func (c *Cluster) ThresholdKeys(ctx context.Context, set string, threshold int) (*coordinatorv1.Job, error) {
	return c.Job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: set, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Threshold: uint32(threshold),
	})
}

// Masks makes masks for a quorum's decryptions with the keys of an epoch. The form is exact or
// paper.
func (c *Cluster) Masks(ctx context.Context, set string, epoch uint64, quorum []int, count int, form string) (*coordinatorv1.Job, error) {
	q := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Epoch: epoch, Params: set, Count: uint64(count), Form: job.MaskForms[form],
	}
	for _, p := range quorum {
		q.Group = append(q.Group, uint32(p))
	}
	return c.Job(ctx, q)
}

// SentBytes returns the bytes that all parties of a job sent.
func SentBytes(j *coordinatorv1.Job) (n uint64) {
	for _, p := range j.GetParties() {
		n += p.GetStatus().GetProgress().GetSentBytes()
	}
	return n
}

// PeakRSS returns the largest peak resident size that a party of a job reported, in bytes.
func PeakRSS(j *coordinatorv1.Job) (peak uint64) {
	for _, p := range j.GetParties() {
		peak = max(peak, p.GetStatus().GetPeakRssBytes())
	}
	return peak
}

// Quorums returns the choices of k of the parties 0 to n-1 in lexicographic order. It stops after
// limit+1 choices.
func Quorums(n, k, limit int) (all [][]int) {
	quorum := make([]int, 0, k)
	var next func(from int)
	next = func(from int) {
		if len(quorum) == k {
			all = append(all, append([]int(nil), quorum...))
			return
		}
		for i := from; i <= n-k+len(quorum) && len(all) <= limit; i++ {
			quorum = append(quorum, i)
			next(i + 1)
			quorum = quorum[:len(quorum)-1]
		}
	}
	next(0)
	return all
}
