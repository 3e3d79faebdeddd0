package coordinator

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func (f *fakeNet) estimate(client string, q *coordinatorv1.JobRequest) (*coordinatorv1.EstimateJobResponse, error) {
	return f.dial(client).EstimateJob(f.Context(), &coordinatorv1.EstimateJobRequest{Job: q})
}

// An estimate comes from the model until similar jobs have completed, and submits nothing.
func TestEstimateJob(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	q := scalarJob(epoch)
	q.Count = 2350
	e, err := f.estimate("operator", q)
	if err != nil {
		t.Fatal(err)
	}
	if e.GetTuples() != 1000 || e.GetJobs() != 3 || e.GetStoredBytes() != 96_000 || e.GetTupleBytes() != 96 || e.GetDim() != 1 ||
		e.GetMemoryBytes() != 1<<20 || e.GetSentBytes() != 125_000_000 || e.GetDuration().AsDuration() != 3*time.Second ||
		e.GetBasis() != coordinatorv1.EstimateBasis_ESTIMATE_BASIS_MODEL || e.GetSamples() != 0 ||
		e.GetAllTuples() != 3000 || e.GetAllStoredBytes() != 288_000 || e.GetAllSentBytes() != 375_000_000 || e.GetAllDuration().AsDuration() != 9*time.Second {
		t.Errorf("model %v", e)
	}
	for _, c := range []struct{ count, jobs, all uint64 }{{2000, 2, 2000}, {5_000_000, 5000, 5_000_000}, {math.MaxUint64, math.MaxUint64/1000 + 1, math.MaxUint64}} {
		q.Count = c.count
		e, err = f.estimate("operator", q)
		if err != nil || e.GetTuples() != 1000 || e.GetJobs() != c.jobs || e.GetAllTuples() != c.all || e.GetAllDuration().AsDuration() < 0 || e.GetAllSentBytes() < e.GetSentBytes() {
			t.Errorf("%d tuples: %v, %v", c.count, e, err)
		}
	}
	q.Count = 60
	f.complete(q)
	f.complete(q)
	q.Dim = 0 // the best choice
	e, err = f.estimate("operator", q)
	if err != nil || e.GetBasis() != coordinatorv1.EstimateBasis_ESTIMATE_BASIS_HISTORY || e.GetSamples() != 2 || e.GetTuples() != 100 || e.GetJobs() != 1 ||
		e.GetDuration().AsDuration() <= 0 || e.GetDuration().AsDuration() > 2*time.Second {
		t.Errorf("history %v, %v", e, err)
	}
	q.Field = "p256"
	if e, err = f.estimate("operator", q); err != nil || e.GetBasis() != coordinatorv1.EstimateBasis_ESTIMATE_BASIS_MODEL {
		t.Errorf("another field: %v, %v", e, err)
	}
	list, err := f.client.ListJobs(t.Context(), &coordinatorv1.ListJobsRequest{})
	if err != nil || len(list.GetJobs()) != 3 {
		t.Errorf("%d jobs, %v", len(list.GetJobs()), err)
	}
	// One unreachable party does not matter because each party plans independently.
	f.kill(1)
	if e, err = f.estimate("operator", q); err != nil || e.GetTuples() != 100 {
		t.Errorf("with an unreachable party: %v, %v", e, err)
	}
	f.kill(0)
	if _, err = f.estimate("operator", q); !is(err, rpc.Unavailable) {
		t.Errorf("with all parties unreachable: %v", err)
	}
}

