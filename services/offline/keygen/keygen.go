// Package keygen serves distributed key generation at one party: an adapter between lodge.keygen.v1
// and the protocol of the same name.
package keygen

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	protocol "github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/offline/keyring"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Rules say who may call what.
var Rules = session.Rules("/lodge.keygen.v1.KeygenService/", rpc.Rules{
	"ListEpochs":   rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	"GetPublicKey": rpc.Allow(rpc.Client),
	"DrainEpoch":   rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermRetire),
	"RetireEpoch":  rpc.Allow(rpc.Client).With(config.PermRetire),
})

// Service implements lodge.keygen.v1.
type Service struct {
	keygenv1.UnsafeKeygenServiceServer
	session.Service
	ring    *keyring.Ring
	vault   Vault
	audit   *audit.Log
	tenants []string // of the party's policy
}

// New serves key generation. tenants are those of the party's policy.
func New(sessions *session.Registry, ring *keyring.Ring, v Vault, log *audit.Log, tenants []string) *Service {
	s := &Service{ring: ring, vault: v, audit: log, tenants: tenants}
	s.Service = session.NewService(sessions, jobv1.Protocol_PROTOCOL_KEYGEN, func(spec *jobv1.SessionSpec) session.Protocol {
		return &run{s, spec}
	})
	return s
}

// ListEpochs implements the service.
func (s *Service) ListEpochs(context.Context, *keygenv1.ListEpochsRequest) (*keygenv1.ListEpochsResponse, error) {
	all, err := s.vault.Epochs()
	if err != nil {
		return nil, err
	}
	out := &keygenv1.ListEpochsResponse{}
	for _, e := range all {
		out.Epochs = append(out.Epochs, s.wire(e))
	}
	return out, nil
}

// GetPublicKey implements the service: the seed and the first polynomial of the stored keys.
func (s *Service) GetPublicKey(r *keygenv1.GetPublicKeyRequest, stream keygenv1.KeygenService_GetPublicKeyServer) error {
	e, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return vaulterr.RPC(err, fmt.Sprintf("epoch %d", r.GetEpoch()))
	}
	if e.Purpose == job.PurposeName(jobv1.Purpose_PURPOSE_THRESHOLD) {
		return rpc.Errorf(rpc.KeyPurpose, "`lodge keys fetch` gets them, `lodge keys encrypt` encrypts under them", "epoch %d has threshold keys", e.ID)
	}
	if e, err = s.ring.Epoch(e.ID, e.Purpose); err != nil {
		return err
	}
	seed, polynomial, err := s.ring.PublicFrames(e.ID)
	if err != nil {
		return err
	}
	if err := stream.Send(&keygenv1.GetPublicKeyResponse{Epoch: s.wire(e), Chunk: seed}); err != nil {
		return err
	}
	return stream.Send(&keygenv1.GetPublicKeyResponse{Chunk: polynomial})
}

// RetireEpoch implements the service.
func (s *Service) RetireEpoch(ctx context.Context, r *keygenv1.RetireEpochRequest) (*keygenv1.RetireEpochResponse, error) {
	if err := session.CheckReason(r.GetReason()); err != nil {
		return nil, err
	}
	//lodge:check keygen/retire-tenants tests=./services/party run=TestRetireNeedsEveryTenant one tenant's client retires an epoch that all tenants use
	if err := s.MayEnd(ctx, r.GetEpoch()); err != nil {
		return nil, err
	}
	n, err := s.Retire(ctx, r.GetEpoch(), r.GetReason())
	if err != nil {
		return nil, err
	}
	e, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return nil, err
	}
	return &keygenv1.RetireEpochResponse{Epoch: s.wire(e), ErasedBatches: uint64(n)}, nil
}

// MayEnd returns an error if the caller may not drain or retire the epoch. An epoch's keys serve
// every tenant of the party's policy, and those of an earlier policy that still have MAC keys or
// batches under it. A client must act for all.
func (s *Service) MayEnd(ctx context.Context, epoch uint64) error {
	caller, _ := rpc.Caller(ctx)
	stored, err := s.vault.Tenants(epoch)
	if err != nil {
		return err
	}
	return caller.CheckShared(fmt.Sprintf("epoch %d", epoch), append(stored, s.tenants...))
}

// Retire erases an epoch and counts the batches that held data. Sessions under it end as cancelled
// before its keys leave the memory. It returns when that is in the audit log.
func (s *Service) Retire(ctx context.Context, epoch uint64, reason string) (batches int, err error) {
	batches, err = s.vault.RetireEpoch(epoch, reason)
	if err != nil {
		return 0, vaulterr.RPC(err, fmt.Sprintf("epoch %d", epoch))
	}
	s.Sessions.CancelEpoch(ctx, epoch, fmt.Sprintf("epoch %d is retired", epoch))
	s.ring.Forget(epoch)
	caller, _ := rpc.Caller(ctx)
	_, err = s.audit.Append(audit.Entry{Event: audit.EpochRetired, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: reason,
		Objects: []string{fmt.Sprintf("epoch/%d", epoch)}})
	return batches, err
}

