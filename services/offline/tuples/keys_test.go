package tuples

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

const (
	online = tuplesv1.Purpose_PURPOSE_ONLINE
	verify = tuplesv1.Purpose_PURPOSE_VERIFY
)

// A share for the online phase leaves the key as it is; one to be pooled burns it, with its epoch
// and tuples, first.
func TestDrawMacKey(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.propose(reservation("drawn", 0, 5), 0, 1, 2)
	n.propose(reservation("kept", 5, 5), 0, 1, 2)
	alice := n.as("alice", 0)
	_, err := fetch(ctx, alice, "drawn", 0)
	must(t, err)
	draw := func(name, key string, purpose tuplesv1.Purpose) (string, error) {
		r, err := n.as(name, 0).DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: key, Purpose: purpose})
		return string(r.GetShare()), err
	}
	for range 2 {
		if got, err := draw("weak", "mac", online); err != nil || got != "key share" {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, c := range []struct {
		name, key string
		purpose   tuplesv1.Purpose
		want      rpc.Code
	}{
		{"eve", "mac", online, rpc.NotFound},
		{"alice", "unknown", online, rpc.NotFound},
		{"alice", "", verify, rpc.NotFound},
		{"alice", "mac", 0, rpc.Invalid},
		{"alice", "mac", 9, rpc.Invalid},
		{"weak", "mac", verify, rpc.Forbidden},
	} {
		got, err := draw(c.name, c.key, c.purpose)
		if refusal(t, err, c.want); got != "" {
			t.Errorf("%v: a share", c)
		}
	}
	if k, err := n.nodes[0].vault.MACKey("mac"); err != nil || k.State != keys.MACActive {
		t.Errorf("refusals leave %+v, %v", k, err)
	}
	if got, err := draw("alice", "mac", verify); err != nil || got != "key share" {
		t.Errorf("%q, %v", got, err)
	}
	k, err := n.nodes[0].vault.MACKey("mac")
	if err != nil || k.State != keys.MACBurnt {
		t.Errorf("after it was pooled: %+v, %v", k, err)
	}
	if e, err := n.nodes[0].vault.Epoch(1); err != nil || e.State != keys.EpochRetired {
		t.Errorf("after its key was pooled: %+v, %v", e, err)
	}
	for _, p := range []tuplesv1.Purpose{online, verify} {
		got, err := draw("alice", "mac", p)
		if refusal(t, err, rpc.Burnt); got != "" {
			t.Errorf("%s: a share of a burnt key", p)
		}
	}
	for _, id := range []string{"drawn", "kept"} {
		got, err := fetch(ctx, alice, id, 0)
		if refusal(t, err, rpc.Burnt); len(got) > 0 {
			t.Errorf("%s: shares under a burnt key", id)
		}
	}
}

// The share that is to be pooled stays when it cannot be known that the key is burnt for good.
func TestNoShareWithoutPeers(t *testing.T) {
	n := newNet(t)
	n.nodes[1].stop()
	n.nodes[0].stop()
	n.start(n.nodes[0], nil) // whom party 1 has not seen since
	for _, p := range []tuplesv1.Purpose{online, verify} {
		r, err := n.as("alice", 0).DrawMacKey(n.context(time.Second), &tuplesv1.DrawMacKeyRequest{MacKeyId: "mac", Purpose: p})
		if refusal(t, err, rpc.TimedOut); len(r.GetShare()) > 0 {
			t.Errorf("%s: a share", p)
		}
	}
}

func TestReportFailedCheck(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.propose(reservation("r", 0, 5), 0, 1, 2)
	report := func(name, key, reason string) (*tuplesv1.ReportFailedCheckResponse, error) {
		return n.as(name, 0).ReportFailedCheck(ctx, &tuplesv1.ReportFailedCheckRequest{MacKeyId: key, Reason: reason})
	}
	_, err := report("eve", "mac", "")
	refusal(t, err, rpc.NotFound)
	_, err = report("alice", "unknown", "")
	refusal(t, err, rpc.NotFound)
	_, err = report("alice", "mac", strings.Repeat("x", maxReason+1))
	refusal(t, err, rpc.TooLarge)
	_, err = fetch(ctx, n.as("alice", 0), "r", 0)
	must(t, err)
	for i, batches := range []uint32{1, 0} { // again is as good
		r, err := report("weak", "mac", "line\nbreak \x00")
		if err != nil || r.GetBatches() != batches || r.GetKey().GetState() != tuplesv1.MacKeyState_MAC_KEY_STATE_BURNT {
			t.Errorf("report %d: %v, %v", i, r, err)
		}
	}
	_, err = fetch(ctx, n.as("alice", 0), "r", 0)
	refusal(t, err, rpc.Burnt)
	_, err = fetch(ctx, n.as("alice", 1), "r", 0) // who has not heard of it
	must(t, err)
}

// A call that burns or revokes returns only when all peers have recorded the version of the store.
// They then recognise an older copy of the store that is restored later.
func TestBurningIsAnnounced(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, c tuplesv1.TuplesServiceClient) error{
		"draw to pool": func(ctx context.Context, c tuplesv1.TuplesServiceClient) error {
			r, err := c.DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: "mac", Purpose: verify})
			if len(r.GetShare()) > 0 {
				t.Error("the share came")
			}
			return err
		},
		"failed check": func(ctx context.Context, c tuplesv1.TuplesServiceClient) error {
			_, err := c.ReportFailedCheck(ctx, &tuplesv1.ReportFailedCheckRequest{MacKeyId: "mac"})
			return err
		},
		"revoke": func(ctx context.Context, c tuplesv1.TuplesServiceClient) error {
			_, err := c.Revoke(ctx, &tuplesv1.RevokeRequest{BatchIds: []string{"b"}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNet(t)
			n.nodes[2].stop()
			refusal(t, call(n.context(time.Second), n.as("alice", 0)), rpc.TimedOut)
		})
	}
}

