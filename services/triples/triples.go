// Package triples serves authenticated triples at one party: an adapter between lodge.triples.v1 and the
// protocol of the same name, and the delivery of the party's own shares to its own clients.
package triples

import (
	"context"
	"crypto/sha256"
	"io"

	"google.golang.org/protobuf/types/known/timestamppb"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

// Rules say who may call what.
var Rules = session.Rules("/lodge.triples.v1.TriplesService/", rpc.Rules{
	"ListBatches": rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	"Fetch":       rpc.Allow(rpc.Client).With(config.PermFetch),
})

// Service implements lodge.triples.v1.
type Service struct {
	triplesv1.UnsafeTriplesServiceServer
	session.Service
	ring    *keyring.Ring
	vault   *vault.Vault
	claims  *claims
	parties int
	operand operand
}

// New serves the triples of n parties.
func New(sessions *session.Registry, ring *keyring.Ring, v *vault.Vault, n int) *Service {
	s := &Service{ring: ring, vault: v, claims: newClaims(v), parties: n}
	s.Service = session.NewService(sessions, jobv1.Protocol_PROTOCOL_TRIPLES, func(spec *jobv1.SessionSpec) session.Protocol {
		return &run{Service: s, spec: spec}
	})
	return s
}

// ListBatches implements the service. A client sees the batches of its tenants.
func (s *Service) ListBatches(ctx context.Context, r *triplesv1.ListBatchesRequest) (*triplesv1.ListBatchesResponse, error) {
	limit := int(r.GetLimit())
	switch {
	case limit == 0:
		limit = 100
	case limit > 1000:
		return nil, rpc.Errorf(rpc.Invalid, "ask for at most 1000 and go on after the last", "limit %d", limit)
	}
	all, err := s.vault.Batches()
	if err != nil {
		return nil, err
	}
	caller, _ := rpc.Caller(ctx)
	out := &triplesv1.ListBatchesResponse{}
	for _, b := range all {
		if caller.Role == rpc.Client && !caller.Serves(b.Tenant) {
			continue
		}
		if b.ID <= r.GetAfter() || r.GetEpoch() != 0 && b.Epoch != r.GetEpoch() {
			continue
		}
		if len(out.Batches) == limit {
			out.Next = out.Batches[limit-1].Id
			break
		}
		out.Batches = append(out.Batches, wire(b))
	}
	return out, nil
}

// chunk is the size of the pieces in which share data travels.
const chunk = 1 << 20

// Fetch implements the service. The delivery is durable before the first byte leaves.
func (s *Service) Fetch(r *triplesv1.FetchRequest, stream triplesv1.TriplesService_FetchServer) error {
	caller, ok := rpc.Caller(stream.Context())
	if !ok {
		return rpc.Errorf(rpc.Unauthenticated, "", "no caller")
	}
	if r.GetWithMacKey() && !caller.May(config.PermMACKey) {
		return rpc.Errorf(rpc.Forbidden, "add the permission to this client in the party's configuration",
			"client %s lacks the permission %q", caller.Name, config.PermMACKey)
	}
	if b, err := s.vault.Batch(r.GetBatchId()); err != nil || !caller.Serves(b.Tenant) {
		return rpc.Errorf(rpc.NotFound, "ask for batches of the tenants that this party's configuration gives to client "+caller.Name, "no such batch at this party")
	}
	b, data, first, err := s.vault.Deliver(r.GetBatchId(), caller.Name)
	if err != nil {
		return keyring.Refused(err, "such batch")
	}
	defer data.Close()
	if first {
		s.Sessions.Metrics.Delivered(b.Kind, b.Field, b.Count)
	}
	head := &triplesv1.FetchResponse{Batch: wire(b)}
	if r.GetWithMacKey() {
		if head.MacKeyShare, err = s.macKeyShare(b); err != nil {
			return err
		}
		defer clear(head.MacKeyShare)
	}
	if err := stream.Send(head); err != nil {
		return err
	}
	sum := sha256.New()
	for {
		piece := make([]byte, chunk)
		n, err := io.ReadFull(data, piece)
		if n > 0 {
			sum.Write(piece[:n])
			if err := stream.Send(&triplesv1.FetchResponse{Chunk: piece[:n]}); err != nil {
				return err
			}
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return stream.Send(&triplesv1.FetchResponse{Sha256: sum.Sum(nil)})
		}
		if err != nil {
			return err
		}
	}
}

// macKeyShare is the canonical encoding of this party's share of a batch's MAC key.
func (s *Service) macKeyShare(b vault.Batch) ([]byte, error) {
	scheme, err := s.ring.Scheme(b.Params, b.Field)
	if err != nil {
		return nil, err
	}
	mac, err := loadMACKey(s.vault, b.MACKey, scheme)
	if err != nil {
		return nil, err
	}
	out := make([]byte, scheme.Field.Size())
	scheme.Field.Encode(out, mac.Share.At(0))
	mac.Share.Wipe()
	return out, nil
}

var states = map[vault.BatchState]triplesv1.BatchState{
	vault.BatchLocked:    triplesv1.BatchState_BATCH_STATE_LOCKED,
	vault.BatchAvailable: triplesv1.BatchState_BATCH_STATE_AVAILABLE,
	vault.BatchConsumed:  triplesv1.BatchState_BATCH_STATE_CONSUMED,
	vault.BatchRevoked:   triplesv1.BatchState_BATCH_STATE_REVOKED,
}

func wire(b vault.Batch) *triplesv1.Batch {
	out := &triplesv1.Batch{
		Id: b.ID, State: states[b.State], Epoch: b.Epoch, MacKeyId: b.MACKey, Params: b.Params, Field: b.Field,
		Kind: job.KindOf(b.Kind), Dim: b.Dim, Count: b.Count, Digest: b.Digest[:], Tenant: b.Tenant,
		Created: timestamppb.New(b.Created), ShareBytes: b.ShareBytes, InputParty: b.InputParty,
	}
	if b.Rows > 0 {
		out.Shape = &jobv1.Shape{Rows: b.Rows, Inner: b.Inner, Columns: b.Columns}
	}
	return out
}
