package stock

import (
	"errors"

	"google.golang.org/protobuf/proto"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

// Keys identifies an epoch and its parameter set.
type Keys struct {
	Epoch  uint64
	Params string
}

// moved returns a policy of the old keys adapted to the new keys, or nil if the policy does not
// apply to the old keys. A policy for the newest epoch of a set needs no change if the set stays
// the same.
func moved(p *stockv1.Policy, from, to Keys, isNewest bool) *stockv1.Policy {
	newest := p.GetEpoch() == 0
	switch {
	case p.GetClass().GetParams() != from.Params, !newest && p.GetEpoch() != from.Epoch, newest && (from.Params == to.Params || !isNewest):
		return nil
	}
	out := proto.CloneOf(p)
	out.Class.Params = to.Params
	if !newest {
		out.Epoch = to.Epoch
	}
	return out
}

// MovePolicies atomically changes the policies of an epoch, for all tenants, to keep the stock of
// another epoch instead, and returns their number. newest tells whether the old epoch is the newest
// of its set: policies for the newest epoch then move to the other set too. An existing policy of
// the same class and epoch stays. The call is idempotent.
func (s *Service) MovePolicies(from, to Keys, newest bool) (n int, err error) {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	var old []string
	fresh := map[string]*policy{}
	for id, p := range s.policies {
		msg := moved(p.msg, from, to, newest)
		if msg == nil {
			continue
		}
		old = append(old, id)
		next := policyID(msg.GetClass(), msg.GetEpoch())
		if s.policies[next] == nil {
			fresh[next] = &policy{id: next, msg: msg, policyState: policyState{Since: s.nextJob(next), Filling: p.Filling}}
		}
	}
	if err := s.records.movePolicies(old, fresh); err != nil {
		return 0, err
	}
	for _, id := range old {
		delete(s.policies, id)
	}
	for id, p := range fresh {
		s.policies[id] = p
	}
	s.Sync() // this also finds the epoch
	return len(old), nil
}

// movePolicies records that policies replace others.
func (r *records) movePolicies(old []string, fresh map[string]*policy) error {
	return r.store.Update(func(tx store.Tx) error {
		var err error
		for _, id := range old {
			err = errors.Join(err, tx.Delete(policyPrefix+id), tx.Delete(statePrefix+id))
		}
		for _, p := range fresh {
			err = errors.Join(err, putPolicy(tx, p))
		}
		return err
	})
}
