package coordinator

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func (f *fakeNet) reserve(ctx context.Context, key string, count uint64) (*tuplesv1.Reservation, error) {
	f.Helper()
	r, err := f.stock("keeper").Reserve(ctx, &stockv1.ReserveRequest{Class: scalars(), Count: count, IdempotencyKey: key})
	return r.GetReservation(), err
}

// heldEverywhere reports whether all parties hold a reservation.
func (f *fakeNet) heldEverywhere(id string) bool {
	for _, p := range f.parties {
		p.mu.Lock()
		state := p.reserved[id]
		p.mu.Unlock()
		if state != tuplesv1.ReservationState_RESERVATION_STATE_RESERVED {
			return false
		}
	}
	return true
}

// Repeating a request after an error returns a reservation that all parties hold, not the failed
// attempt.
func TestReserveAgainAfterAFailure(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(300, 500))
	f.watchStock(has(500))
	first, err := f.reserve(t.Context(), "k", 10)
	if err != nil || !f.heldEverywhere(first.GetId()) {
		t.Fatal(err)
	}
	again, err := f.reserve(t.Context(), "k", 10)
	if err != nil || again.GetId() != first.GetId() {
		t.Fatalf("%v after %v: %v", again, first, err)
	}
	f.kill(1)
	if _, err := f.reserve(t.Context(), "l", 10); !is(err, rpc.Unavailable) {
		t.Fatalf("with an unreachable party: %v", err)
	}
	for range 500 { // once the coordinator knows of the unreachable party it no longer reports too little stock
		if _, err = f.reserve(t.Context(), "m", 100_000); is(err, rpc.Unavailable) {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if !is(err, rpc.Unavailable) {
		t.Fatalf("with an unreachable party, and more than the stock: %v", err)
	}
	if _, err := f.reserve(t.Context(), "l", 10); !is(err, rpc.Unavailable) {
		t.Fatalf("again with an unreachable party: %v", err)
	}
	f.restart(1)
	late := time.Now().Add(10 * time.Second)
	for {
		r, err := f.reserve(t.Context(), "l", 10)
		if err == nil {
			time.Sleep(50 * time.Millisecond) // all withdrawals have ended by then
			if !f.heldEverywhere(r.GetId()) {
				t.Errorf("not all parties hold %v", r)
			}
			again, err := f.reserve(t.Context(), "l", 10)
			if err != nil || again.GetId() != r.GetId() {
				t.Errorf("%v after %v: %v", again, r, err)
			}
			break
		}
		if !is(err, rpc.Unavailable) && !is(err, rpc.OutOfStock) || time.Now().After(late) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A client that gives up does not hide stock from other clients.
func TestReserveGivenUp(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(300, 500))
	f.watchStock(has(500))
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Millisecond)
		f.reserve(ctx, "", 1)
		cancel()
		r, err := f.stock("keeper").GetStock(t.Context(), &stockv1.GetStockRequest{})
		if err != nil || len(r.GetStock()) != 1 || r.GetStock()[0].GetAvailable() < 400 {
			t.Fatalf("%v, %v", r, err)
		}
	}
}

