package stock

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"

	"google.golang.org/protobuf/proto"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

const (
	maxPolicies = 256
	maxPriority = 100
	maxMark     = 1 << 50 // in tuples
)

// policy is a stored policy with the state that the plan keeps for it.
type policy struct {
	id  string
	msg *stockv1.Policy
	policyState
}

// policyState is recorded together with a policy.
type policyState struct {
	Since   uint64 `json:"since"`   // number of its first job since it was set; failures of earlier jobs do not count
	Filling bool   `json:"filling"` // see wish
}

// policyID returns the identifier of the policy of a class and epoch, for the records and the keys
// of its jobs.
func policyID(class *tuplesv1.Class, epoch uint64) string {
	sum := sha256.Sum256(binary.LittleEndian.AppendUint64([]byte("lodge stock policy\x00"+keyOf(class)), epoch))
	return hex.EncodeToString(sum[:12])
}

// ClassOf returns the class of the tuples or masks that a job makes.
func ClassOf(q *coordinatorv1.JobRequest) *tuplesv1.Class {
	return &tuplesv1.Class{
		Tenant: q.GetTenant(), Kind: q.GetKind(), Params: q.GetParams(), Field: q.GetField(), Shape: q.GetShape(), InputParty: q.GetInputParty(),
		NoSacrifice: q.GetNoSacrifice(), Quorum: q.GetGroup(), Form: q.GetForm(),
	}
}

// request returns the request for a policy's job in an epoch.
func request(p *stockv1.Policy, epoch uint64) *coordinatorv1.JobRequest {
	c, purpose := p.GetClass(), jobv1.Purpose_PURPOSE_TRIPLES
	if masks(c) {
		purpose = jobv1.Purpose_PURPOSE_THRESHOLD
	}
	return &coordinatorv1.JobRequest{
		Kind: c.GetKind(), Params: c.GetParams(), Field: c.GetField(), Dim: blockOf(p), Shape: c.GetShape(), Count: p.GetBatch(), Epoch: epoch,
		Purpose: purpose, Tenant: c.GetTenant(), InputParty: c.GetInputParty(), NoSacrifice: c.GetNoSacrifice(),
		Group: c.GetQuorum(), Form: c.GetForm(),
	}
}

// blockOf returns the block dimension of a policy's jobs; 0 if a party chooses it or the class has
// no blocks.
func blockOf(p *stockv1.Policy) uint32 {
	if c := p.GetClass(); !job.Shaped(c.GetKind()) && !masks(c) {
		return 1
	}
	return p.GetDim()
}

// checkClass returns an error unless the caller may set policies for the class.
func checkClass(caller rpc.Principal, class *tuplesv1.Class) error {
	if !shows(caller, class) {
		return rpc.Errorf(rpc.Forbidden, "add the tenant to this client in the coordinator's configuration",
			"client %s does not act for tenant %q", caller.Name, class.GetTenant())
	}
	if !job.Stocked(class.GetKind()) {
		return rpc.Errorf(rpc.Invalid, "request a kind of tuples, or masks", "%s", job.NoTuples(class.GetKind()))
	}
	return nil
}

// checkShared returns an error if the policy is for masks, which serve every tenant, and the client
// does not act for all tenants.
func (s *Service) checkShared(caller rpc.Principal, class *tuplesv1.Class) error {
	//lodge:check stock/masks-tenants run=TestMaskPolicyNeedsEveryTenant one tenant's client stops the production of masks that all tenants need for decryption
	if masks(class) {
		return caller.CheckShared("the policy of a quorum's masks", s.tenants)
	}
	return nil
}

