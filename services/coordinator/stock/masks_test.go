package stock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store"
)

const exact = jobv1.MaskForm_MASK_FORM_EXACT

func masksOf(quorum ...uint32) *tuplesv1.Class {
	return &tuplesv1.Class{Kind: jobv1.Kind_KIND_MASKS, Params: "L", Quorum: quorum, Form: exact}
}

// maskBatch returns a batch of 100 masks, free from index first on.
func maskBatch(id string, first uint64, quorum ...uint32) *tuplesv1.Batch {
	return &tuplesv1.Batch{
		Id: id, State: tuplesv1.BatchState_BATCH_STATE_AVAILABLE, Epoch: 1, Count: 100, TupleBytes: 10, Class: masksOf(quorum...),
		Free: []*tuplesv1.Span{{First: first, Count: 100 - first}}, Erased: first,
	}
}

// Masks are in stock if all parties of their quorum have them, whatever other parties report. A
// mask that one party of the quorum has used is consumed.
func TestStockOfMasks(t *testing.T) {
	type reports = [][]*tuplesv1.Batch
	report := func(list ...*tuplesv1.Batch) []*tuplesv1.Batch { return list }
	for name, c := range map[string]struct {
		reports             reports
		available, consumed uint64
	}{
		"the quorum":              {reports{nil, report(maskBatch("a", 10, 1, 2)), report(maskBatch("a", 10, 1, 2))}, 90, 10},
		"one party has used more": {reports{nil, report(maskBatch("a", 10, 1, 2)), report(maskBatch("a", 30, 1, 2))}, 70, 30},
		"one party lacks it":      {reports{nil, report(maskBatch("a", 10, 1, 2)), nil}, 0, 10},
		"a party outside the quorum has it": {
			reports{report(maskBatch("a", 0, 1, 2)), report(maskBatch("a", 10, 1, 2)), report(maskBatch("a", 10, 1, 2))}, 0, 10},
		"of other quorums": {reports{nil, report(maskBatch("a", 10, 1, 2)), report(maskBatch("a", 10, 0, 2))}, 0, 10},
	} {
		s := testService(t, c.reports...)
		list, _ := s.stock(rpc.Principal{}, 0)
		if len(list) != 1 {
			t.Errorf("%s: %v", name, list)
			continue
		}
		x := list[0]
		if x.GetAvailable() != c.available || x.GetReserved() != 0 || x.GetConsumed() != c.consumed || x.GetLost() != 0 {
			t.Errorf("%s: %v", name, x)
		}
	}

	two := report(maskBatch("a", 10, 0, 1), maskBatch("b", 20, 0, 1), maskBatch("c", 0, 1, 2))
	paper := maskBatch("d", 0, 0, 2)
	paper.Class.Form = jobv1.MaskForm_MASK_FORM_PAPER
	s := testService(t, report(two[0], two[1], paper), two, report(two[2], paper))
	list, _ := s.stock(rpc.Principal{Tenants: []string{"dev"}}, 0)
	levels := map[string]uint64{}
	for _, x := range list {
		levels[strings.Trim(strings.Join(strings.Fields(x.GetClass().String()), " "), " ")] += x.GetAvailable()
	}
	if len(list) != 3 || s.view.counts().used != 10*(90+80+100+100) {
		t.Errorf("%v", levels)
	}

	s.metrics = metrics.New("test", metrics.Coordinator)
	s.measure()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(s.metrics.Registry(), promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	for _, want := range []string{
		`lodge_stock_masks{epoch="1",form="exact",quorum="0,1"} 170`, `lodge_stock_masks{epoch="1",form="paper",quorum="0,2"} 100`,
		`lodge_stock_tuples{field="exact",kind="masks",params="L",state="available",tenant=""} 270`,
	} {
		if !strings.Contains(w.Body.String(), want+"\n") {
			t.Errorf("no %s in\n%s", want, w.Body)
		}
	}
}

// While a party is unavailable, masks of quorums without the party stay up to date, and masks of
// its quorums keep their last counts.
func TestMasksWithAPartyAway(t *testing.T) {
	type reports = [][]*tuplesv1.Batch
	of := func(first uint64) reports {
		tuples := func() *tuplesv1.Batch {
			return batch("c", "dev", 0, func(b *tuplesv1.Batch) { b.Free = []*tuplesv1.Span{{First: first, Count: 100 - first}} })
		}
		return reports{
			{maskBatch("a", first, 0, 1), maskBatch("b", first, 0, 2), tuples()}, {maskBatch("a", first, 0, 1), tuples()},
			{maskBatch("b", first, 0, 2), tuples()},
		}
	}
	s := testService(t, of(0)...)
	free := func(of string) uint64 {
		x := s.view.shelves[of]
		if x == nil {
			return 0
		}
		return x.free.Count()
	}
	later := of(30)
	later[0] = append(later[0], maskBatch("new", 0, 0, 1), maskBatch("other", 0, 0, 2))
	later[1] = append(later[1], maskBatch("new", 0, 0, 1))
	later[2] = nil
	away := []*stockv1.AwayParty{{Party: 2}}
	s.view.lose(away, later)
	for name, want := range map[string]uint64{"a": 70, "b": 100, "c": 100, "new": 100, "other": 0} {
		if free(name) != want {
			t.Errorf("%d free of %s, want %d", free(name), name, want)
		}
	}
	later[0], later[1] = nil, nil // these parties have no masks any more
	s.view.lose(away, later)
	if s.view.shelves["a"] != nil || s.view.shelves["b"] == nil || s.view.shelves["c"] == nil || len(s.view.away) != 1 {
		t.Errorf("%v", s.view.shelves)
	}
}

// An unreachable party makes only the masks of its quorums and all tuples unknown.
func TestAwayFor(t *testing.T) {
	gone := awayError{nil, errors.New("p1 is gone"), nil}
	scalars := &tuplesv1.Class{Kind: jobv1.Kind_KIND_SCALAR}
	for _, c := range []struct {
		err   error
		class *tuplesv1.Class
		holds bool
	}{
		{nil, scalars, false}, {nil, masksOf(0, 1), false}, {gone, scalars, true}, {gone, masksOf(0, 1), true}, {gone, masksOf(1, 2), true},
		{gone, masksOf(0, 2), false}, {gone, masksOf(0, 7), false}, {context.Canceled, masksOf(0, 2), true}, {fmt.Errorf("asking: %w", gone), masksOf(0, 2), false},
	} {
		if err := awayFor(c.err, c.class); (err != nil) != c.holds || c.holds && err.Error() != c.err.Error() {
			t.Errorf("%v makes %v unknown: %v", c.err, c.class, err)
		}
	}
	if err := make(awayError, 3).or(); err != nil {
		t.Error(err)
	}
	if e := rpc.FromError(awayError{nil, rpc.Errorf(rpc.Unavailable, "", "gone"), nil}); e.Code != rpc.Unavailable {
		t.Errorf("%+v", e)
	}
}

// takes is a queue that accepts every job.
type takes struct{ idle }

func (takes) Check(*coordinatorv1.JobRequest) error { return nil }

// Masks belong to no tenant: they cannot be reserved, and their policies have no tenant.
func TestMasksAreNotReserved(t *testing.T) {
	s := testService(t)
	s.queue = takes{}
	caller := rpc.Principal{Name: "app", Role: rpc.Client, Tenants: []string{"dev"}}
	scalars := &tuplesv1.Class{Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128"}
	for word, c := range map[string]*tuplesv1.Class{
		"cannot be reserved": masksOf(0, 1),
		"only masks have": {
			Tenant: "dev", Kind: jobv1.Kind_KIND_SCALAR, Params: "S", Field: "p128", Quorum: []uint32{0, 1}},
	} {
		err := s.check(caller, &stockv1.ReserveRequest{Class: c, Count: 1})
		if e := rpc.FromError(err); err == nil || e.Code != rpc.Invalid || !strings.Contains(e.What, word) {
			t.Errorf("%v, want that %s", err, word)
		}
	}
	if err := s.check(caller, &stockv1.ReserveRequest{Class: scalars, Count: 1}); err != nil {
		t.Error(err)
	}
	if err := checkClass(rpc.Principal{}, masksOf(0, 1)); err != nil {
		t.Error(err)
	}
	if err := checkClass(rpc.Principal{}, scalars); rpc.FromError(err).Code != rpc.Forbidden {
		t.Errorf("tuples of another tenant: %v", err)
	}
	p := &stockv1.Policy{Class: masksOf(0, 2), Low: 1, High: 2, Batch: 3}
	q := request(p, 7)
	if q.GetPurpose() != jobv1.Purpose_PURPOSE_THRESHOLD || q.GetDim() != 0 || q.GetEpoch() != 7 || q.GetCount() != 3 || len(q.GetGroup()) != 2 || q.GetForm() != exact {
		t.Errorf("%v", q)
	}
	if p.Dim = 2; s.checkPolicy(p) == nil {
		t.Error("masks in blocks")
	}
}

// A policy for masks applies to the newest threshold epoch of its set that all parties of its
// quorum hold. A policy for tuples applies to an epoch that all parties have.
func TestEpochsOfPolicies(t *testing.T) {
	in, err := store.OpenDir(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := OpenIn(in, make([]Party, 3), slog.New(slog.DiscardHandler))
	defer s.Close()
	epoch := func(id uint64, params string, purpose jobv1.Purpose, state keygenv1.EpochState) *keygenv1.Epoch {
		return &keygenv1.Epoch{Epoch: id, Params: params, Purpose: purpose, State: state, Standing: keygenv1.RosterStanding_ROSTER_STANDING_SAME}
	}
	const active, draining = keygenv1.EpochState_EPOCH_STATE_ACTIVE, keygenv1.EpochState_EPOCH_STATE_DRAINING
	const threshold, triples = jobv1.Purpose_PURPOSE_THRESHOLD, jobv1.Purpose_PURPOSE_TRIPLES
	all, some := epoch(1, "S", triples, active), epoch(2, "S", triples, active)
	old, next, last := epoch(3, "L", threshold, active), epoch(4, "L", threshold, active), epoch(5, "L", threshold, active)
	other, stale := epoch(6, "other", threshold, active), epoch(7, "L", threshold, draining)
	s.epochs = activeEpochs([][]*keygenv1.Epoch{
		{all, some, old, next, other, stale}, {all, old, next, last, other, stale}, {all, some, old, last, other, stale},
	})
	for _, c := range []struct {
		class   *tuplesv1.Class
		named   uint64
		want    uint64
		problem string
	}{
		{&tuplesv1.Class{Kind: jobv1.Kind_KIND_SCALAR, Params: "S"}, 0, 1, ""},
		{&tuplesv1.Class{Kind: jobv1.Kind_KIND_SCALAR, Params: "S"}, 2, 2, "no epoch 2 is active for triples of S at all parties"},
		{&tuplesv1.Class{Kind: jobv1.Kind_KIND_SCALAR, Params: "L"}, 0, 0, "no epoch is active for triples of L at all parties"},
		{masksOf(0, 1), 0, 4, ""},
		{masksOf(1, 2), 0, 5, ""},
		{masksOf(0, 2), 0, 3, ""},
		{masksOf(0, 1, 2), 0, 3, ""},
		{masksOf(0, 1), 3, 3, ""},
		{masksOf(0, 1), 5, 5, "no epoch 5 is active for threshold decryption with L at all parties of the quorum"},
		{masksOf(0, 3), 0, 0, "no epoch is active for threshold decryption with L"},
		{&tuplesv1.Class{Kind: jobv1.Kind_KIND_MASKS, Params: "S", Quorum: []uint32{0, 1}}, 0, 0, "no epoch is active"},
	} {
		got, problem := s.epochFor(&policy{msg: &stockv1.Policy{Class: c.class, Epoch: c.named}}, nil)
		if got != c.want || !strings.Contains(problem, c.problem) || (problem == "") != (c.problem == "") {
			t.Errorf("%v, epoch %d: %d, %q, want %d, %q", c.class, c.named, got, problem, c.want, c.problem)
		}
	}
}

// Masks serve all tenants, so a client that acts for only one of two tenants can neither set nor
// delete a policy for masks.
func TestMaskPolicyNeedsEveryTenant(t *testing.T) {
	s := testService(t)
	s.tenants = []string{"dev", "other"}
	ctx := rpc.WithCaller(t.Context(), rpc.Principal{Role: rpc.Client, Name: "c", Tenants: []string{"dev"}})
	_, err := s.SetPolicy(ctx, &stockv1.SetPolicyRequest{Policy: &stockv1.Policy{Class: masksOf(0, 1), Low: 1, High: 2, Batch: 1}})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Forbidden {
		t.Errorf("set: %v", err)
	}
	_, err = s.DeletePolicy(ctx, &stockv1.DeletePolicyRequest{Class: masksOf(0, 1)})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Forbidden {
		t.Errorf("delete: %v", err)
	}
	both := rpc.WithCaller(t.Context(), rpc.Principal{Role: rpc.Client, Name: "c", Tenants: []string{"dev", "other"}})
	if _, err := s.DeletePolicy(both, &stockv1.DeletePolicyRequest{Class: masksOf(0, 1)}); err != nil {
		t.Errorf("a client of both tenants: %v", err)
	}
}
