package status

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/protobuf/types/known/timestamppb"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits on ListAuditEntries.
const (
	auditPage  = 100 // entries of a page, by default
	auditLimit = 500 // largest page
	auditScan  = 5000
	auditText  = 128 // bytes of the text
)

// ListAuditEntries implements the service. It reads at most auditScan entries.
func (s *Service) ListAuditEntries(ctx context.Context, q *statusv1.ListAuditEntriesRequest) (*statusv1.ListAuditEntriesResponse, error) {
	limit := int(q.GetLimit())
	switch {
	case s.Audit == nil:
		return nil, rpc.Errorf(rpc.NotFound, "ask a party", "%s has no audit log", s.Name)
	case limit == 0:
		limit = auditPage
	//lodge:check status/audit-page [run=TestAuditEntries] a page takes any amount of memory
	case limit > auditLimit:
		return nil, rpc.Errorf(rpc.Invalid, "continue with the next page", "limit %d; at most %d", limit, auditLimit)
	}
	if len(q.GetContains()) > auditText {
		return nil, rpc.Errorf(rpc.TooLarge, "", "a text of %d bytes; at most %d", len(q.GetContains()), auditText)
	}
	caller, _ := rpc.Caller(ctx)
	head := s.Audit.Head()
	end := head.Seq + 1 // entries before it are still to be read
	if q.GetBefore() != 0 {
		end = min(end, q.GetBefore())
	}
	out := &statusv1.ListAuditEntriesResponse{}
	var after *audit.Entry // the entry after those of the next chunk
	for scanned := uint64(0); end > 1 && scanned < auditScan; {
		from := max(1, end-min(end-1, auditLimit))
		list, err := s.Audit.Entries(from, int(end-from))
		if err == nil {
			err = linked(list, after, from)
		}
		if err != nil {
			return nil, rpc.Errorf(rpc.CheckFailed, "run `lodge audit verify` on the party's machine", "the audit log cannot be read: %v", err)
		}
		for _, e := range slices.Backward(list) {
			end = e.Seq
			scanned++
			if !sees(caller, e) || !matches(e, q) {
				continue
			}
			out.Entries = append(out.Entries, auditEntry(e))
			if len(out.Entries) == limit {
				out.Next = next(end)
				return out, nil
			}
		}
		after = &list[0]
	}
	out.Next = next(end)
	return out, nil
}

// next returns the sequence number to continue before; 0 at the start of the log.
func next(end uint64) uint64 {
	if end <= 1 {
		return 0
	}
	return end
}

// linked returns an error unless the entries are the ones from a sequence number on, without a gap,
// and each has the hash of the one before it. after is the entry that follows them, or nil.
func linked(list []audit.Entry, after *audit.Entry, from uint64) error {
	if len(list) == 0 {
		return &audit.BrokenError{File: "the log", Line: int(from), Reason: "lacks entries"}
	}
	if after != nil {
		list = append(slices.Clone(list), *after)
	}
	for i := range list {
		//lodge:check status/audit-chain [run=TestAuditEntries] a changed entry is shown as part of
		//  the chain
		if list[i].Seq != from+uint64(i) || i > 0 && list[i].Prev != list[i-1].Hash {
			return &audit.BrokenError{File: "the log", Line: int(list[i].Seq), Reason: "does not continue the chain"}
		}
	}
	return nil
}

// sees reports whether the caller may see an entry: those of its tenants, and those without one.
func sees(caller rpc.Principal, e audit.Entry) bool {
	//lodge:check status/audit-tenant [swap=caller.Serves(e.Tenant)=>true] [run=TestAuditEntries] a
	//  client reads what other tenants were delivered
	return caller.Role != rpc.Client || e.Tenant == "" || caller.Serves(e.Tenant)
}

// matches reports whether an entry has the event and the text of a request.
func matches(e audit.Entry, q *statusv1.ListAuditEntriesRequest) bool {
	if len(q.GetEvents()) > 0 && !slices.Contains(q.GetEvents(), string(e.Event)) {
		return false
	}
	text := strings.ToLower(q.GetContains())
	return text == "" || slices.ContainsFunc(append([]string{e.Actor, string(e.Event), e.Tenant, e.Note}, e.Objects...), func(s string) bool {
		return strings.Contains(strings.ToLower(s), text)
	})
}

// auditEntry returns the message of an entry.
func auditEntry(e audit.Entry) *statusv1.AuditEntry {
	out := &statusv1.AuditEntry{
		Sequence: e.Seq, Time: timestamppb.New(e.Time), Actor: e.Actor, Auth: string(e.Auth), Event: string(e.Event), Tenant: e.Tenant,
		Objects: e.Objects, Count: e.Count, Note: e.Note, Hash: e.Hash[:], Previous: e.Prev[:],
	}
	for _, r := range e.Ranges {
		out.Ranges = append(out.Ranges, &statusv1.AuditRange{Object: r.Object, First: r.First, Count: r.Count})
	}
	if e.Digest != (audit.Hash{}) {
		out.Digest = e.Digest[:]
	}
	return out
}