// checkPolicy rejects policies that no stock could follow.
func (s *Service) checkPolicy(p *stockv1.Policy) error {
	invalid := func(next, format string, args ...any) error { return rpc.Errorf(rpc.Invalid, next, format, args...) }
	switch {
	case p.GetHigh() == 0 || p.GetLow() == 0:
		return invalid("to make nothing, delete or pause the policy", "both marks must be at least 1")
	case p.GetLow() > p.GetHigh():
		return invalid("jobs start below the low mark and continue up to the high mark", "low %d is above high %d", p.GetLow(), p.GetHigh())
	case p.GetHigh() > maxMark:
		return invalid("", "high %d is above the maximum %d", p.GetHigh(), uint64(maxMark))
	case p.GetBatch() == 0:
		return invalid("give the minimum number of tuples per job", "no batch")
	case p.GetPriority() > maxPriority:
		return invalid("", "priority %d is above the maximum %d", p.GetPriority(), maxPriority)
	case p.GetDim() > 1 && !job.Shaped(p.GetClass().GetKind()) || p.GetDim()&(p.GetDim()-1) != 0:
		return invalid("omit it to let the parties choose", "only matrices and convolutions have a dim, which must be a power of two, not %d", p.GetDim())
	}
	q := request(p, max(1, p.GetEpoch()))
	if !masks(p.GetClass()) {
		q.Dim = max(1, q.GetDim())
	}
	return s.queue.Check(q)
}

// SetPolicy implements the service.
func (s *Service) SetPolicy(ctx context.Context, q *stockv1.SetPolicyRequest) (*stockv1.SetPolicyResponse, error) {
	caller, _ := rpc.Caller(ctx)
	msg := q.GetPolicy()
	if err := checkClass(caller, msg.GetClass()); err != nil {
		return nil, err
	}
	if err := s.checkShared(caller, msg.GetClass()); err != nil {
		return nil, err
	}
	if err := s.checkPolicy(msg); err != nil {
		return nil, err
	}
	id := policyID(msg.GetClass(), msg.GetEpoch())
	s.keeping.Lock()
	defer s.keeping.Unlock()
	old := s.policies[id]
	switch {
	case old != nil && proto.Equal(old.msg, msg):
		return &stockv1.SetPolicyResponse{Policy: msg}, nil
	case old == nil && len(s.policies) >= maxPolicies:
		return nil, rpc.Errorf(rpc.PolicyRefused, "delete an unneeded policy", "there are %d policies already, the maximum", maxPolicies)
	}
	p := &policy{id: id, msg: msg, policyState: policyState{Since: s.nextJob(id)}}
	if old != nil {
		p.Filling = old.Filling
	}
	if err := s.records.setPolicy(p); err != nil {
		return nil, err
	}
	s.policies[id] = p
	s.Sync() // this also finds the epoch
	return &stockv1.SetPolicyResponse{Policy: msg}, nil
}

// nextJob returns the number of the next job of a policy, whether the policy exists now or existed
// earlier.
func (s *Service) nextJob(id string) uint64 {
	p := &policy{id: id}
	if old := s.policies[id]; old != nil {
		p = old
	}
	past, _ := histories(s.queue.Tuples(), []*policy{p})
	return past[id].next
}

// DeletePolicy implements the service.
func (s *Service) DeletePolicy(ctx context.Context, q *stockv1.DeletePolicyRequest) (*stockv1.DeletePolicyResponse, error) {
	caller, _ := rpc.Caller(ctx)
	if err := cmp.Or(checkClass(caller, q.GetClass()), s.checkShared(caller, q.GetClass())); err != nil {
		return nil, err
	}
	id := policyID(q.GetClass(), q.GetEpoch())
	s.keeping.Lock()
	defer s.keeping.Unlock()
	if s.policies[id] != nil {
		if err := s.records.deletePolicy(id); err != nil {
			return nil, err
		}
		delete(s.policies, id)
		s.Changed()
	}
	return &stockv1.DeletePolicyResponse{}, nil
}

// ListPolicies implements the service.
func (s *Service) ListPolicies(ctx context.Context, _ *stockv1.ListPoliciesRequest) (*stockv1.ListPoliciesResponse, error) {
	caller, _ := rpc.Caller(ctx)
	s.keeping.Lock()
	defer s.keeping.Unlock()
	out := &stockv1.ListPoliciesResponse{}
	for _, p := range s.policies {
		if shows(caller, p.msg.GetClass()) {
			out.Policies = append(out.Policies, p.msg)
		}
	}
	slices.SortFunc(out.Policies, func(a, b *stockv1.Policy) int { return order(a.GetClass(), a.GetEpoch(), b.GetClass(), b.GetEpoch()) })
	return out, nil
}