func TestEstimateRefusals(t *testing.T) {
	f := newNet(t, 2)
	for _, c := range []struct {
		name   string
		change func(*coordinatorv1.JobRequest)
		code   rpc.Code
	}{
		{"no epoch", func(q *coordinatorv1.JobRequest) { q.Epoch = 0 }, rpc.Invalid},
		{"another tenant", func(q *coordinatorv1.JobRequest) { q.Tenant = "others" }, rpc.Forbidden},
		{"keys", func(q *coordinatorv1.JobRequest) { proto.Reset(q); proto.Merge(q, keysJob()) }, rpc.Invalid},
		{"proofs", func(q *coordinatorv1.JobRequest) { q.Kind = jobv1.Kind_KIND_PROOF }, rpc.Invalid},
		{"parameters that are not pinned", func(q *coordinatorv1.JobRequest) { q.Params = "S15-64" }, rpc.PolicyRefused},
		{"no count", func(q *coordinatorv1.JobRequest) { q.Count = 0 }, rpc.Invalid},
		{"a dim that is not a power of two", func(q *coordinatorv1.JobRequest) {
			q.Kind, q.Dim, q.Shape = jobv1.Kind_KIND_MATRIX, 3, &jobv1.Shape{Rows: 3, Inner: 3, Columns: 3}
		}, rpc.Invalid},
		{"masks without a party", func(q *coordinatorv1.JobRequest) { q.Kind, q.InputParty = jobv1.Kind_KIND_INPUT, 2 }, rpc.Invalid},
		{"keys for decryption", func(q *coordinatorv1.JobRequest) { q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION }, rpc.KeyPurpose},
	} {
		q := scalarJob(1)
		c.change(q)
		if _, err := f.estimate("operator", q); !is(err, c.code) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: q}); c.name != "keys" && c.name != "proofs" && !is(err, c.code) {
			t.Errorf("%s: submitted: %v", c.name, err)
		}
	}
	if _, err := f.client.EstimateJob(t.Context(), &coordinatorv1.EstimateJobRequest{}); !is(err, rpc.Invalid) {
		t.Errorf("no job in the request: %v", err)
	}
	if _, err := f.estimate("viewer", scalarJob(1)); !is(err, rpc.Forbidden) {
		t.Errorf("without the permission: %v", err)
	}
	if _, err := f.estimate("nobody", scalarJob(1)); !is(err, rpc.Forbidden) {
		t.Errorf("an unknown client: %v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := f.client.EstimateJob(late, &coordinatorv1.EstimateJobRequest{Job: scalarJob(1)}); !is(err, rpc.TimedOut) {
		t.Errorf("too late: %v", err)
	}
	for _, code := range []rpc.Code{rpc.NotFound, rpc.Burnt, rpc.Conflict, rpc.PinMismatch, rpc.PolicyRefused} {
		f.parties[1].change(func(p *fakeParty) {
			p.onEstimate = func(*jobv1.SessionSpec) (*triplesv1.EstimateResponse, error) {
				return nil, rpc.Errorf(code, "do this", "because")
			}
		})
		if _, err := f.estimate("operator", scalarJob(1)); !is(err, code) || rpc.FromError(err).Next != "do this" || rpc.FromError(err).What != "party p1 refuses: because" {
			t.Errorf("%s: %v", code, err)
		}
	}
	for name, change := range map[string]func(*triplesv1.EstimateResponse){
		"nothing":      func(r *triplesv1.EstimateResponse) { r.Tuples = 0 },
		"everything":   func(r *triplesv1.EstimateResponse) { r.TupleBytes = 1 << 63 },
		"many tuples":  func(r *triplesv1.EstimateResponse) { r.Tuples = 1 << 32 },
		"much traffic": func(r *triplesv1.EstimateResponse) { r.SentBytes = 1 << 61 },
		"much memory":  func(r *triplesv1.EstimateResponse) { r.MemoryBytes = 1 << 61 },
		"no time":      func(r *triplesv1.EstimateResponse) { r.ComputeSeconds = math.NaN() },
		"other tuples": func(r *triplesv1.EstimateResponse) { r.Tuples++ },
		"another dim":  func(r *triplesv1.EstimateResponse) { r.Dim++ },
	} {
		for i, p := range f.parties {
			p.change(func(p *fakeParty) {
				p.onEstimate = func(s *jobv1.SessionSpec) (*triplesv1.EstimateResponse, error) {
					r := estimateOf(s)
					if i == 0 || !strings.HasPrefix(name, "other") && !strings.HasPrefix(name, "another") {
						change(r)
					}
					return r, nil
				}
			})
		}
		why := "is invalid"
		if strings.HasPrefix(name, "other") || strings.HasPrefix(name, "another") {
			why = "different jobs"
		}
		if _, err := f.estimate("operator", scalarJob(1)); !is(err, rpc.Internal) || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v, want %q", name, err, why)
		}
	}
}
