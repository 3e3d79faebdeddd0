package coordinator

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	thresholdv1 "github.com/lodge-mpc/lodge/proto/lodge/threshold/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// waitForReady makes a call wait for a party that has just restarted, within the deadline of its
// context.
var waitForReady = grpc.WaitForReady(true)

// sessions lists the calls that every protocol service of a party has.
type sessions interface {
	Start(ctx context.Context, in *jobv1.StartRequest, opts ...grpc.CallOption) (*jobv1.StartResponse, error)
	Watch(ctx context.Context, in *jobv1.WatchRequest, opts ...grpc.CallOption) (grpc.ServerStreamingClient[jobv1.WatchResponse], error)
	Cancel(ctx context.Context, in *jobv1.CancelRequest, opts ...grpc.CallOption) (*jobv1.CancelResponse, error)
	Activate(ctx context.Context, in *jobv1.ActivateRequest, opts ...grpc.CallOption) (*jobv1.ActivateResponse, error)
}

func (m *member) session(p jobv1.Protocol) sessions {
	switch p {
	case jobv1.Protocol_PROTOCOL_KEYGEN:
		return keygenv1.NewKeygenServiceClient(m.conn)
	case jobv1.Protocol_PROTOCOL_POPK:
		return popkv1.NewPopkServiceClient(m.conn)
	case jobv1.Protocol_PROTOCOL_THRESHOLD:
		return thresholdv1.NewThresholdServiceClient(m.conn)
	}
	return triplesv1.NewTriplesServiceClient(m.conn)
}

// start begins a session. It waits for a party that has just restarted, within the deadline of ctx.
func start(ctx context.Context, s sessions, spec *jobv1.SessionSpec) error {
	_, err := s.Start(ctx, &jobv1.StartRequest{Spec: spec}, waitForReady)
	return err
}

// watch calls each with every status of a session until each returns false or the stream ends.
func watch(ctx context.Context, s sessions, ref *jobv1.SessionRef, each func(*jobv1.SessionStatus) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := s.Watch(ctx, &jobv1.WatchRequest{Ref: ref})
	for err == nil {
		var r *jobv1.WatchResponse
		if r, err = stream.Recv(); err == nil && !each(r.GetStatus()) {
			return nil
		}
	}
	return err
}

// cancel ends a session.
func cancel(ctx context.Context, s sessions, ref *jobv1.SessionRef, reason string) error {
	_, err := s.Cancel(ctx, &jobv1.CancelRequest{Ref: ref, Reason: reason})
	return err
}

// activate unlocks the result of a session.
func activate(ctx context.Context, s sessions, ref *jobv1.SessionRef, digest []byte) (*jobv1.SessionStatus, error) {
	r, err := s.Activate(ctx, &jobv1.ActivateRequest{Ref: ref, Digest: digest})
	return r.GetStatus(), err
}

// ready waits while the party reports that it is stopping. Such a party would refuse a session and
// is usually back soon.
func (m *member) ready(ctx context.Context, retry time.Duration) error {
	for {
		r, err := healthpb.NewHealthClient(m.conn).Check(ctx, &healthpb.HealthCheckRequest{}, waitForReady)
		if err != nil || r.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
			return err
		}
		select {
		case <-time.After(retry):
		case <-ctx.Done():
			return rpc.Errorf(rpc.Unavailable, "", "it is stopping")
		}
	}
}

// lastEpoch returns the highest epoch that the party knows.
func (m *member) lastEpoch(ctx context.Context) (last uint64, err error) {
	r, err := keygenv1.NewKeygenServiceClient(m.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{}, waitForReady)
	for _, e := range r.GetEpochs() {
		last = max(last, e.GetEpoch())
	}
	return last, err
}

// hasEpoch returns an error if the party reports that it has no keys of an epoch.
func (m *member) hasEpoch(ctx context.Context, epoch uint64) error {
	const next = "`lodge keys list` lists the epochs, `lodge keys generate --purpose triples` makes one"
	r, err := keygenv1.NewKeygenServiceClient(m.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return nil //nolint:nilerr // unknown: the party is asked at the start
	}
	for _, e := range r.GetEpochs() {
		switch {
		case e.GetEpoch() != epoch:
			continue
		//lodge:check coordinator/job/epoch-retired [run=TestAnEpochThat] a job starts under retired
		//  keys
		case e.GetState() == keygenv1.EpochState_EPOCH_STATE_RETIRED:
			return rpc.Errorf(rpc.Burnt, next, "epoch %d is retired at party %s", epoch, m.name)
		case e.GetState() == keygenv1.EpochState_EPOCH_STATE_DRAINING && e.GetSuccessor() != 0:
			//lodge:check coordinator/job/epoch-draining [return=nil] [run=TestRotate$] a job starts
			//  under keys that drain
			return rpc.Errorf(rpc.Conflict, fmt.Sprintf("use epoch %d, which has taken its place", e.GetSuccessor()), "epoch %d is draining at party %s", epoch, m.name)
		case e.GetState() == keygenv1.EpochState_EPOCH_STATE_DRAINING:
			return rpc.Errorf(rpc.Conflict, next, "epoch %d is draining at party %s", epoch, m.name)
		//lodge:check coordinator/job/epoch-roster [run=TestAnEpochThat] a job starts under keys of
		//  another roster
		case e.GetStanding() != keygenv1.RosterStanding_ROSTER_STANDING_SAME:
			return rpc.Errorf(rpc.PinMismatch, "`lodge keys rotate` makes an epoch under the present roster", "epoch %d was made under another roster than that of party %s", epoch, m.name)
		}
		return nil
	}
	return rpc.Errorf(rpc.NotFound, next, "no epoch %d at party %s", epoch, m.name)
}

