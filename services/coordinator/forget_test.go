package coordinator

import (
	"slices"
	"testing"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Old jobs are deleted, also on disk, except jobs that made keys and jobs that have not ended.
func TestForget(t *testing.T) {
	f := newNet(t, 2)
	keys := f.complete(keysJob())
	var ids []string
	for range 8 {
		ids = append(ids, f.complete(scalarJob(1)).GetId())
	}
	f.kill(1)
	open := f.submit(scalarJob(1))
	c := f.running
	c.mu.Lock()
	c.forget(10, 4) // not above the limit: deletes no job
	before := len(c.list)
	c.forget(9, 4)
	after := slices.Clone(c.list)
	c.mu.Unlock()
	want := []string{keys.GetId(), ids[6], ids[7], open}
	if before != 10 || !slices.Equal(after, want) {
		t.Errorf("%d jobs, then %v, want %v", before, after, want)
	}
	if _, err := f.client.GetJob(t.Context(), &coordinatorv1.GetJobRequest{Id: ids[0]}); !is(err, rpc.NotFound) {
		t.Errorf("a deleted job: %v", err)
	}
	all, err := c.records.all()
	var stored []string
	for _, r := range all {
		stored = append(stored, r.job.GetId())
	}
	if err != nil || !slices.Equal(stored, want) {
		t.Errorf("on disk %v, %v", stored, err)
	}
}
