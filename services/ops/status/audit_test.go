package status

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Entries come newest first, in pages, to those who may see them. A page shows no entry that is not
// part of the chain.
func TestAuditEntries(t *testing.T) {
	dir := t.TempDir()
	log, err := audit.Open(dir, audit.Options{Party: "alice"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { log.Close() })
	for i := range 1200 {
		e := audit.Entry{Event: audit.Delivered, Actor: "anna", Tenant: "a", Objects: []string{fmt.Sprintf("batch/b-%d", i)}}
		switch i % 3 {
		case 1:
			e.Tenant, e.Actor = "b", "ben"
		case 2:
			e = audit.Entry{Event: audit.EpochRetired, Objects: []string{fmt.Sprintf("epoch/%d", i)}, Note: "By the Operator"}
		}
		if _, err := log.Append(e); err != nil {
			t.Fatal(err)
		}
	}
	s := &Service{Name: "alice", Audit: log}
	self := rpc.Principal{Role: rpc.Self, Name: "alice"}
	anna := rpc.Principal{Role: rpc.Client, Name: "anna", Tenants: []string{"a"}}
	ask := func(p rpc.Principal, q *statusv1.ListAuditEntriesRequest) (*statusv1.ListAuditEntriesResponse, *rpc.Error) {
		r, err := s.ListAuditEntries(rpc.WithCaller(context.Background(), p), q)
		return r, rpc.FromError(err)
	}
	all := func(p rpc.Principal, q *statusv1.ListAuditEntriesRequest) (list []*statusv1.AuditEntry) {
		t.Helper()
		for {
			r, refused := ask(p, q)
			if refused != nil {
				t.Fatal(refused)
			}
			list = append(list, r.GetEntries()...)
			if q.Before = r.GetNext(); q.Before == 0 {
				return list
			}
		}
	}
	list := all(self, &statusv1.ListAuditEntriesRequest{})
	if len(list) != 1200 || list[0].GetSequence() != 1200 || list[1199].GetSequence() != 1 || string(list[0].GetPrevious()) != string(list[1].GetHash()) {
		t.Fatalf("%d entries", len(list))
	}
	if list := all(anna, &statusv1.ListAuditEntriesRequest{Limit: 7}); len(list) != 800 {
		t.Errorf("anna sees %d entries", len(list))
	} else {
		for _, e := range list {
			if e.GetTenant() == "b" {
				t.Fatalf("anna sees %v", e)
			}
		}
	}
	for _, c := range []struct {
		contains string
		events   []string
		want     int
	}{{"BEN", nil, 400}, {"b-1197", nil, 1}, {"operator", nil, 400}, {"none", nil, 0}, {"", []string{"epoch_retired"}, 400}, {"anna", []string{"epoch_retired"}, 0}} {
		if list := all(self, &statusv1.ListAuditEntriesRequest{Contains: c.contains, Events: c.events, Limit: 500}); len(list) != c.want {
			t.Errorf("%q %q: %d entries", c.contains, c.events, len(list))
		}
	}
	for _, c := range []struct {
		q    *statusv1.ListAuditEntriesRequest
		code rpc.Code
	}{{&statusv1.ListAuditEntriesRequest{Limit: 501}, rpc.Invalid}, {&statusv1.ListAuditEntriesRequest{Contains: strings.Repeat("x", 129)}, rpc.TooLarge}} {
		if _, refused := ask(self, c.q); refused == nil || refused.Code != c.code {
			t.Errorf("%v: %v", c.q, refused)
		}
	}
	if _, refused := (&Service{Name: "coordinator"}).ListAuditEntries(context.Background(), nil); refused == nil || rpc.FromError(refused).Code != rpc.NotFound {
		t.Error(refused)
	}

	// Somebody swaps two entries whose own hashes are right.
	file := filepath.Join(dir, "audit-000001.jsonl")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	lines[600], lines[603] = strings.Replace(lines[603], `"seq":604`, `"seq":601`, 1), lines[600]
	if err := os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, refused := ask(self, &statusv1.ListAuditEntriesRequest{Before: 700}); refused == nil || refused.Code != rpc.CheckFailed {
		t.Errorf("a changed log: %v", refused)
	}
	good, err := log.Entries(1, 3)
	if err != nil {
		t.Fatal(err)
	}
	if linked(good, nil, 1) != nil || linked(good[:1], &good[1], 1) != nil {
		t.Error("a chain is refused")
	}
	for what, bad := range map[string]error{
		"a gap": linked([]audit.Entry{good[0], good[2]}, nil, 1), "another start": linked(good, nil, 2), "no entry": linked(nil, nil, 1),
		"another successor": linked(good[:1], &good[2], 1),
	} {
		if bad == nil {
			t.Errorf("%s is accepted", what)
		}
	}
	forged := good[1]
	forged.Prev = audit.Hash{1}
	if linked([]audit.Entry{good[0], forged}, nil, 1) == nil {
		t.Error("an entry of another chain is accepted")
	}
}
