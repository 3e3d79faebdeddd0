package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
)

// failedJob returns a job that a cheat of party 2 ended. The reason contains control characters.
func failedJob(now time.Time) *coordinatorv1.Job {
	failure := &jobv1.Failure{
		Outcome: "blame", Round: "open", RoundIndex: 7, Check: "opening", Reason: "party 2 (p2) opened something else\x1b[2J\nroot#",
		Blame: &jobv1.Blame{Party: 2, Check: "opening", Reason: "opened something else"},
	}
	j := &coordinatorv1.Job{
		Id: "j1", State: jobv1.JobState_JOB_STATE_FAILED, Ordinal: 1, Epoch: 3, SubmittedBy: "operator", Failure: failure, Reason: failure.Reason,
		Request: &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128", Dim: 1, Count: 100, Epoch: 3,
			Purpose: jobv1.Purpose_PURPOSE_TRIPLES, Tenant: "dev"},
		Created: timestamppb.New(now.Add(-time.Minute)), Started: timestamppb.New(now.Add(-50 * time.Second)), Ended: timestamppb.New(now.Add(-48 * time.Second)),
	}
	for i, name := range []string{"p0", "p1", "p2"} {
		p := &coordinatorv1.PartyProgress{Party: uint32(i), Name: name, Reachable: i != 2, Status: &jobv1.SessionStatus{
			State: jobv1.JobState_JOB_STATE_GENERATING, Progress: &jobv1.Progress{
				Round: "open", RoundIndex: 7, WaitingFor: []uint32{2}, SentBytes: 1500, ReceivedBytes: 3e6, RoundReceivedBytes: 1, RoundLimitBytes: 4,
			},
		}}
		if i == 0 {
			p.Status.State, p.Status.Failure = jobv1.JobState_JOB_STATE_FAILED, failure
		}
		j.Parties = append(j.Parties, p)
	}
	return j
}

func TestPrintJob(t *testing.T) {
	now := time.Now()
	var out bytes.Buffer
	if err := printJob(&out, failedJob(now), now); err != nil {
		t.Fatal(err)
	}
	want := `
job         j1
state       failed
kind        scalar
purpose     triples
parameters  S
field       p128
block       1
asked       100
epoch       3
tenant      dev
submitted   1m0s ago by operator
took        2s

outcome: blame in round 7 (open), check opening: party 2 (p2) opened something else [2J root#
to blame: party 2 (p2), check opening: opened something else

PARTY  NAME  STATE              ROUND            WAITS FOR  SENT    RECEIVED  MEMORY  ENDED BY
0      p0    failed             round 7 open 25%  -          1.5 kB  3 MB      -       blame of party 2, check opening
1      p1    generating         round 7 open 25%  2          1.5 kB  3 MB      -       -
2      p2    generating (away)  round 7 open 25%  2          1.5 kB  3 MB      -       -
`
	want = strings.Replace(want, "ROUND            ", "ROUND             ", 1)
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestPrintJobs(t *testing.T) {
	now := time.Now()
	long := failedJob(now)
	long.Id, long.Reason = "j2", strings.Repeat("é", 100)
	done := &coordinatorv1.Job{
		Id: "j3", State: jobv1.JobState_JOB_STATE_COMPLETED, Epoch: 3, Created: timestamppb.New(now), Request: &coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS},
	}
	var out bytes.Buffer
	if err := PrintJobs(&out, []*coordinatorv1.Job{failedJob(now), long, done}, now); err != nil {
		t.Fatal(err)
	}
	want := `
ID  KIND    FIELD  STATE      AGE   PROGRESS          REASON
j1  scalar  p128   failed     1m0s  round 7 open 25%  party 2 (p2) opened something else [2J root#
j2  scalar  p128   failed     1m0s  round 7 open 25%  ` + strings.Repeat("é", maxReason-1) + `…
j3  keys    -      completed  0s    epoch 3           -
`
	if got := "\n" + out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
