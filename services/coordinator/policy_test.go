package coordinator

import (
	"context"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func scalars() *tuplesv1.Class {
	return &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S14-32", Field: "p128"}
}

// marks returns a policy whose jobs make 100 tuples.
func marks(low, high uint64) *stockv1.Policy {
	return &stockv1.Policy{Class: scalars(), Low: low, High: high, Batch: 60}
}

func (f *fakeNet) stock(client string) stockv1.StockServiceClient {
	return stockv1.NewStockServiceClient(f.conn(client))
}

func (f *fakeNet) set(p *stockv1.Policy) {
	f.Helper()
	if _, err := f.stock("keeper").SetPolicy(f.Context(), &stockv1.SetPolicyRequest{Policy: p}); err != nil {
		f.Fatal(err)
	}
}

// watchStock waits until ok accepts the stock of scalars.
func (f *fakeNet) watchStock(ok func(*stockv1.Stock) bool) *stockv1.Stock {
	f.Helper()
	var last *stockv1.Stock
	client := f.stock("keeper")
	for range 1000 {
		r, err := client.GetStock(f.Context(), &stockv1.GetStockRequest{})
		if err != nil {
			f.Fatal(err)
		}
		for _, x := range r.GetStock() {
			if proto.Equal(x.GetClass(), scalars()) {
				if last = x; ok(x) {
					return x
				}
			}
		}
		time.Sleep(10 * time.Millisecond)
	}
	f.Fatalf("the stock stays %v", last)
	return nil
}

func has(available uint64) func(*stockv1.Stock) bool {
	return func(x *stockv1.Stock) bool { return x.GetAvailable() == available && x.GetInProduction() == 0 }
}

func heldBack(why string) func(*stockv1.Stock) bool {
	return func(x *stockv1.Stock) bool { return strings.Contains(x.GetHeldBack(), why) }
}

// ofStock returns the jobs that policies submitted, oldest first.
func (f *fakeNet) ofStock() (list []*coordinatorv1.Job) {
	f.Helper()
	r, err := f.client.ListJobs(f.Context(), &coordinatorv1.ListJobsRequest{Limit: 1000})
	if err != nil {
		f.Fatal(err)
	}
	for _, j := range r.GetJobs() {
		if j.GetSubmittedBy() == config.StockName {
			list = append([]*coordinatorv1.Job{j}, list...)
		}
	}
	return list
}

// A policy fills the stock up to the high mark and no further, and again when the stock falls below
// the low mark.
func TestPolicyKeepsStock(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	f.set(marks(150, 350))
	x := f.watchStock(has(400)) // the first stock below the high mark was 300
	if x.GetEpoch() != epoch || !proto.Equal(x.GetPolicy(), marks(150, 350)) || x.GetHeldBack() != "" || x.GetMadePerSecond() <= 0 || x.GetTimeToFull().AsDuration() != 0 {
		t.Errorf("stock %v", x)
	}
	if n := len(f.ofStock()); n != 4 {
		t.Errorf("%d jobs", n)
	}
	keeper := f.stock("keeper")
	take := func(n uint64) {
		t.Helper()
		if _, err := keeper.Reserve(t.Context(), &stockv1.ReserveRequest{Class: scalars(), Count: n}); err != nil {
			t.Fatal(err)
		}
	}
	take(250) // leaves 150: at the low mark
	if x := f.watchStock(has(150)); x.GetReserved() != 250 || x.GetReservedPerSecond() <= 0 || x.GetTimeToFull() != nil && x.GetReservedPerSecond() > x.GetMadePerSecond() {
		t.Errorf("stock %v", x)
	}
	time.Sleep(200 * time.Millisecond)
	if n := len(f.ofStock()); n != 4 {
		t.Errorf("%d jobs, although the stock is sufficient", n)
	}
	take(1)
	f.watchStock(has(449))
	for _, j := range f.ofStock() { // a job's tuples are visible before the job is complete
		if j = f.until(j.GetId(), over); j.GetState() != completed {
			t.Errorf("%s: %s", j.GetId(), j.GetState())
		}
	}
}

// A client's job counts as stock, and a coordinator that restarts does not duplicate its own jobs.
func TestPolicyAcrossRestarts(t *testing.T) {
	f := newNet(t, 2)
	epoch := f.complete(keysJob()).GetEpoch()
	block := make(chan struct{})
	for _, p := range f.parties {
		p.change(func(p *fakeParty) {
			p.onRun = func(s *fakeSession) {
				<-block
				s.succeed()
			}
		})
	}
	f.submit(scalarJob(epoch)) // makes 100
	f.set(marks(150, 300))
	f.watchStock(func(x *stockv1.Stock) bool { return x.GetInProduction() == 300 })
	before := f.ofStock()
	if len(before) != 2 {
		t.Fatalf("%d jobs in addition to the client's", len(before))
	}
	f.stop()
	close(block)
	f.begin()
	f.watchStock(func(x *stockv1.Stock) bool { return x.GetAvailable() >= 300 && x.GetInProduction() == 0 })
	time.Sleep(200 * time.Millisecond)
	good := 0
	seen := map[string]bool{}
	for _, j := range f.ofStock() {
		if j.GetState() == completed {
			good++
		}
		e, err := f.running.find(j.GetId())
		if err != nil || seen[e.key] {
			t.Errorf("job %s has the key of another", j.GetId())
		}
		seen[e.key] = true
	}
	if x := f.watchStock(func(*stockv1.Stock) bool { return true }); x.GetAvailable() > 400 || uint64(good)*100 > x.GetAvailable() {
		t.Errorf("%d jobs completed, stock %v", good, x)
	}
}

// Failed jobs are retried with increasing backoff, and the stock reports why it is too low.
func TestPolicyBacksOff(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.parties[1].change(func(p *fakeParty) {
		p.onStart = func(*jobv1.SessionSpec) error { return rpc.Errorf(rpc.PolicyRefused, "", "not today") }
	})
	f.set(marks(50, 100))
	x := f.watchStock(heldBack("its last job failed: party 1 (p1) refuses: not today; the next begins in "))
	if x.GetAvailable() != 0 || x.GetInProduction() != 0 {
		t.Errorf("stock %v", x)
	}
	time.Sleep(300 * time.Millisecond)
	if n := len(f.ofStock()); n != 1 {
		t.Errorf("%d jobs at once", n)
	}
	f.parties[1].change(func(p *fakeParty) { p.onStart = nil })
	f.set(marks(60, 100)) // setting the policy again retries immediately
	f.watchStock(has(100))
}

func TestPolicyHeldBack(t *testing.T) {
	f := newNet(t, 2)
	p := marks(50, 100)
	p.Paused = true
	f.set(p)
	f.watchStock(heldBack("paused"))
	p.Paused = false
	f.set(p)
	f.watchStock(heldBack("no epoch is active for triples of S14-32"))
	f.complete(keysJob())
	f.watchStock(has(100))
	p.Low, p.High = 500, 1000
	f.parties[0].change(func(p *fakeParty) {
		p.onEstimate = func(*jobv1.SessionSpec) (*triplesv1.EstimateResponse, error) {
			return nil, rpc.Errorf(rpc.PolicyRefused, "", "too large for me")
		}
	})
	p.Batch = 150 // which has no record yet
	f.set(p)
	f.watchStock(heldBack("no party takes such a job: party p0 refuses: too large for me"))
	f.kill(1)
	p.Priority++
	f.set(p) // which requests estimates from the parties
	f.watchStock(heldBack("not all parties can be asked: party 1 (p1)"))
	if n := len(f.ofStock()); n != 1 {
		t.Errorf("%d jobs", n)
	}
	if r, err := f.stock("keeper").DeletePolicy(t.Context(), &stockv1.DeletePolicyRequest{Class: scalars()}); err != nil || r == nil {
		t.Fatal(err)
	}
	f.watchStock(func(x *stockv1.Stock) bool { return x.GetPolicy() == nil && x.GetHeldBack() == "" })
}

func TestPolicyRefusals(t *testing.T) {
	f := newNet(t, 2)
	keeper := f.stock("keeper")
	for _, c := range []struct {
		name   string
		change func(*stockv1.Policy)
		code   rpc.Code
	}{
		{"another tenant", func(p *stockv1.Policy) { p.Class.Tenant = "others" }, rpc.Forbidden},
		{"no class", func(p *stockv1.Policy) { p.Class = nil }, rpc.Forbidden},
		{"keys", func(p *stockv1.Policy) { p.Class.Kind = jobv1.Kind_KIND_KEYS }, rpc.Invalid},
		{"proofs", func(p *stockv1.Policy) { p.Class.Kind = jobv1.Kind_KIND_PROOF }, rpc.Invalid},
		{"parameters that are not pinned", func(p *stockv1.Policy) { p.Class.Params = "S15-64" }, rpc.PolicyRefused},
		{"no field", func(p *stockv1.Policy) { p.Class.Field = "" }, rpc.Invalid},
		{"a shape of scalars", func(p *stockv1.Policy) { p.Class.Shape = &jobv1.Shape{Rows: 1, Inner: 1, Columns: 1} }, rpc.Invalid},
		{"matrices without a shape", func(p *stockv1.Policy) { p.Class.Kind = jobv1.Kind_KIND_MATRIX }, rpc.Invalid},
		{"masks without a party", func(p *stockv1.Policy) { p.Class.Kind, p.Class.InputParty = jobv1.Kind_KIND_INPUT, 2 }, rpc.Invalid},
		{"no marks", func(p *stockv1.Policy) { p.Low, p.High = 0, 0 }, rpc.Invalid},
		{"no low mark", func(p *stockv1.Policy) { p.Low = 0 }, rpc.Invalid},
		{"low above high", func(p *stockv1.Policy) { p.Low = 101 }, rpc.Invalid},
		{"a mark above the maximum", func(p *stockv1.Policy) { p.High = 1 << 60 }, rpc.Invalid},
		{"no batch", func(p *stockv1.Policy) { p.Batch = 0 }, rpc.Invalid},
		{"priority", func(p *stockv1.Policy) { p.Priority = 101 }, rpc.Invalid},
		{"a dim of scalars", func(p *stockv1.Policy) { p.Dim = 4 }, rpc.Invalid},
		{"a dim that is not a power of two", func(p *stockv1.Policy) {
			p.Class.Kind, p.Class.Shape, p.Dim = jobv1.Kind_KIND_MATRIX, &jobv1.Shape{Rows: 3, Inner: 3, Columns: 3}, 3
		}, rpc.Invalid},
	} {
		p := marks(50, 100)
		c.change(p)
		if _, err := keeper.SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: p}); !is(err, c.code) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := keeper.SetPolicy(t.Context(), &stockv1.SetPolicyRequest{}); !is(err, rpc.Forbidden) {
		t.Errorf("no policy in the request: %v", err)
	}
	if _, err := keeper.DeletePolicy(t.Context(), &stockv1.DeletePolicyRequest{Class: &tuplesv1.Class{Tenant: "others", Kind: jobv1.Kind_KIND_SCALAR}}); !is(err, rpc.Forbidden) {
		t.Errorf("deleting another tenant's: %v", err)
	}
	if _, err := keeper.DeletePolicy(t.Context(), &stockv1.DeletePolicyRequest{Class: &tuplesv1.Class{Tenant: "dev"}}); !is(err, rpc.Invalid) {
		t.Errorf("deleting without a kind: %v", err)
	}
	for range 2 { // idempotent, also without a policy
		if _, err := keeper.DeletePolicy(t.Context(), &stockv1.DeletePolicyRequest{Class: scalars()}); err != nil {
			t.Error(err)
		}
	}
	viewer := f.stock("viewer")
	if _, err := viewer.SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: marks(50, 100)}); !is(err, rpc.Forbidden) {
		t.Errorf("without the permission: %v", err)
	}
	if _, err := viewer.DeletePolicy(t.Context(), &stockv1.DeletePolicyRequest{Class: scalars()}); !is(err, rpc.Forbidden) {
		t.Errorf("without the permission: %v", err)
	}
	nobody := f.stock("nobody")
	if _, err := nobody.SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: marks(50, 100)}); !is(err, rpc.Forbidden) {
		t.Errorf("an unknown client: %v", err)
	}
	if _, err := nobody.ListPolicies(t.Context(), &stockv1.ListPoliciesRequest{}); !is(err, rpc.Forbidden) {
		t.Errorf("an unknown client: %v", err)
	}
	if _, err := nobody.GetStock(t.Context(), &stockv1.GetStockRequest{}); !is(err, rpc.Forbidden) {
		t.Errorf("an unknown client: %v", err)
	}
	late, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	if _, err := keeper.SetPolicy(late, &stockv1.SetPolicyRequest{Policy: marks(50, 100)}); !is(err, rpc.TimedOut) {
		t.Errorf("too late: %v", err)
	}
}

