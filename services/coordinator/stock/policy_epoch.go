package stock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// epochFor returns the epoch to which a policy applies now, or the reason why there is none.
func (s *Service) epochFor(p *policy, away error) (epoch uint64, problem string) {
	if err := awayFor(away, p.msg.GetClass()); err != nil { // otherwise the epoch of the last successful poll applies, if there was one
		problem = "not all parties can be asked: " + oneLine(rpc.FromError(err).What)
	}
	for _, e := range s.epochs {
		if s.serves(e, p.msg.GetClass()) && (p.msg.GetEpoch() == 0 || e.GetEpoch() == p.msg.GetEpoch()) {
			return e.GetEpoch(), problem
		}
	}
	if problem != "" {
		return p.msg.GetEpoch(), problem
	}
	use := "for triples of " + p.msg.GetClass().GetParams() + " at all parties"
	if masks(p.msg.GetClass()) {
		use = "for threshold decryption with " + p.msg.GetClass().GetParams() + " at all parties of the quorum"
	}
	if p.msg.GetEpoch() != 0 {
		return p.msg.GetEpoch(), fmt.Sprintf("no epoch %d is active %s", p.msg.GetEpoch(), use)
	}
	return 0, "no epoch is active " + use
}

// activeEpoch is an epoch with the parties at which it is active, in ascending order. All parties
// have the keys of an epoch for triples; only the holders have those of a threshold epoch.
type activeEpoch struct {
	*keygenv1.Epoch
	at []uint32
}

// serves reports whether tuples or masks of a class are made under an epoch.
func (s *Service) serves(e activeEpoch, c *tuplesv1.Class) bool {
	if e.GetParams() != c.GetParams() {
		return false
	}
	if !masks(c) {
		return e.GetPurpose() == jobv1.Purpose_PURPOSE_TRIPLES && len(e.at) == len(s.parties)
	}
	for _, p := range c.GetQuorum() {
		if !slices.Contains(e.at, p) {
			return false
		}
	}
	return e.GetPurpose() == jobv1.Purpose_PURPOSE_THRESHOLD
}

// findEpochs asks the parties for their epochs and keeps the active ones, newest first. It does not
// ask unavailable parties: their last report stays valid. The error lists the unavailable parties,
// including those that became unreachable meanwhile.
func (s *Service) findEpochs(ctx context.Context, away error) error {
	s.keeping.Lock()
	none := len(s.policies) == 0
	s.keeping.Unlock()
	errs := make(awayError, len(s.parties))
	if none || away != nil && !errors.As(away, &errs) {
		return away
	}
	errs = slices.Clone(errs)
	if s.said == nil {
		s.said = make([][]*keygenv1.Epoch, len(s.parties))
	}
	s.listEpochs(ctx, s.said, errs)
	s.epochs = activeEpochs(s.said)
	return errs.or()
}

// listEpochs asks the parties without an error for their epochs, and changes their reports and
// errors.
func (s *Service) listEpochs(ctx context.Context, said [][]*keygenv1.Epoch, errs awayError) {
	var wg sync.WaitGroup
	for i, p := range s.parties {
		if errs[i] != nil {
			continue
		}
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, callTime)
			defer cancel()
			r, err := keygenv1.NewKeygenServiceClient(p.Conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
			if err != nil {
				errs[i] = fmt.Errorf("%s: %w", p, err)
				return
			}
			said[i] = r.GetEpochs()
		})
	}
	wg.Wait()
}

// noEpoch returns an error if no epoch is active for a request: then nothing makes more tuples. It
// returns nil if one is, or if the parties do not tell.
func (s *Service) noEpoch(ctx context.Context, q *stockv1.ReserveRequest, has uint64) error {
	said, errs := make([][]*keygenv1.Epoch, len(s.parties)), make(awayError, len(s.parties))
	if s.listEpochs(ctx, said, errs); errs.or() != nil {
		return nil
	}
	for _, e := range activeEpochs(said) {
		if s.serves(e, q.GetClass()) && (q.GetEpoch() == 0 || q.GetEpoch() == e.GetEpoch()) {
			return nil
		}
	}
	set, last, state := q.GetClass().GetParams(), uint64(0), "none was made"
	for _, epochs := range said {
		for _, e := range epochs {
			if e.GetParams() == set && e.GetPurpose() == jobv1.Purpose_PURPOSE_TRIPLES && e.GetEpoch() >= last && (q.GetEpoch() == 0 || q.GetEpoch() == e.GetEpoch()) &&
				e.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE {
				last = e.GetEpoch()
				state = fmt.Sprintf("epoch %d is %s", last, strings.ToLower(strings.TrimPrefix(e.GetState().String(), "EPOCH_STATE_")))
			}
		}
	}
	return rpc.Errorf(rpc.OutOfStock, "make new keys with `lodge jobs submit --kind keys --params "+set+" --wait`; policies then make tuples under them",
		"%d tuples of this class are available, and the request is for %d; no more are made, because no epoch of %s is active at all parties (%s)", has, q.GetCount(), set, state)
}

// activeEpochs returns the active epochs in the parties' reports, newest first.
func activeEpochs(found [][]*keygenv1.Epoch) (list []activeEpoch) {
	active := map[uint64]activeEpoch{}
	for party, epochs := range found {
		for _, e := range epochs {
			if e.GetState() != keygenv1.EpochState_EPOCH_STATE_ACTIVE || e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_SAME {
				continue
			}
			x, known := active[e.GetEpoch()]
			if !known {
				x.Epoch = e
			}
			x.at = append(x.at, uint32(party))
			active[e.GetEpoch()] = x
		}
	}
	return slices.SortedFunc(maps.Values(active), func(a, b activeEpoch) int { return cmp.Compare(b.GetEpoch(), a.GetEpoch()) })
}
