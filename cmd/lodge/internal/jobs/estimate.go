package jobs

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
)

// estimate prints the result of `lodge jobs submit --dry-run`.
func estimate(o *cli.Operator, cmd *cobra.Command, q *coordinatorv1.JobRequest) error {
	return o.Call(cmd, func(ctx context.Context, c *cli.Coordinator) error {
		e, err := c.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: q})
		if err != nil {
			return err
		}
		return cli.Write(cmd, estimateJSON(q, e), func(w io.Writer) error { return printEstimate(w, q, e) })
	})
}

// printEstimate writes the output and cost of one job, and the totals of all jobs that make the
// requested count.
func printEstimate(w io.Writer, q *coordinatorv1.JobRequest, e *coordinatorv1.EstimateJobResponse) error {
	basis := "a model (order of magnitude)"
	switch n := e.GetSamples(); {
	case n == 1:
		basis = "one past job"
	case n > 1:
		basis = fmt.Sprintf("the median of %d past jobs", n)
	}
	each, peak, all := "", "", func(string, ...any) string { return "" }
	if e.GetJobs() > 1 {
		each, peak = " a job", " of a job"
		all = func(format string, args ...any) string { return ", " + fmt.Sprintf(format, args...) }
	}
	t := cli.NewTable(w)
	fmt.Fprintf(t, "asked\t%d\n", q.GetCount())
	fmt.Fprintf(t, "makes\t%d%s%s\n", e.GetTuples(), each, all("%d in all", e.GetAllTuples()))
	if e.GetJobs() > 1 {
		fmt.Fprintf(t, "jobs\t%d to make the requested count\n", e.GetJobs())
	}
	fmt.Fprintf(t, "block\t%d\n", e.GetDim())
	fmt.Fprintf(t, "stored\t%s%s%s at each party, %d bytes a tuple\n",
		cli.Size(float64(e.GetStoredBytes())), each, all("%s in all,", cli.Size(float64(e.GetAllStoredBytes()))), e.GetTupleBytes())
	fmt.Fprintf(t, "sent\t%s%s%s by each party, from %s\n", cli.Size(float64(e.GetSentBytes())), each, all("%s in all,", cli.Size(float64(e.GetAllSentBytes()))), basis)
	fmt.Fprintf(t, "memory\t%s at each party, at the peak%s\n", cli.Size(float64(e.GetMemoryBytes())), peak)
	fmt.Fprintf(t, "time\t%s%s%s, from %s\n", roughly(e.GetDuration().AsDuration()), each, all("%s in all, sequentially", roughly(e.GetAllDuration().AsDuration())), basis)
	return t.Flush()
}

// roughly rounds an estimated duration.
func roughly(d time.Duration) time.Duration {
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d.Round(time.Millisecond)
}

// estimateRecord is the JSON form of an estimate. Fields without "all" describe one job.
// all_seconds assumes that the jobs run sequentially.
type estimateRecord struct {
	Asked       uint64  `json:"asked"`
	Tuples      uint64  `json:"tuples"`
	Jobs        uint64  `json:"jobs"`
	Dim         uint32  `json:"dim"`
	TupleBytes  uint64  `json:"tuple_bytes"`
	StoredBytes uint64  `json:"stored_bytes"`
	SentBytes   uint64  `json:"sent_bytes"`
	MemoryBytes uint64  `json:"memory_bytes"`
	Seconds     float64 `json:"seconds"`
	Basis       string  `json:"basis"` // source of seconds and sent bytes: history or model
	Samples     uint32  `json:"samples,omitempty"`

	AllTuples      uint64  `json:"all_tuples"`
	AllStoredBytes uint64  `json:"all_stored_bytes"`
	AllSentBytes   uint64  `json:"all_sent_bytes"`
	AllSeconds     float64 `json:"all_seconds"`
}

func estimateJSON(q *coordinatorv1.JobRequest, e *coordinatorv1.EstimateJobResponse) estimateRecord {
	basis := "model"
	if e.GetBasis() == coordinatorv1.EstimateBasis_ESTIMATE_BASIS_HISTORY {
		basis = "history"
	}
	return estimateRecord{
		Asked: q.GetCount(), Tuples: e.GetTuples(), Jobs: e.GetJobs(), Dim: e.GetDim(), TupleBytes: e.GetTupleBytes(), StoredBytes: e.GetStoredBytes(),
		SentBytes: e.GetSentBytes(), MemoryBytes: e.GetMemoryBytes(), Seconds: e.GetDuration().AsDuration().Seconds(), Basis: basis, Samples: e.GetSamples(),
		AllTuples: e.GetAllTuples(), AllStoredBytes: e.GetAllStoredBytes(), AllSentBytes: e.GetAllSentBytes(), AllSeconds: e.GetAllDuration().AsDuration().Seconds(),
	}
}
