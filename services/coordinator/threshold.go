package coordinator

import (
	"context"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// members returns the parties that take part in a job.
func (c *Coordinator) members(q *coordinatorv1.JobRequest) (list []*member) {
	group := job.Participants(q)
	if len(group) == 0 {
		return c.parties
	}
	for _, p := range group {
		if int(p) < len(c.parties) { // jobs of another roster are ended when they are read
			list = append(list, c.parties[p])
		}
	}
	return list
}

// endStranger ends a job that was running under another roster.
func (c *Coordinator) endStranger(j *coordinatorv1.Job, key string) error {
	why := c.strangers(j)
	if why == "" || job.Final(j.GetState()) {
		return nil
	}
	j.State, j.Ended, j.Failure = failed, timestamppb.Now(), &jobv1.Failure{Outcome: outcomeInternal, Reason: why}
	return c.records.put(j, key)
}

// strangers returns the reason if an unfinished job has parties that the roster no longer has, or
// has at other positions; otherwise it returns the empty string.
func (c *Coordinator) strangers(j *coordinatorv1.Job) string {
	for _, p := range job.Participants(j.GetRequest()) {
		if int(p) >= len(c.parties) {
			return fmt.Sprintf("the roster no longer has party %d; submit the job again", p)
		}
	}
	if n := len(j.GetParties()); n > 0 && n != len(c.members(j.GetRequest())) {
		return "the roster has changed in the middle of the job; submit it again"
	}
	return ""
}

// completed fills in the fields of a request for threshold keys that the coordinator chooses: the
// threshold, the parameter set of the masks and new shares, and the holders of the old shares.
func (c *Coordinator) completed(ctx context.Context, q *coordinatorv1.JobRequest) (*coordinatorv1.JobRequest, error) {
	if q.GetPurpose() != jobv1.Purpose_PURPOSE_THRESHOLD {
		return q, nil
	}
	q = proto.CloneOf(q)
	if q.GetKind() == jobv1.Kind_KIND_RESHARE && len(q.GetGroup()) == 0 { // an empty group means all holders
		for _, p := range c.parties {
			q.Group = append(q.Group, uint32(p.index))
		}
	}
	if holders := len(q.GetGroup()); job.MakesEpoch(q.GetKind()) && q.GetThreshold() == 0 {
		if holders == 0 {
			holders = len(c.parties)
		}
		q.Threshold = uint32(max(0, holders-1) / 2)
	}
	epoch := q.GetEpoch()
	if q.GetKind() == jobv1.Kind_KIND_RESHARE {
		epoch = q.GetFromEpoch()
	}
	if q.GetKind() == jobv1.Kind_KIND_KEYS || epoch == 0 {
		return q, nil
	}
	k, err := c.thresholdKey(ctx, epoch)
	if err != nil {
		return nil, err
	}
	if q.GetParams() == "" {
		q.Params = k.GetParams()
	}
	if q.GetKind() == jobv1.Kind_KIND_RESHARE {
		q.Galois = k.GetGalois() // the public keys do not change
	}
	if q.GetKind() == jobv1.Kind_KIND_RESHARE && len(q.GetFromHolders()) == 0 {
		q.FromDigest, q.FromThreshold = k.GetDigest(), k.GetThreshold()
		for _, p := range k.GetHolders() {
			if p < -1 || int(p) >= len(c.parties) {
				return nil, rpc.Errorf(rpc.Conflict, "compare the rosters", "a party reports holder %d of epoch %d, which has %d parties", p, epoch, len(c.parties))
			}
			q.FromHolders = append(q.FromHolders, uint32(p+1))
		}
	}
	return q, nil
}

// thresholdKey asks the parties for the threshold keys of an epoch until one party knows them.
func (c *Coordinator) thresholdKey(ctx context.Context, epoch uint64) (*thresholdv1.ThresholdKey, error) {
	ctx, cancel := context.WithTimeout(ctx, epochTime)
	defer cancel()
	answers := make(chan *thresholdv1.ThresholdKey, len(c.parties))
	for _, p := range c.parties {
		go func() {
			r, _ := thresholdv1.NewThresholdServiceClient(p.conn).ListKeys(ctx, &thresholdv1.ListKeysRequest{})
			for _, k := range r.GetKeys() {
				if k.GetEpoch() == epoch {
					answers <- k
					return
				}
			}
			answers <- nil
		}()
	}
	for range c.parties {
		if k := <-answers; k != nil {
			return k, nil
		}
	}
	return nil, rpc.Errorf(rpc.NotFound, "`lodge keys list` lists the threshold keys", "no reachable party knows threshold keys of epoch %d", epoch)
}