func TestRevoke(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	n.nodes[0].fill(t, "c", 10, 32)
	revoke := func(name string, r *tuplesv1.RevokeRequest) (*tuplesv1.RevokeResponse, error) {
		return n.as(name, 0).Revoke(ctx, r)
	}
	for name, c := range map[string]struct {
		who  string
		r    *tuplesv1.RevokeRequest
		want rpc.Code
	}{
		"neither":        {"alice", &tuplesv1.RevokeRequest{}, rpc.Invalid},
		"both":           {"alice", &tuplesv1.RevokeRequest{BatchIds: []string{"b"}, MacKeyId: "mac"}, rpc.Invalid},
		"too many":       {"alice", &tuplesv1.RevokeRequest{BatchIds: make([]string, 1001)}, rpc.TooLarge},
		"reason":         {"alice", &tuplesv1.RevokeRequest{BatchIds: []string{"b"}, Reason: strings.Repeat("x", maxReason+1)}, rpc.TooLarge},
		"one is unknown": {"alice", &tuplesv1.RevokeRequest{BatchIds: []string{"b", "unknown"}}, rpc.NotFound},
		"unknown key":    {"alice", &tuplesv1.RevokeRequest{MacKeyId: "unknown"}, rpc.NotFound},
		"of others":      {"eve", &tuplesv1.RevokeRequest{BatchIds: []string{"b"}}, rpc.NotFound},
		"key of others":  {"eve", &tuplesv1.RevokeRequest{MacKeyId: "mac"}, rpc.NotFound},
		"no permission":  {"weak", &tuplesv1.RevokeRequest{BatchIds: []string{"b"}}, rpc.Forbidden},
	} {
		_, err := revoke(c.who, c.r)
		if e := rpc.FromError(err); e == nil || e.Code != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
	state := func(id string, want stock.BatchState) {
		t.Helper()
		if b, err := n.nodes[0].vault.Batch(id); err != nil || b.State != want {
			t.Errorf("%s: %s, %v", id, b.State, err)
		}
	}
	check := func(r *tuplesv1.RevokeResponse, err error, batches uint32, tuples uint64) {
		t.Helper()
		if err != nil || r.GetBatches() != batches || r.GetTuples() != tuples {
			t.Errorf("%v, %v", r, err)
		}
	}
	r, err := revoke("alice", &tuplesv1.RevokeRequest{BatchIds: []string{"c"}, DryRun: true})
	check(r, err, 1, 10)
	r, err = revoke("alice", &tuplesv1.RevokeRequest{MacKeyId: "mac", DryRun: true})
	check(r, err, 2, 110)
	state("b", stock.BatchAvailable)
	state("c", stock.BatchAvailable)
	r, err = revoke("alice", &tuplesv1.RevokeRequest{BatchIds: []string{"c"}})
	check(r, err, 1, 10)
	state("b", stock.BatchAvailable)
	state("c", stock.BatchRevoked)
	for _, left := range []uint32{1, 0} {
		r, err = revoke("alice", &tuplesv1.RevokeRequest{MacKeyId: "mac"})
		check(r, err, left, 100*uint64(left))
	}
	state("b", stock.BatchRevoked)
	if k, err := n.nodes[0].vault.MACKey("mac"); err != nil || k.State != keys.MACBurnt {
		t.Errorf("%+v, %v", k, err)
	}
}

// Bounds on requests of the coordinator and peers, and invalid names and times.
func TestLimits(t *testing.T) {
	n := newNet(t)
	ctx := n.context(20 * time.Second)
	c := n.as("coordinator", 0)
	ids := make([]string, maxItems+1)
	many := make([]*tuplesv1.Reservation, maxItems+1)
	for i := range ids {
		ids[i] = fmt.Sprintf("r-%d", i)
		many[i] = reservation(ids[i], 0, 1)
	}
	_, err := c.Propose(ctx, &tuplesv1.ProposeRequest{Reservations: many})
	refusal(t, err, rpc.TooLarge)
	_, err = c.Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: ids})
	refusal(t, err, rpc.TooLarge)
	_, err = c.Release(ctx, &tuplesv1.ReleaseRequest{Ids: ids})
	refusal(t, err, rpc.TooLarge)
	_, err = n.as("p1", 0).Confirm(ctx, &tuplesv1.ConfirmRequest{Items: make([]*tuplesv1.ConfirmRequest_Item, maxItems+1)})
	refusal(t, err, rpc.TooLarge)
	for _, f := range []func(limit uint32) error{
		func(l uint32) error {
			_, err := c.ListReservations(ctx, &tuplesv1.ListReservationsRequest{Limit: l})
			return err
		},
		func(l uint32) error {
			_, err := c.ListBatches(ctx, &tuplesv1.ListBatchesRequest{Limit: l})
			return err
		},
	} {
		must(t, f(1000))
		refusal(t, f(1001), rpc.Invalid)
	}
	for name, change := range map[string]func(*tuplesv1.Reservation){
		"no id":        func(r *tuplesv1.Reservation) { r.Id = "" },
		"long id":      func(r *tuplesv1.Reservation) { r.Id = strings.Repeat("x", 65) },
		"path":         func(r *tuplesv1.Reservation) { r.Id = "../x" },
		"zero":         func(r *tuplesv1.Reservation) { r.Id = "a\x00" },
		"no owner":     func(r *tuplesv1.Reservation) { r.Owner = "" },
		"owner":        func(r *tuplesv1.Reservation) { r.Owner = strings.Repeat("x", 65) },
		"client":       func(r *tuplesv1.Reservation) { r.Clients = []string{"Alice"} },
		"clients":      func(r *tuplesv1.Reservation) { r.Clients = make([]string, 10000) },
		"no lease":     func(r *tuplesv1.Reservation) { r.Lease = nil },
		"nanoseconds":  func(r *tuplesv1.Reservation) { r.Lease.Nanos = -1 },
		"far":          func(r *tuplesv1.Reservation) { r.Lease = &timestamppb.Timestamp{Seconds: 1 << 60} },
		"next month":   func(r *tuplesv1.Reservation) { r.Lease = timestamppb.New(time.Now().Add(stock.MaxLease + 2*time.Hour)) },
		"no ranges":    func(r *tuplesv1.Reservation) { r.Ranges = nil },
		"nil range":    func(r *tuplesv1.Reservation) { r.Ranges = []*tuplesv1.Range{nil} },
		"many ranges":  func(r *tuplesv1.Reservation) { r.Ranges = make([]*tuplesv1.Range, stock.MaxRanges+1) },
		"beyond":       func(r *tuplesv1.Reservation) { r.Ranges[0].First = 100 },
		"around":       func(r *tuplesv1.Reservation) { r.Ranges[0].First, r.Ranges[0].Count = 99, ^uint64(0) },
		"other class":  func(r *tuplesv1.Reservation) { r.Class.Tenant = "other" },
		"no class":     func(r *tuplesv1.Reservation) { r.Class = nil },
		"other epoch":  func(r *tuplesv1.Reservation) { r.Epoch = 2 },
		"other key":    func(r *tuplesv1.Reservation) { r.MacKeyId = "unknown" },
		"unknown":      func(r *tuplesv1.Reservation) { r.Ranges[0].BatchId = "unknown" },
		"long batch":   func(r *tuplesv1.Reservation) { r.Ranges[0].BatchId = strings.Repeat("x", 5000) },
		"zero in name": func(r *tuplesv1.Reservation) { r.Ranges[0].BatchId = "b\x00" },
		"ended":        func(r *tuplesv1.Reservation) { r.Lease = timestamppb.New(time.Now().Add(-time.Second)) },
	} {
		r := reservation("r", 0, 1)
		change(r)
		out, err := c.Propose(ctx, &tuplesv1.ProposeRequest{Reservations: []*tuplesv1.Reservation{r}})
		if err != nil || len(out.GetOutcomes()) != 1 {
			t.Errorf("%s: %v", name, err)
			continue
		}
		o := out.GetOutcomes()[0]
		if code := rpc.Code(o.GetCode()); code != rpc.Invalid && code != rpc.NotFound && code != rpc.Expired {
			t.Errorf("%s: %v", name, o)
		}
		if o.GetState() != 0 || len(o.GetDigest()) > 0 {
			t.Errorf("%s: %v, though nothing is recorded", name, o)
		}
	}
	for _, after := range []string{"A", "a\x00", strings.Repeat("x", 65)} {
		_, err := c.ListReservations(ctx, &tuplesv1.ListReservationsRequest{After: after})
		refusal(t, err, rpc.Invalid)
	}
	for _, id := range []string{"", strings.Repeat("x", 10000), "a\x00", "unknown"} {
		_, err := fetch(ctx, n.as("alice", 0), id, 0)
		refusal(t, err, rpc.NotFound)
		_, err = c.GetReservation(ctx, &tuplesv1.GetReservationRequest{Id: id})
		refusal(t, err, rpc.NotFound)
		_, err = n.as("alice", 0).DrawMacKey(ctx, &tuplesv1.DrawMacKeyRequest{MacKeyId: id, Purpose: online})
		refusal(t, err, rpc.NotFound)
		out, err := c.Withdraw(ctx, &tuplesv1.WithdrawRequest{Ids: []string{id}})
		if err != nil || out.GetOutcomes()[0].GetCode() != string(rpc.NotFound) {
			t.Errorf("%v, %v", out, err)
		}
		out2, err := c.Release(ctx, &tuplesv1.ReleaseRequest{Ids: []string{id}})
		if err != nil || out2.GetOutcomes()[0].GetCode() != string(rpc.NotFound) {
			t.Errorf("%v, %v", out2, err)
		}
	}
	if _, err := n.nodes[0].vault.Reservation("r"); err == nil {
		t.Error("something is recorded")
	}
}

