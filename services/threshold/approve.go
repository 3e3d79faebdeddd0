package threshold

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// approvalTime limits how long a request waits for approval, and how long the approval may be used.
const approvalTime = 24 * time.Hour

// approved returns an error if other clients must approve the request first, and records that it
// waits.
func (s *Service) approved(q *request) error {
	if q.rule.Approvals == 0 {
		return nil
	}
	digest := q.asked.Request(q.caller.Name, q.circuit)
	a, err := s.Vault.RequestApproval(ledger.Approval{
		Digest: digest, Epoch: q.epoch.ID, Client: q.caller.Name, Messages: uint64(q.messages()), Note: q.circuit, Needs: q.rule.Approvals,
		Expires: time.Now().Add(approvalTime),
	})
	if err != nil {
		return vaulterr.RPC(err, "this decryption")
	}
	needs := max(q.rule.Approvals, a.Needs) // the number when the request was first made, if the rule has changed
	if len(a.By) >= needs {
		return nil
	}
	return rpc.Errorf(rpc.ApprovalNeeded, fmt.Sprintf("have it approved with `lodge decrypt approve %x`, and repeat the request before %s", digest, a.Expires.Format(time.RFC3339)),
		"%d other clients must approve the request %x at this party; %d have approved it", needs, digest, len(a.By))
}

// approval uses up the approval of a request, in the transaction that records the answers.
func (s *Service) approval(q *request) []seal.Also {
	if q.rule.Approvals == 0 {
		return nil
	}
	return []seal.Also{s.Vault.UseApproval(q.asked.Request(q.caller.Name, q.circuit), q.caller.Name)}
}

// ApproveDecryption implements the service.
func (s *Service) ApproveDecryption(ctx context.Context, r *thresholdv1.ApproveDecryptionRequest) (*thresholdv1.ApproveDecryptionResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if len(r.GetRequest()) != 32 {
		return nil, rpc.Errorf(rpc.Invalid, "`lodge decrypt approvals` lists the requests", "a request is identified by 32 bytes, not by %d", len(r.GetRequest()))
	}
	release, err := s.Audit.Hold(audit.Entry{Event: audit.Approved, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Note: "approved",
		Objects: []string{fmt.Sprintf("epoch/%d", uint64(math.MaxUint64))}})
	//lodge:check threshold/audit-room/approval [run=TestFullAuditDisk] an approval counts that the audit log has no space for
	if err != nil {
		return nil, err
	}
	defer release()
	a, err := s.Vault.Approve([32]byte(r.GetRequest()), caller.Name)
	if err != nil {
		return nil, vaulterr.RPC(err, "request "+hex.EncodeToString(r.GetRequest()))
	}
	_, err = s.Audit.Append(approvalEntry(caller, a))
	return &thresholdv1.ApproveDecryptionResponse{Approval: wireApproval(&a)}, err
}

func approvalEntry(caller rpc.Principal, a ledger.Approval) audit.Entry {
	return audit.Entry{
		Event: audit.Approved, Actor: caller.Name, Auth: audit.Auth(caller.Auth), Digest: a.Digest,
		Note: fmt.Sprintf("%d of %d, %d messages for %s", len(a.By), a.Needs, a.Messages, a.Client), Objects: []string{fmt.Sprintf("epoch/%d", a.Epoch)},
	}
}

// ListApprovals implements the service.
func (s *Service) ListApprovals(context.Context, *thresholdv1.ListApprovalsRequest) (*thresholdv1.ListApprovalsResponse, error) {
	all, err := s.Vault.Approvals()
	if err != nil {
		return nil, err
	}
	out := &thresholdv1.ListApprovalsResponse{}
	for _, a := range all {
		out.Approvals = append(out.Approvals, wireApproval(&a))
	}
	return out, nil
}

func wireApproval(a *ledger.Approval) *thresholdv1.Approval {
	return &thresholdv1.Approval{
		Request: a.Digest[:], Client: a.Client, Epoch: a.Epoch, Messages: uint32(a.Messages), Circuit: strings.ToValidUTF8(a.Note, "?"), ApprovedBy: a.By,
		Needed: uint32(a.Needs), Asked: timestamppb.New(a.When), Expires: timestamppb.New(a.Expires), Used: !a.Used.IsZero(),
	}
}