// holds reports whether the party has, or had, the unlocked result of a job.
func (m *member) holds(ctx context.Context, j *coordinatorv1.Job) bool {
	if j.GetRequest().GetKind() == jobv1.Kind_KIND_PROOF {
		return true // there is no result to hold
	}
	if q := j.GetRequest(); q.GetKind() == jobv1.Kind_KIND_RESHARE && !slices.Contains(q.GetGroup(), uint32(m.index)) {
		return true // a reshare at a party that gave shares and received none
	}
	if job.MakesEpoch(j.GetRequest().GetKind()) {
		r, err := keygenv1.NewKeygenServiceClient(m.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{}, waitForReady)
		for _, e := range r.GetEpochs() {
			if err == nil && e.GetEpoch() == j.GetEpoch() {
				//lodge:check coordinator/result/held-keys [swap=e.GetState() !=
				//  keygenv1.EpochState_EPOCH_STATE_LOCKED=>true] [run=TestHolds] keys that are
				//  locked at one party are reported as active
				return e.GetState() != keygenv1.EpochState_EPOCH_STATE_LOCKED
			}
		}
		return false
	}
	after := ""
	for {
		r, err := tuplesv1.NewTuplesServiceClient(m.conn).ListBatches(ctx, &tuplesv1.ListBatchesRequest{Epoch: j.GetEpoch(), After: after, Limit: 1000})
		if err != nil {
			return false
		}
		for _, b := range r.GetBatches() {
			if b.GetId() == j.GetBatchId() {
				//lodge:check coordinator/result/held-batches [swap=b.GetState() !=
				//  tuplesv1.BatchState_BATCH_STATE_LOCKED=>true] [run=TestHolds] batches that are
				//  locked at one party are reported as active
				return b.GetState() != tuplesv1.BatchState_BATCH_STATE_LOCKED
			}
		}
		if after = r.GetNext(); after == "" {
			return false
		}
	}
}

// sweep cancels results that a party still holds locked, except results of jobs that run or are
// being activated. The others belong to jobs that failed while the party was unreachable. A session
// is in keeps before a party receives it, so checking keeps after the party's response cannot miss
// one.
func (m *member) sweep(ctx context.Context, keeps func(session string) bool) error {
	keys := keygenv1.NewKeygenServiceClient(m.conn)
	epochs, err := keys.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return err
	}
	for _, e := range epochs.GetEpochs() {
		//lodge:check coordinator/result/swept-keys [run=TestSweep$] the keys of a failed job are
		//  never erased
		if e.GetState() == keygenv1.EpochState_EPOCH_STATE_LOCKED && !keeps(e.GetSession()) {
			if err := cancelNamed(ctx, keys, e.GetSession()); err != nil {
				return err
			}
		}
	}
	triples, after := triplesv1.NewTriplesServiceClient(m.conn), ""
	locked := []tuplesv1.BatchState{tuplesv1.BatchState_BATCH_STATE_LOCKED}
	for {
		r, err := tuplesv1.NewTuplesServiceClient(m.conn).ListBatches(ctx, &tuplesv1.ListBatchesRequest{States: locked, After: after, Limit: 1000})
		if err != nil {
			return err
		}
		for _, b := range r.GetBatches() {
			//lodge:check coordinator/result/swept [run=TestSweep$] the batches of a failed job are
			//  never erased
			if !keeps(b.GetId()) {
				if err := cancelNamed(ctx, triples, b.GetId()); err != nil {
					return err
				}
			}
		}
		if after = r.GetNext(); after == "" {
			return nil
		}
	}
}

// cancelNamed cancels a session given its name, which contains job and ordinal.
func cancelNamed(ctx context.Context, s sessions, name string) error {
	ref, err := refOf(name)
	if err != nil {
		return err
	}
	return cancel(ctx, s, ref, "its job failed")
}

// refOf parses the name of a session into job and ordinal.
func refOf(name string) (*jobv1.SessionRef, error) {
	at := strings.LastIndexByte(name, '-')
	ordinal, err := strconv.ParseUint(name[at+1:], 10, 32)
	if at < 0 || err != nil {
		return nil, fmt.Errorf("%q is not a session name", name)
	}
	return &jobv1.SessionRef{JobId: name[:at], Ordinal: uint32(ordinal)}, nil
}