var states = map[keys.EpochState]keygenv1.EpochState{
	keys.EpochLocked:   keygenv1.EpochState_EPOCH_STATE_LOCKED,
	keys.EpochActive:   keygenv1.EpochState_EPOCH_STATE_ACTIVE,
	keys.EpochDraining: keygenv1.EpochState_EPOCH_STATE_DRAINING,
	keys.EpochRetired:  keygenv1.EpochState_EPOCH_STATE_RETIRED,
}

var standings = map[keys.Standing]keygenv1.RosterStanding{
	keys.SameRoster:   keygenv1.RosterStanding_ROSTER_STANDING_SAME,
	keys.SameParties:  keygenv1.RosterStanding_ROSTER_STANDING_SAME_PARTIES,
	keys.OtherParties: keygenv1.RosterStanding_ROSTER_STANDING_OTHER,
}

func (s *Service) wire(e keys.Epoch) *keygenv1.Epoch {
	purpose := jobv1.Purpose_PURPOSE_TRIPLES
	for _, p := range []jobv1.Purpose{jobv1.Purpose_PURPOSE_DECRYPTION, jobv1.Purpose_PURPOSE_THRESHOLD} {
		if e.Purpose == job.PurposeName(p) {
			purpose = p
		}
	}
	return &keygenv1.Epoch{
		Epoch: e.ID, State: states[e.State], Params: e.Params, ParamsHash: e.ParamsHash[:], Purpose: purpose,
		Digest: e.Digest[:], KeygenSecurity: e.KeygenSecurity, Created: timestamppb.New(e.Created), Session: e.Session,
		Dim: e.Dim, RosterHash: e.RosterHash[:], Standing: standings[s.vault.Standing(&e)], Successor: e.Successor, Reason: e.Reason,
	}
}

// run is one session.
type run struct {
	*Service
	spec *jobv1.SessionSpec
}

func (r *run) dim() int { return max(1, int(r.spec.GetDim())) }

// Memory estimates the memory of a run, and returns an error if the run is impossible.
func (r *run) Memory() (uint64, error) {
	if _, err := r.vault.Epoch(r.spec.GetEpoch()); err == nil {
		return 0, rpc.Errorf(rpc.Conflict, "an epoch is made once; take the next number", "epoch %d exists already", r.spec.GetEpoch())
	}
	scheme, err := r.ring.Scheme(r.spec.GetParams(), "")
	if err != nil {
		return 0, err
	}
	set := scheme.Set
	if r.dim() > set.N()/2 {
		return 0, rpc.Errorf(rpc.Invalid, "", "no rotation keys for blocks of %d in a ring of degree %d", r.dim(), set.N())
	}
	bytes, err := protocol.MemoryBytes(scheme, len(r.Sessions.Names), r.dim(), r.ring.Workers(), set.KeygenSecurity())
	return uint64(bytes), err
}

// Run implements session.Protocol.
func (r *run) Run(ctx context.Context, s *session.Entry) (*session.Stored, error) {
	scheme, err := r.ring.Scheme(r.spec.GetParams(), "")
	if err != nil {
		return nil, err
	}
	var id round.Digest
	result, err := session.Drive(ctx, s, plan.Keygen, scheme.Set.Hash(), func(rs round.Session, source *sample.Source) (round.Transition[protocol.Result], error) {
		id = rs.ID
		return protocol.Start(protocol.Config{Session: rs, Scheme: scheme, Dim: r.dim(), Security: scheme.Set.KeygenSecurity(), Source: source, Workers: r.ring.Workers()})
	})
	if err != nil {
		return nil, err
	}
	defer result.Wipe()
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	e := keys.Epoch{
		ID: r.spec.GetEpoch(), Params: r.spec.GetParams(), ParamsHash: scheme.Set.Hash(), RosterHash: r.Sessions.Roster,
		Purpose: job.PurposeName(r.spec.GetPurpose()), Digest: result.Keys.Digest(scheme, r.ring.Workers()), SessionID: id,
		Session: session.Name(r.spec.GetRef()), KeygenSecurity: result.Security, Created: session.Now(),
		Dim: uint32(r.dim()), Limit: params.MaxDecryptions,
	}
	w, err := keyring.Store(r.vault, e, scheme, result)
	if err != nil {
		return nil, vaulterr.RPC(err, "this epoch")
	}
	if err := w.Commit(); err != nil {
		return nil, vaulterr.RPC(err, "this epoch")
	}
	return Locked(r.vault, e), nil
}

// Stored is the part of the vault that activates a stored epoch, or erases it.
type Stored interface {
	ActivateEpoch(id uint64) error
	RetireEpoch(id uint64, reason string) (batches int, err error)
}

// Locked returns a stored epoch that waits for activation.
func Locked(v Stored, e keys.Epoch) *session.Stored {
	bits := 0
	if set, err := params.Lookup(e.Params); err == nil {
		bits = set.StatSecurityBits()
	}
	return &session.Stored{
		Digest: e.Digest, Epoch: e.ID, Security: e.KeygenSecurity, StatBits: bits,
		Activate: func() error { return vaulterr.RPC(v.ActivateEpoch(e.ID), fmt.Sprintf("epoch %d", e.ID)) },
		Discard: func(reason string) error {
			_, err := v.RetireEpoch(e.ID, reason)
			return err
		},
	}
}