// A client sees only its tenants' policies and stock. Policies survive restarts of the
// coordinator.
func TestPoliciesOfTenants(t *testing.T) {
	f := newNet(t, 2)
	f.complete(keysJob())
	f.set(marks(50, 100))
	theirs := marks(10, 20)
	theirs.Class.Tenant = "others"
	if _, err := f.stock("stranger").SetPolicy(t.Context(), &stockv1.SetPolicyRequest{Policy: theirs}); err != nil {
		t.Fatal(err)
	}
	f.watchStock(has(100))
	f.stop()
	f.begin()
	f.watchStock(has(100))
	for client, want := range map[string]*stockv1.Policy{"keeper": marks(50, 100), "viewer": marks(50, 100), "stranger": theirs} {
		list, err := f.stock(client).ListPolicies(t.Context(), &stockv1.ListPoliciesRequest{})
		if err != nil || len(list.GetPolicies()) != 1 || !proto.Equal(list.GetPolicies()[0], want) {
			t.Errorf("%s: policies %v, %v", client, list, err)
		}
		r, err := f.stock(client).GetStock(t.Context(), &stockv1.GetStockRequest{})
		if err != nil || len(r.GetStock()) != 1 || r.GetStock()[0].GetAvailable() != 100 || !proto.Equal(r.GetStock()[0].GetClass(), want.GetClass()) {
			t.Errorf("%s: stock %v, %v", client, r, err)
		}
		stream, err := f.stock(client).WatchStock(t.Context(), &stockv1.WatchStockRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if w, err := stream.Recv(); err != nil || len(w.GetStock()) != 1 || w.GetStock()[0].GetClass().GetTenant() != want.GetClass().GetTenant() {
			t.Errorf("%s: stock %v, %v", client, w, err)
		}
	}
	if r, err := f.stock("keeper").GetStock(t.Context(), &stockv1.GetStockRequest{Epoch: 77}); err != nil || len(r.GetStock()) != 0 {
		t.Errorf("another epoch's stock: %v, %v", r, err)
	}
}