// Pooling a MAC key retires its epoch, so it needs a client that acts for every tenant with
// something under the epoch.
func TestPoolNeedsEveryTenant(t *testing.T) {
	n := newNet(t)
	x := n.nodes[0]
	w, err := x.vault.NewBatch(stock.Batch{ID: "theirs", Epoch: 1, MACKey: "theirs", Params: "set", Field: "p128", Kind: "scalar", Dim: 1,
		Count: 1, Tenant: "other", TupleBytes: 8})
	must(t, err)
	defer w.Abort()
	_, err = w.Write(make([]byte, 8))
	must(t, err)
	must(t, w.Commit(&keys.NewMACKey{MACKey: keys.MACKey{ID: "theirs", Epoch: 1, Params: "set", Field: "p128", Tenant: "other"}, Secret: []byte("x")}))
	r, err := n.as("alice", 0).DrawMacKey(n.context(20*time.Second), &tuplesv1.DrawMacKeyRequest{MacKeyId: "mac", Purpose: verify})
	if refusal(t, err, rpc.Forbidden); len(r.GetShare()) > 0 {
		t.Error("a share left the party")
	}
	if e, err := x.vault.Epoch(1); err != nil || e.State != keys.EpochActive {
		t.Errorf("epoch 1 is %s, %v", e.State, err)
	}
}
