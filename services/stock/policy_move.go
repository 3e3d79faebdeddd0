package stock

import (
	"errors"

	"google.golang.org/protobuf/proto"

	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	"github.com/lodge-mpc/lodge/services/store"
)

// Keys are an epoch and its set.
type Keys struct {
	Epoch  uint64
	Params string
}

// moved is a policy of the old keys as it is for the new, or nil when it is not of the old ones. One for the newest epoch
// of a set finds an epoch of the same set by itself.
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

// MovePolicies has the policies of an epoch, of all tenants, keep the stock of another instead, at once, and counts them;
// newest says whether it is the newest of its set, so that policies for that one go with it to another set. Where there is
// a policy of that class and epoch already, that one stays. Doing it again does nothing.
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
	s.Sync() // which finds the epoch, too
	return len(old), nil
}

// movePolicies records that some policies have taken the place of others.
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
