package coordinator

import (
	"context"
	"testing"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// A client submits, sees and cancels only its tenants' jobs. All clients see jobs without a
// tenant.
func TestJobsOfTenants(t *testing.T) {
	f := newNet(t, 2)
	keys := f.complete(keysJob())
	ours := f.complete(scalarJob(keys.GetEpoch())).GetId()
	stranger := f.dial("stranger")
	ctx := t.Context()
	q := scalarJob(keys.GetEpoch())
	submit := func(c coordinatorv1.CoordinatorServiceClient) (string, error) {
		r, err := c.SubmitJob(ctx, &coordinatorv1.SubmitJobRequest{Job: q, IdempotencyKey: "k"})
		return r.GetJob().GetId(), err
	}
	if _, err := submit(stranger); !is(err, rpc.Forbidden) {
		t.Errorf("submitted for another tenant: %v", err)
	}
	if _, err := stranger.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: q}); !is(err, rpc.Forbidden) {
		t.Errorf("estimated for another tenant: %v", err)
	}
	q.Tenant = "others"
	if _, err := submit(f.client); !is(err, rpc.Forbidden) {
		t.Errorf("submitted for the stranger's tenant: %v", err)
	}
	if _, err := stranger.EstimateJob(ctx, &coordinatorv1.EstimateJobRequest{Job: q}); err != nil {
		t.Error(err)
	}
	g := f.gate()
	theirs, err := submit(stranger)
	if err != nil {
		t.Fatal(err)
	}
	cancelAt := func(c coordinatorv1.CoordinatorServiceClient, id string) error {
		_, err := c.CancelJob(ctx, &coordinatorv1.CancelJobRequest{Id: id})
		return err
	}
	watch := func(c coordinatorv1.CoordinatorServiceClient, id string) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.WatchJob(ctx, &coordinatorv1.WatchJobRequest{Id: id})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	}
	for _, x := range []struct {
		name   string
		client coordinatorv1.CoordinatorServiceClient
		sees   []string // newest first
		hidden string
	}{
		{"operator", f.client, []string{ours, keys.GetId()}, theirs},
		{"viewer", f.dial("viewer"), []string{ours, keys.GetId()}, theirs},
		{"stranger", stranger, []string{theirs, keys.GetId()}, ours},
	} {
		// Pages of one job: hidden jobs do not take up places on a page.
		var list []string
		for before, more := "", true; more; more = before != "" {
			r, err := x.client.ListJobs(ctx, &coordinatorv1.ListJobsRequest{Limit: 1, Before: before})
			if err != nil || len(r.GetJobs()) != 1 {
				t.Fatalf("%s: %v, %v", x.name, r, err)
			}
			list, before = append(list, r.GetJobs()[0].GetId()), r.GetNext()
		}
		if len(list) != 2 || list[0] != x.sees[0] || list[1] != x.sees[1] {
			t.Errorf("%s sees %v, want %v", x.name, list, x.sees)
		}
		for _, id := range x.sees {
			if _, err := x.client.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: id}); err != nil {
				t.Errorf("%s gets %s: %v", x.name, id, err)
			}
			if err := watch(x.client, id); err != nil {
				t.Errorf("%s watches %s: %v", x.name, id, err)
			}
		}
		_, unknown := x.client.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: "j0"})
		_, err := x.client.GetJob(ctx, &coordinatorv1.GetJobRequest{Id: x.hidden})
		if !is(err, rpc.NotFound) || rpc.FromError(err).Next != rpc.FromError(unknown).Next {
			t.Errorf("%s gets %s: %v, and for a missing job %v", x.name, x.hidden, err, unknown)
		}
		if err := watch(x.client, x.hidden); !is(err, rpc.NotFound) {
			t.Errorf("%s watches %s: %v", x.name, x.hidden, err)
		}
	}
	if err := cancelAt(f.client, theirs); !is(err, rpc.NotFound) {
		t.Errorf("cancelled by another tenant: %v", err)
	}
	if err := cancelAt(stranger, theirs); err != nil {
		t.Error(err)
	}
	last := f.submit(keysJob())
	g.runs(last)
	if err := cancelAt(stranger, last); !is(err, rpc.Forbidden) {
		t.Errorf("one tenant's client cancels keys for all: %v", err)
	}
	if err := cancelAt(f.dial("rotator"), last); err != nil {
		t.Errorf("a client of every tenant: %v", err)
	}
	f.until(last, over)
}