// Each limit on reservations ends a call with its code, the next step, and the time of a retry if a
// retry can help. Releasing a reservation frees its tuples and its place. A restart preserves the
// counts.
func TestReserveLimits(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(300, 500))
	f.watchStock(has(500))
	// limit restarts the coordinator with other limits, and releases the open reservations.
	var open []string
	limit := func(l config.ReserveLimits) {
		t.Helper()
		for _, id := range open {
			if _, err := f.stock("keeper").Release(t.Context(), &stockv1.ReleaseRequest{Id: id}); err != nil {
				t.Fatal(err)
			}
		}
		open = nil
		f.stop()
		f.file.Reservations = l
		f.begin()
	}
	reserve := func(count uint64, lease time.Duration) error {
		t.Helper()
		r, err := f.stock("keeper").Reserve(t.Context(), &stockv1.ReserveRequest{Class: scalars(), Count: count, Lease: durationpb.New(lease)}, grpc.WaitForReady(true))
		if err == nil {
			open = append(open, r.GetReservation().GetId())
		}
		return err
	}
	for _, c := range []struct {
		name   string
		limits config.ReserveLimits
		fits   uint64 // may be reserved once
		more   uint64 // and this not then
		lease  time.Duration
		code   rpc.Code
		retry  bool
	}{
		{"open", config.ReserveLimits{MaxOpen: 1}, 10, 10, time.Hour, rpc.OverQuota, true},
		{"tuples", config.ReserveLimits{MaxTuples: 30}, 20, 11, time.Hour, rpc.OverQuota, true},
		{"share", config.ReserveLimits{MaxShare: 0.1}, 5, 200, time.Hour, rpc.OverQuota, true},
		{"lease", config.ReserveLimits{MaxLease: config.Duration(time.Hour)}, 10, 10, time.Hour + 1, rpc.OverQuota, false},
		{"default lease", config.ReserveLimits{}, 10, 10, 7 * 24 * time.Hour, rpc.OverQuota, false},
		{"rate", config.ReserveLimits{PerSecond: 0.001, Burst: 1}, 10, 10, time.Hour, rpc.RateLimited, true},
	} {
		limit(c.limits)
		var err error
		for late := time.Now().Add(10 * time.Second); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
			if err = reserve(c.fits, time.Hour); err == nil {
				break // the coordinator needs the parties' stock first
			}
		}
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		err = reserve(c.more, c.lease)
		if e := rpc.FromError(err); e == nil || e.Code != c.code || e.Next == "" || c.retry != (e.Retry > 0) {
			t.Errorf("%s: %+v", c.name, e)
		}
		if c.name == "open" { // also after a restart, until it is released
			f.stop()
			f.begin()
			for late := time.Now().Add(10 * time.Second); time.Now().Before(late); time.Sleep(20 * time.Millisecond) {
				if err = reserve(1, time.Hour); !is(err, rpc.Unavailable) && !is(err, rpc.OutOfStock) {
					break
				}
			}
			if !is(err, rpc.OverQuota) {
				t.Errorf("after a restart: %v", err)
			}
			if _, err := f.stock("keeper").Release(t.Context(), &stockv1.ReleaseRequest{Id: open[0]}); err != nil {
				t.Fatal(err)
			}
			open = open[1:]
			if err := reserve(1, time.Hour); err != nil {
				t.Errorf("after a release: %v", err)
			}
		}
	}
}

// A coordinator whose disk has too little free space refuses new work with disk_low and is not
// ready, answers everything else, and accepts work again when there is space.
func TestLowDisk(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.set(marks(300, 500))
	f.watchStock(has(500))
	r, err := f.reserve(t.Context(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	f.stop()
	f.file.Disk.MinFree = 1 << 62 // no disk has so much
	f.begin()
	low := func(what string, err error) {
		t.Helper()
		if !is(err, rpc.DiskLow) {
			t.Errorf("%s on a low disk: %v", what, err)
		}
	}
	_, err = f.client.SubmitJob(t.Context(), &coordinatorv1.SubmitJobRequest{Job: keysJob()}, grpc.WaitForReady(true))
	low("a job", err)
	_, err = f.rotate("rotator", &coordinatorv1.RotateKeysRequest{Epoch: epoch})
	low("a rotation", err)
	_, err = f.reserve(t.Context(), "", 10)
	low("a reservation", err)
	_, err = f.stock("keeper").SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: marks(300, 600)})
	low("a policy", err)
	if _, err := f.client.ListJobs(t.Context(), &coordinatorv1.ListJobsRequest{}); err != nil {
		t.Errorf("a list of jobs: %v", err)
	}
	if _, err := f.stock("keeper").Release(t.Context(), &stockv1.ReleaseRequest{Id: r.GetId()}); err != nil {
		t.Errorf("a release: %v", err)
	}
	if f.running.disks.Low() == nil {
		t.Error("the disk is not low")
	}
	f.stop()
	f.file.Disk.MinFree = 1
	f.begin()
	q := keysJob()
	q.Purpose = jobv1.Purpose_PURPOSE_DECRYPTION
	f.complete(q)
}
