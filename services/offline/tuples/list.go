package tuples

import (
	"context"
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store"
	vaultkeys "github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

const (
	// A page ends when its records reach this many bytes. The last record may add about 1 MiB,
	// which keeps the page well below rpc.MaxMessage.
	pageBytes = 1 << 20
	// A page ends, and may be empty, after this many records were read: each is decrypted, in one
	// read transaction.
	pageLooks = 10_000
)

// page tracks the remaining space of a response that lists records in order.
type page struct {
	records, bytes, looks int
	last                  string // id of the record that was looked at last
	next                  string // what to go on after, when the page has ended before the records
}

// newPage is a page of as many records as the caller asks for.
func newPage(limit uint32) (*page, error) {
	const usual, most = 100, 1000
	switch {
	case limit == 0:
		limit = usual
	case limit > most:
		return nil, rpc.Errorf(rpc.Invalid, "ask for at most 1000 and go on after the last", "limit %d", limit)
	}
	return &page{records: int(limit), bytes: pageBytes, looks: pageLooks}, nil
}

// look reports whether the page goes on with a record, of those asked for or not.
func (p *page) look(id string, asked bool) bool {
	if p.looks == 0 || asked && (p.records == 0 || p.bytes <= 0) {
		p.next = p.last
		return false
	}
	p.looks--
	p.last = id
	return true
}

// add counts a record that is on the page.
func (p *page) add(record proto.Message) {
	p.records--
	p.bytes -= proto.Size(record)
}

// GetReservation implements the service.
func (s *Service) GetReservation(ctx context.Context, r *tuplesv1.GetReservationRequest) (*tuplesv1.GetReservationResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	x, err := s.find(p, r.GetId())
	if err != nil {
		return nil, err
	}
	return &tuplesv1.GetReservationResponse{Reservation: s.wire(&x)}, nil
}

// ListReservations implements the service. A client sees those of its tenants.
func (s *Service) ListReservations(ctx context.Context, r *tuplesv1.ListReservationsRequest) (*tuplesv1.ListReservationsResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	rest, err := newPage(r.GetLimit())
	if err != nil {
		return nil, err
	}
	if r.GetAfter() != "" && !config.ValidID(r.GetAfter()) {
		return nil, rpc.Errorf(rpc.Invalid, "pass what the last page gave as next", "after is not the id of a reservation")
	}
	return s.reservations(ctx, p, r, rest)
}

func (s *Service) reservations(ctx context.Context, p rpc.Principal, r *tuplesv1.ListReservationsRequest, rest *page) (
	*tuplesv1.ListReservationsResponse, error) {
	out := &tuplesv1.ListReservationsResponse{}
	err := s.Vault.Reservations(r.GetAfter(), func(x *stock.Reservation) bool {
		asked := sees(p, x.Class.Tenant) && selected(r.GetStates(), reservationStates[x.State])
		if ctx.Err() != nil || !rest.look(x.ID, asked) {
			return false
		}
		if asked {
			out.Reservations = append(out.Reservations, s.wire(x))
			rest.add(out.Reservations[len(out.Reservations)-1])
		}
		return true
	})
	out.Next = rest.next
	return out, errors.Join(err, ctx.Err())
}

// ListBatches implements the service. A client sees the batches of its tenants, and masks, which
// are nobody's.
func (s *Service) ListBatches(ctx context.Context, r *tuplesv1.ListBatchesRequest) (*tuplesv1.ListBatchesResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	rest, err := newPage(r.GetLimit())
	if err != nil {
		return nil, err
	}
	if len(r.GetAfter()) > store.MaxName || strings.ContainsRune(r.GetAfter(), 0) {
		return nil, rpc.Errorf(rpc.Invalid, "pass what the last page gave as next", "after is not the id of a batch")
	}
	return s.batches(ctx, p, r, rest)
}

func (s *Service) batches(ctx context.Context, p rpc.Principal, r *tuplesv1.ListBatchesRequest, rest *page) (
	*tuplesv1.ListBatchesResponse, error) {
	epochs, err := s.epochs()
	if err != nil {
		return nil, err
	}
	out := &tuplesv1.ListBatchesResponse{}
	err = s.Vault.BatchesAfter(r.GetAfter(), func(b *stock.Batch) bool {
		asked := (sees(p, b.Tenant) || b.Kind == stock.KindMasks) && (r.GetEpoch() == 0 || b.Epoch == r.GetEpoch()) && selected(r.GetStates(), batchStates[b.State])
		if ctx.Err() != nil || !rest.look(b.ID, asked) {
			return false
		}
		if asked {
			e := epochs[b.Epoch]
			out.Batches = append(out.Batches, s.listed(b, &e))
			rest.add(out.Batches[len(out.Batches)-1])
		}
		return true
	})
	out.Next = rest.next
	return out, errors.Join(err, ctx.Err())
}

// listed returns a batch for the response. A batch of masks is marked as stranded once a member of
// its quorum has left the roster, because no quorum can use it.
func (s *Service) listed(b *stock.Batch, e *vaultkeys.Epoch) *tuplesv1.Batch {
	stranded := s.Vault.Standing(e) == vaultkeys.OtherParties
	if b.Kind != stock.KindMasks {
		return wireBatch(b, e.KeygenSecurity, stranded)
	}
	var quorum []uint32
	places := s.Vault.Places(e)
	for _, number := range b.Quorum {
		if int64(number) < int64(len(places)) && places[number] >= 0 {
			quorum = append(quorum, uint32(places[number]))
		}
	}
	slices.Sort(quorum)
	out := wireBatch(b, e.KeygenSecurity, stranded || len(quorum) < len(b.Quorum))
	out.Class.Quorum, out.Class.Form = quorum, job.MaskForms[b.Form]
	return out
}

// epochs of this party by number.
func (s *Service) epochs() (map[uint64]vaultkeys.Epoch, error) {
	list, err := s.Vault.Epochs()
	out := make(map[uint64]vaultkeys.Epoch, len(list))
	for _, e := range list {
		out[e.ID] = e
	}
	return out, err
}

// ListMacKeys implements the service. A client sees the keys of its tenants.
func (s *Service) ListMacKeys(ctx context.Context, _ *tuplesv1.ListMacKeysRequest) (*tuplesv1.ListMacKeysResponse, error) {
	p, err := caller(ctx)
	if err != nil {
		return nil, err
	}
	keys, err := s.Vault.MACKeys()
	if err != nil {
		return nil, err
	}
	out := &tuplesv1.ListMacKeysResponse{}
	for _, k := range keys {
		if sees(p, k.Tenant) {
			out.Keys = append(out.Keys, wireMACKey(&k))
		}
	}
	return out, nil
}
