package tuples

import (
	"maps"
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/proto/wire"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

var batchStates = map[stock.BatchState]tuplesv1.BatchState{
	stock.BatchLocked:    tuplesv1.BatchState_BATCH_STATE_LOCKED,
	stock.BatchAvailable: tuplesv1.BatchState_BATCH_STATE_AVAILABLE,
	stock.BatchConsumed:  tuplesv1.BatchState_BATCH_STATE_CONSUMED,
	stock.BatchRevoked:   tuplesv1.BatchState_BATCH_STATE_REVOKED,
}

var reservationStates = map[stock.ReservationState]tuplesv1.ReservationState{
	stock.Reserved:  tuplesv1.ReservationState_RESERVATION_STATE_RESERVED,
	stock.Consumed:  tuplesv1.ReservationState_RESERVATION_STATE_CONSUMED,
	stock.Withdrawn: tuplesv1.ReservationState_RESERVATION_STATE_WITHDRAWN,
	stock.Released:  tuplesv1.ReservationState_RESERVATION_STATE_RELEASED,
	stock.Erased:    tuplesv1.ReservationState_RESERVATION_STATE_ERASED,
}

var macStates = map[keys.MACState]tuplesv1.MacKeyState{
	keys.MACLocked:  tuplesv1.MacKeyState_MAC_KEY_STATE_LOCKED,
	keys.MACActive:  tuplesv1.MacKeyState_MAC_KEY_STATE_ACTIVE,
	keys.MACRetired: tuplesv1.MacKeyState_MAC_KEY_STATE_RETIRED,
	keys.MACBurnt:   tuplesv1.MacKeyState_MAC_KEY_STATE_BURNT,
}

func wireClass(c stock.Class) *tuplesv1.Class {
	return &tuplesv1.Class{
		Tenant: c.Tenant, Kind: wire.Of(c.Kind), Params: c.Params, Field: c.Field, Shape: wire.ShapeOf(c.Shape()),
		InputParty: c.InputParty, NoSacrifice: c.NoSacrifice,
	}
}

func classOf(c *tuplesv1.Class) stock.Class {
	return stock.Class{
		Tenant: c.GetTenant(), Kind: wire.Name(c.GetKind()), Params: c.GetParams(), Field: c.GetField(),
		InputParty: c.GetInputParty(), NoSacrifice: c.GetNoSacrifice(),
	}.Shaped(wire.Shape(c.GetShape()))
}

// maxFree spans of a batch are listed, in at most 24 bytes each: enough for sixteen reservations of
// as many ranges as there may be. Later free spans are listed once these are taken.
const maxFree = 16 * stock.MaxRanges

// wireBatch returns the message for a batch under an epoch; stranded means that the party must not
// deliver its shares.
func wireBatch(b *stock.Batch, security string, stranded bool) *tuplesv1.Batch {
	out := &tuplesv1.Batch{
		Id: b.ID, State: batchStates[b.State], Epoch: b.Epoch, MacKeyId: b.MACKey, Class: wireClass(b.Class()), Dim: b.Dim, Count: b.Count,
		Digest: b.Digest[:], Created: timestamppb.New(b.Created), TupleBytes: b.TupleBytes, Erased: b.Gone.Count(), Lost: b.Lost, Reason: b.Reason,
		KeygenSecurity: security, Stranded: stranded,
	}
	if stranded {
		return out
	}
	free := b.Free()
	for _, s := range free[:min(len(free), maxFree)] {
		out.Free = append(out.Free, &tuplesv1.Span{First: s.First, Count: s.Count})
	}
	return out
}

func (s *Service) wire(r *stock.Reservation) *tuplesv1.Reservation {
	out := &tuplesv1.Reservation{
		Id: r.ID, Class: wireClass(r.Class), Epoch: r.Epoch, MacKeyId: r.MACKey, Count: r.Count(), Owner: r.Owner, Clients: r.Clients,
		Lease: timestamppb.New(r.Lease), Digest: r.Digest[:], State: reservationStates[r.State], Client: r.Client,
	}
	if !r.Delivered.IsZero() {
		out.Delivered = timestamppb.New(r.Delivered)
	}
	for _, x := range r.Ranges {
		out.Ranges = append(out.Ranges, &tuplesv1.Range{BatchId: x.Batch, First: x.First, Count: x.Count})
	}
	return out
}

// reservationOf reads the coordinator's proposal.
func reservationOf(r *tuplesv1.Reservation) stock.Reservation {
	out := stock.Reservation{
		ID: r.GetId(), Class: classOf(r.GetClass()), Epoch: r.GetEpoch(), MACKey: r.GetMacKeyId(), Owner: r.GetOwner(),
		Clients: slices.Clone(r.GetClients()), Lease: r.GetLease().AsTime(),
	}
	for _, x := range r.GetRanges() {
		out.Ranges = append(out.Ranges, stock.Range{Batch: x.GetBatchId(), Span: stock.Span{First: x.GetFirst(), Count: x.GetCount()}})
	}
	return out
}

func wireMACKey(k *keys.MACKey) *tuplesv1.MacKey {
	return &tuplesv1.MacKey{Id: k.ID, State: macStates[k.State], Epoch: k.Epoch, Field: k.Field, Tenant: k.Tenant,
		Created: timestamppb.New(k.Created), Reason: k.Reason, FailedChecks: uint32(k.Failed)}
}

// selected reports whether a state is one of those asked for; none asks for all.
func selected[S ~int32](asked []S, s S) bool { return len(asked) == 0 || slices.Contains(asked, s) }

// ids of a set, in order.
func ids(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
