package threshold_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// stocked is a world with the coordinator's stock.
type stocked struct {
	*world
	stock stockv1.StockServiceClient
}

func (w *world) stocked() *stocked {
	w.Helper()
	credentials, err := w.net.Credentials(devnet.Operator)
	if err != nil {
		w.Fatal(err)
	}
	conn, err := rpc.Dial(w.net.Roster.Coordinator.Address, w.net.Roster.Coordinator.Identity, credentials)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { conn.Close() })
	return &stocked{w, stockv1.NewStockServiceClient(conn)}
}

// eventually waits until ok accepts the stock of a quorum.
func (w *stocked) eventually(quorum []uint32, ok func(*stockv1.Stock) bool) *stockv1.Stock {
	w.Helper()
	var last *stockv1.Stock
	for until := time.Now().Add(3 * time.Minute); time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		r, err := w.stock.GetStock(w.Context(), &stockv1.GetStockRequest{}, grpc.WaitForReady(true))
		if err != nil {
			w.Fatal(err)
		}
		for _, x := range r.GetStock() {
			if slices.Equal(x.GetClass().GetQuorum(), quorum) {
				if last = x; ok(x) {
					return x
				}
			}
		}
	}
	w.Fatalf("the stock of %v stays %v", quorum, last)
	return nil
}

// A policy keeps the masks of a quorum above its low mark while a client decrypts, for keys that
// not all parties hold.
func TestPolicyKeepsMasks(t *testing.T) {
	w := newWorld(t, 4, nil).stocked()
	epoch := w.complete(&coordinatorv1.JobRequest{Kind: jobv1.Kind_KIND_KEYS, Params: set, Threshold: 1, Group: []uint32{0, 1, 2}}).GetEpoch()
	quorum := []uint32{0, 2}
	class := func(quorum []uint32) *tuplesv1.Class {
		return &tuplesv1.Class{Kind: jobv1.Kind_KIND_MASKS, Params: set, Quorum: quorum, Form: jobv1.MaskForm_MASK_FORM_EXACT}
	}
	const low, high, batch = 31, 60, 60
	policy := func(quorum ...uint32) error {
		_, err := w.stock.SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: &stockv1.Policy{Class: class(quorum), Low: low, High: high, Batch: batch}})
		return err
	}
	refused(t, policy(2, 0), lodge.Invalid, "ascending")
	refused(t, policy(0, 9), lodge.Invalid, "party 9")
	for _, q := range [][]uint32{quorum, {0, 3}, {0, 1, 2}} {
		if err := policy(q...); err != nil {
			t.Fatal(err)
		}
	}
	full := func(x *stockv1.Stock) bool { return x.GetAvailable() >= high && x.GetInProduction() == 0 }
	if x := w.eventually(quorum, full); x.GetEpoch() != epoch || x.GetAvailable() != batch || x.GetHeldBack() != "" {
		t.Errorf("%v", x)
	}
	w.eventually([]uint32{0, 3}, func(x *stockv1.Stock) bool {
		return strings.Contains(x.GetHeldBack(), "no epoch is active for threshold decryption")
	})
	w.eventually([]uint32{0, 1, 2}, func(x *stockv1.Stock) bool { return strings.Contains(x.GetHeldBack(), "3 parties; the keys of epoch") })

	k, public := w.key(epoch)
	messages := make([]uint64, 30)
	for round := range 4 {
		for i := range messages {
			messages[i] = uint64(i+round) % 8
		}
		w.opens(k, ring(w.encrypt(k, public, messages...), len(messages), quorum...), messages)
		spent := uint64((round + 1) * len(messages))
		x := w.eventually(quorum, func(x *stockv1.Stock) bool {
			return x.GetConsumed() >= spent && x.GetAvailable() >= low && x.GetInProduction() == 0
		})
		if x.GetConsumed() != spent || x.GetReserved() != 0 || x.GetLost() != 0 {
			t.Errorf("after %d messages: %v", spent, x)
		}
	}
	r, err := w.operator.ListJobs(t.Context(), &coordinatorv1.ListJobsRequest{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	for _, j := range r.GetJobs() {
		if q := j.GetRequest(); j.GetSubmittedBy() == config.StockName {
			made++
			if q.GetKind() != jobv1.Kind_KIND_MASKS || q.GetEpoch() != epoch || !slices.Equal(q.GetGroup(), quorum) {
				t.Errorf("%v", q)
			}
		}
	}
	if made != 3 { // at 0, and twice at 30 of 60
		t.Errorf("%d jobs of policies", made)
	}
	_, err = w.stock.Reserve(t.Context(), &stockv1.ReserveRequest{Class: class(quorum), Count: 1})
	refused(t, err, lodge.Invalid, "cannot be reserved")

	job := &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_MASKS, Purpose: jobv1.Purpose_PURPOSE_THRESHOLD, Params: set, Epoch: epoch, Count: batch, Group: quorum, Form: jobv1.MaskForm_MASK_FORM_EXACT,
	}
	e, err := w.operator.EstimateJob(t.Context(), &coordinatorv1.EstimateJobRequest{Job: job})
	if err != nil || e.GetTuples() != batch || e.GetTupleBytes() == 0 || e.GetMemoryBytes() == 0 || e.GetSamples() != 3 || e.GetDuration().AsDuration() <= 0 {
		t.Errorf("%v: %v", e, err)
	}
	job.Count = 1 << 30
	_, err = w.operator.EstimateJob(t.Context(), &coordinatorv1.EstimateJobRequest{Job: job})
	if e := lodge.FromError(err); err == nil || e.Code != lodge.Invalid && e.Code != lodge.PolicyRefused {
		t.Errorf("a job of too many: %v", err)
	}
}
