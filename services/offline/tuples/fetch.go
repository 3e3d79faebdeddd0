package tuples

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"time"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const (
	chunk       = 512 << 10        // of share data in a response
	confirmTime = 10 * time.Second // for the peers to confirm a reservation
)

// Fetch implements the service.
func (s *Service) Fetch(r *tuplesv1.FetchRequest, stream tuplesv1.TuplesService_FetchServer) error {
	ctx := stream.Context()
	p, err := caller(ctx)
	if err != nil {
		return err
	}
	what := "reservation " + r.GetReservationId()
	x, err := s.find(p, r.GetReservationId())
	if err != nil {
		return err
	}
	//lodge:check tuples/fetch/kind
	//  [run=TestFetch|TestNamedClients|TestLease|TestConfirm|TestNonsense|TestKinds] a client draws
	//  a kind that it may not
	if !p.MayDraw(x.Class.Kind) {
		return rpc.Errorf(rpc.Forbidden, "add the kind to this client in the party's configuration",
			"client %s may not draw %s tuples", p.Name, x.Class.Kind)
	}
	//lodge:check tuples/fetch/from
	//  [run=TestFetch|TestNamedClients|TestLease|TestConfirm|TestNonsense] a client reads beyond
	//  its reservation
	if r.GetFrom() >= x.Count() {
		return rpc.Errorf(rpc.Invalid, "begin before its end", "%s has %d tuples", what, x.Count())
	}
	//lodge:check tuples/erased run=TestFetchErased a client that discarded its tuples is told that their lease has ended
	if x.State == stock.Erased && s.Vault.Now().Before(x.Lease) {
		return vaulterr.RPC(vaulterr.ErrGone, what)
	}
	//lodge:check tuples/fetch/confirmed [run=TestFetch] shares leave before every peer has recorded
	//  the reservation
	if x.State == stock.Reserved {
		wait, cancel := context.WithTimeout(ctx, confirmTime)
		err := s.Peers.confirmed(wait, x.ID, x.Digest)
		cancel()
		if err != nil {
			return err
		}
	}
	// A delivery consumes tuples, and no byte leaves before it is in the audit log.
	release, err := s.Audit.Hold(deliveryEntry(p, &x, true))
	//lodge:check tuples/audit-room tests=./services/party run=TestFullAuditDisk a full audit disk consumes reservations that nobody gets
	if err != nil {
		return err
	}
	defer release()
	//lodge:check tuples/fetch/delivered [as=old := x; x, first, err := s.Vault.DeliverCharged(x.ID,
	//  p.Name, s.Peers.Self, s.Quota); if err != nil { x, err = old, nil }]
	//  [run=TestFetch|TestNamedClients|TestLease|TestConfirm|TestNonsense] shares leave although
	//  the delivery could not be recorded
	x, first, err := s.Vault.DeliverCharged(x.ID, p.Name, s.Peers.Self, s.Quota)
	if err != nil {
		return vaulterr.RPC(err, what)
	}
	if first {
		s.Metrics.Count(metrics.TuplesDelivered, int(x.Count()), x.Class.Kind, x.Class.Field)
	}
	if err := s.settle(ctx, p, &x, first); err != nil {
		return err
	}
	in, size, err := s.Vault.Shares(&x, r.GetFrom())
	if err != nil {
		return vaulterr.RPC(err, what)
	}
	defer in.Close()
	if err := stream.Send(&tuplesv1.FetchResponse{Reservation: s.wire(&x), TupleBytes: size}); err != nil {
		return err
	}
	return s.send(in, stream, x.Lease, (x.Count()-r.GetFrom())*size)
}

// settle has a delivery in the audit log, and the peers remember how far the store is, at the same
// time.
func (s *Service) settle(ctx context.Context, p rpc.Principal, x *stock.Reservation, first bool) error {
	ctx, cancel := context.WithTimeout(ctx, confirmTime)
	defer cancel()
	told := make(chan error, 1)
	go func() { told <- s.Peers.announced(ctx, x.Generation) }()
	//lodge:check tuples/fetch/audited [swap=s.note(p, x, first)=>error(nil)]
	//  [tests=./services/party] [run=TestAuditLog] shares leave before the delivery is in the audit
	//  log
	if err := s.note(p, x, first); err != nil {
		return err
	}
	//lodge:check tuples/fetch/announced [return=nil] [run=TestFetchWaits] shares leave before peers
	//  know the generation of this store
	return <-told
}

// note writes a delivery into the audit log, before the first byte leaves.
func (s *Service) note(p rpc.Principal, x *stock.Reservation, first bool) error {
	_, err := s.Audit.Append(deliveryEntry(p, x, first))
	return err
}

// deliveryEntry returns the audit log's entry for a delivery.
func deliveryEntry(p rpc.Principal, x *stock.Reservation, first bool) audit.Entry {
	e := entry(audit.Replayed, p, x.Class.Tenant, "reservation/"+x.ID)
	if first {
		e.Event = audit.Delivered
	}
	e.Count, e.Digest = x.Count(), x.Digest
	for _, r := range x.Ranges {
		e.Ranges = append(e.Ranges, audit.Range{Object: "batch/" + r.Batch, First: r.First, Count: r.Count})
	}
	return e
}

// find gives a reservation that the caller may know of.
func (s *Service) find(p rpc.Principal, id string) (stock.Reservation, error) {
	x, err := s.Vault.Reservation(id)
	//lodge:check tuples/fetch/tenant
	//  [run=TestFetch|TestNamedClients|TestLease|TestConfirm|TestNonsense] a client sees the
	//  reservations of other tenants
	if err == nil && !sees(p, x.Class.Tenant) {
		err = vaulterr.ErrNotFound
	}
	if errors.Is(err, vaulterr.ErrNotFound) {
		return x, rpc.Errorf(rpc.NotFound, "reserve at the coordinator first, and ask the parties' clients of the same tenant",
			"no reservation %q at this party", id)
	}
	return x, err
}

// send streams n bytes of shares and their checksum, and stops when the lease ends.
func (s *Service) send(in io.Reader, stream tuplesv1.TuplesService_FetchServer, lease time.Time, left uint64) error {
	sum, piece := sha256.New(), make([]byte, min(chunk, left))
	defer clear(piece[:cap(piece)])
	for left > 0 {
		piece = piece[:min(uint64(len(piece)), left)]
		if _, err := io.ReadFull(in, piece); err != nil {
			return vaulterr.RPC(err, "the reservation's data")
		}
		//lodge:check tuples/fetch/lease [run=TestLease] [redundant=the vault stops reading when the
		//  lease ends; this checks again before sending] shares leave after the lease has expired
		if !s.Vault.Now().Before(lease) {
			return rpc.Errorf(rpc.Expired, "reserve again, with a longer lease", "the lease ended while the shares were sent")
		}
		sum.Write(piece)
		left -= uint64(len(piece))
		r := &tuplesv1.FetchResponse{Chunk: piece}
		if left == 0 {
			r.Sha256 = sum.Sum(nil)
		}
		if err := stream.Send(r); err != nil {
			return err
		}
	}
	return nil
}
