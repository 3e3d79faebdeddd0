package accusations

import (
	"context"
	"errors"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	accusationsv1 "github.com/lodge-mpc/lodge/proto/lodge/accusations/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

const prefix = "/lodge.accusations.v1.AccusationsService/"

var (
	look = rpc.Allow(rpc.Self, rpc.Client).With(config.PermStatus)
	//lodge:check accusations/act/permission [swap=config.PermAccusations=>config.PermStatus]
	//  [tests=./services/internal/refusals] any client with status permission clears failures and
	//  pardons cheats
	act = rpc.Allow(rpc.Self, rpc.Client).With(config.PermAccusations)
)

// Rules maps each method to the permission that a caller needs.
var Rules = rpc.Rules{
	prefix + "ListAccusations": look,
	prefix + "ListFailures":    look,
	prefix + "GetEvidence":     look,
	prefix + "ClearFailures":   act,
	prefix + "Pardon":          act,
	//lodge:check accusations/offer/peers [swap=rpc.Allow(rpc.Peer)=>rpc.Allow(rpc.Peer,
	//  rpc.Client)] [tests=./services/internal/refusals] clients can offer evidence
	prefix + "Offer": rpc.Allow(rpc.Peer),
}

// Service implements lodge.accusations.v1.
type Service struct {
	accusationsv1.UnsafeAccusationsServiceServer
	Book *Book
}

// page returns the number of records in a response; records are small.
func page(limit uint32) (int, error) {
	const usual, most = 100, 1000
	switch {
	case limit == 0:
		return usual, nil
	case limit > most:
		return 0, rpc.Errorf(rpc.Invalid, "request at most 1000 and continue after the last", "limit %d", limit)
	}
	return int(limit), nil
}

// ListAccusations implements the service.
func (s *Service) ListAccusations(_ context.Context, r *accusationsv1.ListAccusationsRequest) (*accusationsv1.ListAccusationsResponse, error) {
	most, err := page(r.GetLimit())
	if err != nil {
		return nil, err
	}
	all, err := s.Book.Vault.Accusations()
	if err != nil {
		return nil, err
	}
	out := &accusationsv1.ListAccusationsResponse{}
	if out.Standing, err = s.Book.Standing(); err != nil {
		return nil, err
	}
	for _, a := range all {
		switch {
		case a.ID <= r.GetAfter():
		case len(out.GetAccusations()) == most:
			out.Next = out.Accusations[most-1].GetId()
			return out, nil
		default:
			out.Accusations = append(out.Accusations, s.Book.wire(&a))
		}
	}
	return out, nil
}

// ListFailures implements the service.
func (s *Service) ListFailures(_ context.Context, r *accusationsv1.ListFailuresRequest) (*accusationsv1.ListFailuresResponse, error) {
	most, err := page(r.GetLimit())
	if err != nil {
		return nil, err
	}
	all, err := s.Book.Vault.UnnamedFailures(s.Book.roster)
	if err != nil {
		return nil, err
	}
	out := &accusationsv1.ListFailuresResponse{}
	for _, u := range all {
		switch {
		case u.Seq <= r.GetAfter():
		case len(out.GetFailures()) == most:
			out.Next = out.Failures[most-1].GetSequence()
			return out, nil
		default:
			out.Failures = append(out.Failures, &accusationsv1.Failure{
				Sequence: u.Seq, When: timestamppb.New(u.When), SessionId: u.Session, Session: u.Job, Epoch: u.Epoch, Check: u.Check,
				Reason: u.Reason, Suspects: u.Suspects, Cleared: u.Cleared,
			})
		}
	}
	return out, nil
}

// GetEvidence implements the service.
func (s *Service) GetEvidence(r *accusationsv1.GetEvidenceRequest, stream accusationsv1.AccusationsService_GetEvidenceServer) error {
	a, err := s.Book.Vault.Accusation(r.GetId())
	if err != nil {
		return refused(err)
	}
	if err := stream.Send(&accusationsv1.GetEvidenceResponse{Accusation: s.Book.wire(&a)}); err != nil {
		return err
	}
	return refused(s.Book.pieces(a, func(part []byte) error { return stream.Send(&accusationsv1.GetEvidenceResponse{Chunk: part}) }))
}

// refused translates an error of the vault for the caller.
func refused(err error) error {
	switch {
	case errors.Is(err, vaulterr.ErrNotFound) || errors.Is(err, vaulterr.ErrErased):
		return rpc.Errorf(rpc.NotFound, "`lodge accusations list` lists the accusations", "no such accusation at this party")
	case errors.Is(err, vaulterr.ErrState):
		return rpc.Errorf(rpc.Conflict, "review them with `lodge accusations list`, and clear again", "there are later failures than the given ones")
	}
	return vaulterr.RPC(err, "this accusation")
}

// acting returns the audit record of an operator's action, which requires a reason.
func (s *Service) acting(ctx context.Context, reason string) (a conduct.Act, e audit.Entry, err error) {
	if err := session.CheckReason(reason); err != nil {
		return a, e, err
	}
	//lodge:check accusations/act/reason [run=TestPardon] an operator can act without a reason
	if reason == "" {
		return a, e, rpc.Errorf(rpc.Invalid, "give a reason, for later readers of the log", "no reason")
	}
	p, ok := rpc.Caller(ctx)
	if !ok {
		return a, e, rpc.Errorf(rpc.Unauthenticated, "", "no caller")
	}
	return conduct.Act{When: s.Book.Vault.Now().UTC(), By: p.Name, Reason: reason},
		audit.Entry{Actor: p.Name, Auth: audit.Auth(p.Auth), Note: audit.Printable(reason)}, nil
}

// ClearFailures implements the service.
func (s *Service) ClearFailures(ctx context.Context, r *accusationsv1.ClearFailuresRequest) (*accusationsv1.ClearFailuresResponse, error) {
	act, entry, err := s.acting(ctx, r.GetReason())
	if err != nil {
		return nil, err
	}
	b := s.Book
	//lodge:check accusations/act/late [run=TestFailureThatIsNotRecorded] [redundant=failures
	//  recorded later are not among the cleared ones and count] failures that are not recorded yet
	//  are cleared
	if err := b.catchUp(); err != nil {
		return nil, err
	}
	//lodge:check accusations/act/last [swap=r.GetLast()=>0] [run=TestStop] an operator clears
	//  failures that it has not seen
	n, err := b.Vault.ClearUnnamed(b.roster, r.GetLast(), act)
	if err != nil {
		return nil, refused(err)
	}
	if n > 0 {
		entry.Event, entry.Count = audit.Cleared, uint64(n)
		if _, err := b.Audit.Append(entry); err != nil {
			return nil, err
		}
		b.reread()
	}
	out := &accusationsv1.ClearFailuresResponse{Cleared: uint32(n)}
	out.Standing, err = b.Standing()
	return out, err
}

// Pardon implements the service.
func (s *Service) Pardon(ctx context.Context, r *accusationsv1.PardonRequest) (*accusationsv1.PardonResponse, error) {
	act, entry, err := s.acting(ctx, r.GetReason())
	if err != nil {
		return nil, err
	}
	b := s.Book
	before, err := b.Vault.Accusation(r.GetId())
	if err != nil {
		return nil, refused(err)
	}
	a, err := b.Vault.Pardon(before.ID, act)
	if err != nil {
		return nil, refused(err)
	}
	if before.Pardon == nil {
		entry.Event, entry.Objects = audit.Pardoned, []string{"accusation/" + a.ID}
		if _, err := b.Audit.Append(entry); err != nil {
			return nil, err
		}
		b.reread()
	}
	out := &accusationsv1.PardonResponse{Accusation: b.wire(&a)}
	out.Standing, err = b.Standing()
	return out, err
}

func (b *Book) wire(a *conduct.Accusation) *accusationsv1.Accusation {
	p, convicted := b.convicts(a)
	return &accusationsv1.Accusation{
		Id: a.ID, Culprit: a.Culprit, Kind: a.Kind, Check: a.Check, Reason: a.Reason, SessionId: a.Session, Session: a.Job, RosterHash: a.Roster[:],
		When: timestamppb.New(a.When), From: a.From, Size: a.Size, Told: a.Told, Pardon: wireAct(a.Pardon),
		Excludes: convicted && b.Excluded(p) != nil,
	}
}

func wireAct(a *conduct.Act) *accusationsv1.Act {
	if a == nil {
		return nil
	}
	return &accusationsv1.Act{When: timestamppb.New(a.When), By: a.By, Reason: a.Reason}
}

// Standing returns the consequences for the present roster.
func (b *Book) Standing() (*accusationsv1.Standing, error) {
	c, err := b.Vault.Conduct(b.roster)
	if err != nil {
		return nil, err
	}
	failures, err := b.counted()
	if err != nil {
		return nil, err
	}
	out := &accusationsv1.Standing{
		Failures: uint32(failures), MaxFailures: uint32(b.Policy.MaxUnnamedFailures), Within: durationpb.New(b.tolerance().Within),
		Cleared: wireAct(c.Act), OnProvenCheat: b.Policy.OnProvenCheat,
	}
	if s := c.Stopped; s != nil {
		out.Stop = &accusationsv1.Stop{When: timestamppb.New(s.When), Failures: uint32(s.Failures), Suspects: s.Suspects, Checks: s.Checks}
	}
	for i, m := range b.Roster.Parties {
		if b.Excluded(round.Party(i)) != nil {
			out.Excluded = append(out.Excluded, m.Name)
		}
	}
	if err := b.Admit(nil); err != nil {
		out.Refusal = rpc.FromError(err).What
	}
	return out, nil
}
