package jobs_test

import (
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/jobs"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A dry run shows the output and the cost of a job without submitting it.
func TestSubmitDryRun(t *testing.T) {
	l := lodgetest.Start(t)
	before := len(lodgetest.Read[cli.JobList](l, "jobs", "list").Jobs)
	submit := append([]string{"jobs", "submit", "--epoch", "1", "--dry-run"}, lodgetest.Class("--count", "300")...)
	made := lodgetest.Read[cli.JobList](l, "jobs", "list").Jobs[0]
	e := lodgetest.Read[jobs.EstimateRecord](l, submit...)
	if e.Basis != "model" || e.Asked != 300 || e.Tuples < 300 || e.Jobs != 1 || e.StoredBytes != e.Tuples*6*8 || e.SentBytes == 0 || e.MemoryBytes == 0 || e.Seconds <= 0 ||
		e.AllTuples != e.Tuples || e.AllStoredBytes != e.StoredBytes || e.AllSentBytes != e.SentBytes || e.AllSeconds != e.Seconds {
		t.Errorf("%+v", e)
	}
	submit[len(submit)-1] = "200" // like the job that was made
	e = lodgetest.Read[jobs.EstimateRecord](l, submit...)
	if e.Basis != "history" || e.Samples != 1 || e.Tuples != made.Made || e.SentBytes != max(made.Parties[0].SentBytes, made.Parties[1].SentBytes) {
		t.Errorf("%+v after a job that made %d", e, made.Made)
	}
	l.Shows(submit, "asked   200\n", "stored  ", "from one past job")
	submit[len(submit)-1] = "2000000" // more than any party accepts as one job
	e = lodgetest.Read[jobs.EstimateRecord](l, submit...)
	if e.Jobs != 1999999/e.Tuples+1 || e.AllTuples != e.Jobs*e.Tuples || e.AllStoredBytes != e.Jobs*e.StoredBytes || e.AllSeconds < float64(e.Jobs-1)*e.Seconds {
		t.Errorf("%+v", e)
	}
	l.Shows(submit, "to make the requested count", fmt.Sprintf("makes   %d a job, %d in all\n", e.Tuples, e.AllTuples), "at the peak of a job\n",
		"in all, sequentially, from a model")
	l.Refuses(rpc.Invalid, "jobs of kind keys make no tuples", "jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--dry-run")
	l.Refuses(rpc.NotFound, "party p0 refuses", append([]string{"jobs", "submit", "--epoch", "9", "--dry-run"}, lodgetest.Class("--count", "1")...)...)
	if after := len(lodgetest.Read[cli.JobList](l, "jobs", "list").Jobs); after != before {
		t.Errorf("%d jobs after dry runs, %d before", after, before)
	}
}
