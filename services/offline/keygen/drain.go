package keygen

import (
	"context"
	"fmt"

	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// DrainEpoch implements the service. It is recorded before the sessions under the epoch are ended,
// so that none starts meanwhile.
func (s *Service) DrainEpoch(ctx context.Context, r *keygenv1.DrainEpochRequest) (*keygenv1.DrainEpochResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if err := session.CheckReason(r.GetReason()); err != nil {
		return nil, err
	}
	if r.GetRevoke() && caller.Role != rpc.Client {
		return nil, rpc.Errorf(rpc.Forbidden, "a client of the party with the permission retire may", "the coordinator erases nothing")
	}
	//lodge:check keygen/drain-tenants tests=./services/party run=TestRetireNeedsEveryTenant one tenant's client drains an epoch that all tenants use
	if err := s.MayEnd(ctx, r.GetEpoch()); err != nil {
		return nil, err
	}
	what := fmt.Sprintf("epoch %d", r.GetEpoch())
	before, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return nil, vaulterr.RPC(err, what)
	}
	if before.State != keys.EpochDraining || before.Successor == 0 {
		if err := s.checkSuccessor(before, r.GetSuccessor(), caller.Role == rpc.Client); err != nil {
			return nil, err
		}
	}
	batches, end := 0, s.Sessions.DrainEpoch
	if r.GetRevoke() {
		end = s.Sessions.CancelEpoch
		batches, err = s.vault.RevokeEpoch(r.GetEpoch(), r.GetSuccessor(), r.GetReason())
	} else {
		err = s.vault.DrainEpoch(r.GetEpoch(), r.GetSuccessor())
	}
	if err != nil {
		return nil, vaulterr.RPC(err, what)
	}
	end(ctx, r.GetEpoch(), what+" is draining")
	if err := s.note(caller, r, before.State != keys.EpochDraining); err != nil {
		return nil, err
	}
	e, err := s.vault.Epoch(r.GetEpoch())
	if err != nil {
		return nil, err
	}
	return &keygenv1.DrainEpochResponse{Epoch: s.wire(e), ErasedBatches: uint64(batches)}, nil
}

// checkSuccessor returns an error unless the successor can replace an epoch at this party: it must
// be active, belong to the present roster, have the same purpose, and be proved unless passive keys
// are allowed. Only the party's own client may name none.
func (s *Service) checkSuccessor(e keys.Epoch, id uint64, none bool) error {
	if id == 0 && none {
		return nil
	}
	refuse := func(what string, args ...any) error {
		return rpc.Errorf(rpc.Invalid, "name an epoch that is active at all parties, for the same purpose", what, args...)
	}
	if id == e.ID {
		return refuse("epoch %d cannot take the place of itself", id)
	}
	if _, err := s.ring.Epoch(id, e.Purpose); err != nil {
		if e := rpc.FromError(err); e.Code == rpc.Internal {
			return err
		}
		return refuse("epoch %d cannot take the place of epoch %d: %s", id, e.ID, rpc.FromError(err).What)
	}
	return nil
}

// note records in the audit log that an epoch drains from now on, and that everything under it is
// erased.
func (s *Service) note(caller rpc.Principal, r *keygenv1.DrainEpochRequest, drained bool) error {
	e := audit.Entry{Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: r.GetReason(), Objects: []string{fmt.Sprintf("epoch/%d", r.GetEpoch())}}
	for event, happened := range map[audit.Event]bool{audit.EpochDrained: drained, audit.Revoked: r.GetRevoke()} {
		if e.Event = event; !happened {
			continue
		}
		if _, err := s.audit.Append(e); err != nil {
			return err
		}
	}
	return nil
}
