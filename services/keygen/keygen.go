// Package keygen serves distributed key generation at one party: an adapter between lodge.keygen.v1 and the
// protocol of the same name.
package keygen

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/params"
	protocol "github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/audit"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/keyring"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
)

// Rules say who may call what.
var Rules = session.Rules("/lodge.keygen.v1.KeygenService/", rpc.Rules{
	"ListEpochs":   rpc.Allow(rpc.Coordinator, rpc.Client).With(config.PermStatus),
	"GetPublicKey": rpc.Allow(rpc.Client),
	"RetireEpoch":  rpc.Allow(rpc.Client).With(config.PermRetire),
})

// Service implements lodge.keygen.v1.
type Service struct {
	keygenv1.UnsafeKeygenServiceServer
	session.Service
	ring  *keyring.Ring
	vault *vault.Vault
	audit *audit.Log
}

// New serves key generation.
func New(sessions *session.Registry, ring *keyring.Ring, v *vault.Vault, log *audit.Log) *Service {
	s := &Service{ring: ring, vault: v, audit: log}
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
		out.Epochs = append(out.Epochs, wire(e))
	}
	return out, nil
}

// GetPublicKey implements the service: the seed and the first polynomial of the stored keys.
func (s *Service) GetPublicKey(r *keygenv1.GetPublicKeyRequest, stream keygenv1.KeygenService_GetPublicKeyServer) error {
	e, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return keyring.Refused(err, "such epoch")
	}
	if e, err = s.ring.Epoch(e.ID, e.Purpose); err != nil {
		return err
	}
	seed, polynomial, err := s.ring.PublicFrames(e.ID)
	if err != nil {
		return err
	}
	if err := stream.Send(&keygenv1.GetPublicKeyResponse{Epoch: wire(e), Chunk: seed}); err != nil {
		return err
	}
	return stream.Send(&keygenv1.GetPublicKeyResponse{Chunk: polynomial})
}

// RetireEpoch implements the service. Sessions under the epoch end as cancelled before its keys leave the memory.
func (s *Service) RetireEpoch(ctx context.Context, r *keygenv1.RetireEpochRequest) (*keygenv1.RetireEpochResponse, error) {
	if err := session.CheckReason(r.GetReason()); err != nil {
		return nil, err
	}
	n, err := s.vault.RetireEpoch(r.GetEpoch(), r.GetReason())
	if err != nil {
		return nil, keyring.Refused(err, "such epoch")
	}
	s.Sessions.CancelEpoch(ctx, r.GetEpoch(), fmt.Sprintf("epoch %d is retired", r.GetEpoch()))
	s.ring.Forget(r.GetEpoch())
	e, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return nil, err
	}
	caller, _ := rpc.Caller(ctx)
	_, err = s.audit.Append(audit.Entry{Event: audit.EpochRetired, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: r.GetReason(),
		Objects: []string{fmt.Sprintf("epoch/%d", r.GetEpoch())}})
	if err != nil {
		return nil, err
	}
	return &keygenv1.RetireEpochResponse{Epoch: wire(e), ErasedBatches: uint64(n)}, nil
}

var states = map[vault.EpochState]keygenv1.EpochState{
	vault.EpochLocked:  keygenv1.EpochState_EPOCH_STATE_LOCKED,
	vault.EpochActive:  keygenv1.EpochState_EPOCH_STATE_ACTIVE,
	vault.EpochRetired: keygenv1.EpochState_EPOCH_STATE_RETIRED,
}

func wire(e vault.Epoch) *keygenv1.Epoch {
	purpose := jobv1.Purpose_PURPOSE_TRIPLES
	if e.Purpose == job.PurposeName(jobv1.Purpose_PURPOSE_DECRYPTION) {
		purpose = jobv1.Purpose_PURPOSE_DECRYPTION
	}
	return &keygenv1.Epoch{
		Epoch: e.ID, State: states[e.State], Params: e.Params, ParamsHash: e.ParamsHash[:], Purpose: purpose,
		Digest: e.Digest[:], KeygenSecurity: e.KeygenSecurity, Created: timestamppb.New(e.Created), Session: e.Session,
	}
}

// run is one session.
type run struct {
	*Service
	spec *jobv1.SessionSpec
}

func (r *run) dim() int { return max(1, int(r.spec.GetDim())) }

// Memory: sums, the packed copy of what is sent, and the keys.
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
	frames := uint64(protocol.EncodedFrames(scheme, r.dim()) + 2*scheme.GadgetDigits())
	return frames * uint64(set.N()) * uint64(len(set.Q)) * 8 * 2, nil
}

// Run implements session.Protocol.
func (r *run) Run(ctx context.Context, s *session.Session) (*session.Stored, error) {
	scheme, err := r.ring.Scheme(r.spec.GetParams(), "")
	if err != nil {
		return nil, err
	}
	source, err := session.Source()
	if err != nil {
		return nil, err
	}
	defer source.Wipe()
	var id round.Digest
	result, err := session.Drive(ctx, s, "keygen", scheme.Set.Hash(), func(rs round.Session) (round.Transition[protocol.Result], error) {
		id = rs.ID
		return protocol.Start(protocol.Config{Session: rs, Scheme: scheme, Dim: r.dim(), Source: source, Workers: r.ring.Workers()})
	})
	if err != nil {
		return nil, err
	}
	defer result.Wipe()
	s.Enter(jobv1.JobState_JOB_STATE_STORING)
	e := vault.Epoch{
		ID: r.spec.GetEpoch(), Params: r.spec.GetParams(), ParamsHash: scheme.Set.Hash(), RosterHash: r.Sessions.Roster,
		Purpose: job.PurposeName(r.spec.GetPurpose()), Digest: result.Keys.Digest(scheme, r.ring.Workers()), SessionID: id,
		Session: session.Name(r.spec.GetRef()), KeygenSecurity: protocol.Security, Created: session.Now(),
		Dim: uint32(r.dim()), Limit: params.MaxDecryptions,
	}
	w, err := keyring.Store(r.vault, e, scheme, result)
	if err != nil {
		return nil, keyring.Refused(err, "this epoch")
	}
	if err := w.Commit(); err != nil {
		return nil, keyring.Refused(err, "this epoch")
	}
	return Locked(r.vault, e), nil
}

// Locked is a stored epoch that waits for activation.
func Locked(v *vault.Vault, e vault.Epoch) *session.Stored {
	bits := 0
	if set, err := params.Lookup(e.Params); err == nil {
		bits = set.StatSecurityBits()
	}
	return &session.Stored{
		Digest: e.Digest, Epoch: e.ID, Security: e.KeygenSecurity, StatBits: bits,
		Activate: func() error { return keyring.Refused(v.ActivateEpoch(e.ID), fmt.Sprintf("epoch %d", e.ID)) },
		Discard: func(reason string) error {
			_, err := v.RetireEpoch(e.ID, reason)
			return err
		},
	}
}
