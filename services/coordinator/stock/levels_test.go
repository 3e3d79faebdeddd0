package stock

import (
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

func batch(id, tenant string, owner uint32, change func(*tuplesv1.Batch)) *tuplesv1.Batch {
	b := &tuplesv1.Batch{
		Id: id, State: tuplesv1.BatchState_BATCH_STATE_AVAILABLE, Epoch: 1, MacKeyId: "m", Count: 100, TupleBytes: 10,
		Class: &tuplesv1.Class{Tenant: tenant, Kind: jobv1.Kind_KIND_INPUT, Params: "S14-32", Field: "p128", InputParty: owner},
		Free:  []*tuplesv1.Span{{First: 40, Count: 60}}, Erased: 30, Lost: 20,
	}
	if change != nil {
		change(b)
	}
	return b
}

// testService returns a service with a view of two parties and without policies.
func testService(t *testing.T, reports ...[]*tuplesv1.Batch) *Service {
	t.Helper()
	in, err := store.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := OpenIn(in, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.view.set(reports, s.view.ask(), time.Unix(1e9, 0))
	return s
}

func TestStockOfATenant(t *testing.T) {
	two := func(owns bool) []*tuplesv1.Batch {
		return []*tuplesv1.Batch{
			batch("a", "dev", 0, func(b *tuplesv1.Batch) {
				if owns {
					b.TupleBytes = 14 // the plaintext values as well
				}
			}),
			batch("b", "dev", 0, func(b *tuplesv1.Batch) { b.Free, b.Erased, b.Lost = []*tuplesv1.Span{{Count: 100}}, 0, 0 }),
			batch("c", "others", 0, nil), batch("d", "dev", 1, nil),
			batch("e", "dev", 0, func(b *tuplesv1.Batch) {
				if owns { // the batch is still locked at one party
					b.State = tuplesv1.BatchState_BATCH_STATE_LOCKED
				}
				b.Epoch = 2
			}),
		}
	}
	s := testService(t, two(true), two(false))
	list, of := s.stock(rpc.Principal{Tenants: []string{"dev"}}, 0)
	if len(list) != 3 || !of.asOf.Equal(time.Unix(1e9, 0)) {
		t.Fatalf("%v as of %v", list, of)
	}
	x := list[0]
	if x.GetAvailable() != 160 || x.GetReserved() != 10 || x.GetConsumed() != 10 || x.GetLost() != 20 || x.GetClass().GetInputParty() != 0 {
		t.Errorf("%v", x)
	}
	if list[1].GetClass().GetInputParty() != 1 || list[1].GetAvailable() != 60 || list[2].GetEpoch() != 2 || list[2].GetAvailable() != 0 {
		t.Errorf("%v", list)
	}
	for _, c := range []struct {
		tenants []string
		epoch   uint64
		want    int
	}{{[]string{"others"}, 0, 1}, {nil, 0, 0}, {[]string{"dev", "others"}, 0, 4}, {[]string{"dev"}, 1, 2}, {[]string{"dev"}, 3, 0}} {
		if list, _ := s.stock(rpc.Principal{Tenants: c.tenants}, c.epoch); len(list) != c.want {
			t.Errorf("tenants %q, epoch %d: %v", c.tenants, c.epoch, list)
		}
	}
	has := s.view.counts()
	if want := uint64(70*14 + 100*10 + 2*70*10); has.used != want || !has.batches["a"] || has.batches["e"] {
		t.Errorf("%d bytes, want %d; batches %v", has.used, want, has.batches)
	}
}

// The tuples of a batch are classified also after the batch is revoked.
func TestStockOfARevokedBatch(t *testing.T) {
	for _, c := range []struct{ erased, lost, consumed, reserved uint64 }{
		{0, 0, 0, 0},     // it was never in stock
		{30, 70, 30, 0},  // 30 were delivered, the others are free
		{0, 60, 0, 40},   // 40 are reserved
		{30, 50, 30, 20}, // 30 were delivered, 20 are reserved
		{50, 60, 40, 0},  // 10 of the erased tuples were not delivered
		{100, 100, 0, 0}, // none was delivered
		{100, 0, 100, 0}, // all were delivered
		{200, 150, 0, 0}, // a false report of a party
	} {
		report := func() []*tuplesv1.Batch {
			return []*tuplesv1.Batch{batch("a", "dev", 0, func(b *tuplesv1.Batch) {
				b.State, b.Free, b.Erased, b.Lost = tuplesv1.BatchState_BATCH_STATE_REVOKED, nil, c.erased, c.lost
			})}
		}
		found, _ := testService(t, report(), report()).view.levels()
		for _, x := range found {
			if x.GetConsumed() != c.consumed || x.GetReserved() != c.reserved || x.GetLost() != c.lost || x.GetAvailable() != 0 {
				t.Errorf("%+v: %v", c, x)
			}
		}
	}
}

// Metrics aggregate over shapes, epochs and parties, and do not name tenants without a client.
func TestMeasure(t *testing.T) {
	report := func() []*tuplesv1.Batch {
		return []*tuplesv1.Batch{batch("a", "dev", 0, nil), batch("b", "dev", 1, nil), batch("c", "x", 0, nil), batch("d", "y", 0, nil)}
	}
	s := testService(t, report(), report())
	s.metrics, s.tenants = metrics.New("test", metrics.Both), []string{"dev"}
	now := time.Now()
	s.flows = newFlows(now.Add(-time.Minute))
	s.flows.of(place{keyOf(batch("", "dev", 1, nil).GetClass()), 1}).reserved.add(600, now)
	s.measure()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(s.metrics.Registry(), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
	b, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`lodge_stock_tuples{field="p128",kind="input",params="S14-32",state="available",tenant="dev"} 120`,
		`lodge_stock_tuples{field="p128",kind="input",params="S14-32",state="lost",tenant="other"} 40`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="input",params="S14-32",tenant="other"} +Inf`,
		`lodge_stock_time_to_empty_seconds{field="p128",kind="input",params="S14-32",tenant="dev"} 5.`, // 60 tuples at 11 per second
	} {
		if !strings.Contains(string(b), want) {
			t.Errorf("no %s in\n%s", want, b)
		}
	}
	if strings.Contains(string(b), `tenant="x"`) {
		t.Error("a tenant without a client")
	}
}

// The rest of a batch that was made by other parties than the present ones is lost.
func TestStrandedStock(t *testing.T) {
	stranded := []*tuplesv1.Batch{batch("a", "dev", 0, func(b *tuplesv1.Batch) { b.Stranded, b.Free = true, nil })}
	s := testService(t, stranded, stranded)
	list, _ := s.stock(rpc.Principal{Tenants: []string{"dev"}}, 0)
	if len(list) != 1 {
		t.Fatalf("%v", list)
	}
	if x := list[0]; x.GetAvailable() != 0 || x.GetReserved() != 0 || x.GetConsumed() != 10 || x.GetLost() != 90 {
		t.Errorf("%v", x)
	}
}
