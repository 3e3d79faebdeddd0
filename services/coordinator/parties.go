package coordinator

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc"

	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	triplesv1 "github.com/lodge-mpc/lodge/proto/lodge/triples/v1"
)

// waitForReady lets a call wait for a party that has just restarted, as long as its context allows.
var waitForReady = grpc.WaitForReady(true)

// sessions are the calls that every protocol service of a party has.
type sessions interface {
	start(context.Context, *jobv1.SessionSpec) (*jobv1.SessionStatus, error)
	// watch calls each with every status until it says false or the stream ends.
	watch(ctx context.Context, ref *jobv1.SessionRef, each func(*jobv1.SessionStatus) bool) error
	cancel(ctx context.Context, ref *jobv1.SessionRef, reason string) error
	activate(ctx context.Context, ref *jobv1.SessionRef, digest []byte) (*jobv1.SessionStatus, error)
}

func (m *member) session(p jobv1.Protocol) sessions {
	switch p {
	case jobv1.Protocol_PROTOCOL_KEYGEN:
		return keygenSessions{keygenv1.NewKeygenServiceClient(m.conn)}
	case jobv1.Protocol_PROTOCOL_POPK:
		return popkSessions{popkv1.NewPopkServiceClient(m.conn)}
	}
	return triplesSessions{triplesv1.NewTriplesServiceClient(m.conn)}
}

// lastEpoch is the highest epoch that the party knows.
func (m *member) lastEpoch(ctx context.Context) (last uint64, err error) {
	r, err := keygenv1.NewKeygenServiceClient(m.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{}, waitForReady)
	for _, e := range r.GetEpochs() {
		last = max(last, e.GetEpoch())
	}
	return last, err
}

// holds reports whether the party has, or had, the result of a job unlocked.
func (m *member) holds(ctx context.Context, j *coordinatorv1.Job) bool {
	if j.GetRequest().GetKind() == jobv1.Kind_KIND_PROOF {
		return true // there is nothing to hold
	}
	if j.GetRequest().GetKind() == jobv1.Kind_KIND_KEYS {
		r, err := keygenv1.NewKeygenServiceClient(m.conn).ListEpochs(ctx, &keygenv1.ListEpochsRequest{}, waitForReady)
		for _, e := range r.GetEpochs() {
			if err == nil && e.GetEpoch() == j.GetEpoch() {
				return e.GetState() != keygenv1.EpochState_EPOCH_STATE_LOCKED
			}
		}
		return false
	}
	after := ""
	for {
		r, err := triplesv1.NewTriplesServiceClient(m.conn).ListBatches(ctx, &triplesv1.ListBatchesRequest{Epoch: j.GetEpoch(), After: after, Limit: 1000})
		if err != nil {
			return false
		}
		for _, b := range r.GetBatches() {
			if b.GetId() == j.GetBatchId() {
				return b.GetState() != triplesv1.BatchState_BATCH_STATE_LOCKED
			}
		}
		if after = r.GetNext(); after == "" {
			return false
		}
	}
}

type keygenSessions struct{ keygenv1.KeygenServiceClient }

func (s keygenSessions) start(ctx context.Context, spec *jobv1.SessionSpec) (*jobv1.SessionStatus, error) {
	r, err := s.Start(ctx, &keygenv1.StartRequest{Spec: spec}, waitForReady)
	return r.GetStatus(), err
}

func (s keygenSessions) watch(ctx context.Context, ref *jobv1.SessionRef, each func(*jobv1.SessionStatus) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.Watch(ctx, &keygenv1.WatchRequest{Ref: ref})
	for err == nil {
		var r *keygenv1.WatchResponse
		if r, err = st.Recv(); err == nil && !each(r.GetStatus()) {
			return nil
		}
	}
	return err
}

func (s keygenSessions) cancel(ctx context.Context, ref *jobv1.SessionRef, reason string) error {
	_, err := s.Cancel(ctx, &keygenv1.CancelRequest{Ref: ref, Reason: reason})
	return err
}

func (s keygenSessions) activate(ctx context.Context, ref *jobv1.SessionRef, digest []byte) (*jobv1.SessionStatus, error) {
	r, err := s.Activate(ctx, &keygenv1.ActivateRequest{Ref: ref, Digest: digest})
	return r.GetStatus(), err
}

type triplesSessions struct{ triplesv1.TriplesServiceClient }

func (s triplesSessions) start(ctx context.Context, spec *jobv1.SessionSpec) (*jobv1.SessionStatus, error) {
	r, err := s.Start(ctx, &triplesv1.StartRequest{Spec: spec}, waitForReady)
	return r.GetStatus(), err
}

func (s triplesSessions) watch(ctx context.Context, ref *jobv1.SessionRef, each func(*jobv1.SessionStatus) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.Watch(ctx, &triplesv1.WatchRequest{Ref: ref})
	for err == nil {
		var r *triplesv1.WatchResponse
		if r, err = st.Recv(); err == nil && !each(r.GetStatus()) {
			return nil
		}
	}
	return err
}

func (s triplesSessions) cancel(ctx context.Context, ref *jobv1.SessionRef, reason string) error {
	_, err := s.Cancel(ctx, &triplesv1.CancelRequest{Ref: ref, Reason: reason})
	return err
}

func (s triplesSessions) activate(ctx context.Context, ref *jobv1.SessionRef, digest []byte) (*jobv1.SessionStatus, error) {
	r, err := s.Activate(ctx, &triplesv1.ActivateRequest{Ref: ref, Digest: digest})
	return r.GetStatus(), err
}

type popkSessions struct{ popkv1.PopkServiceClient }

func (s popkSessions) start(ctx context.Context, spec *jobv1.SessionSpec) (*jobv1.SessionStatus, error) {
	r, err := s.Start(ctx, &popkv1.StartRequest{Spec: spec}, waitForReady)
	return r.GetStatus(), err
}

func (s popkSessions) watch(ctx context.Context, ref *jobv1.SessionRef, each func(*jobv1.SessionStatus) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	st, err := s.Watch(ctx, &popkv1.WatchRequest{Ref: ref})
	for err == nil {
		var r *popkv1.WatchResponse
		if r, err = st.Recv(); err == nil && !each(r.GetStatus()) {
			return nil
		}
	}
	return err
}

func (s popkSessions) cancel(ctx context.Context, ref *jobv1.SessionRef, reason string) error {
	_, err := s.Cancel(ctx, &popkv1.CancelRequest{Ref: ref, Reason: reason})
	return err
}

// activate has nothing to unlock: a proof leaves nothing behind.
func (s popkSessions) activate(ctx context.Context, ref *jobv1.SessionRef, _ []byte) (*jobv1.SessionStatus, error) {
	r, err := s.GetStatus(ctx, &popkv1.GetStatusRequest{Ref: ref})
	return r.GetStatus(), err
}

// sweep cancels what a party still holds locked, except what is named. One session runs at a time, so before it starts
// anything locked that is not being activated belongs to a job that failed while the party could not be reached.
func (m *member) sweep(ctx context.Context, except map[string]bool) error {
	keys := keygenSessions{keygenv1.NewKeygenServiceClient(m.conn)}
	epochs, err := keys.ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return err
	}
	for _, e := range epochs.GetEpochs() {
		if e.GetState() == keygenv1.EpochState_EPOCH_STATE_LOCKED && !except[e.GetSession()] {
			if err := cancelNamed(ctx, keys, e.GetSession()); err != nil {
				return err
			}
		}
	}
	triples := triplesSessions{triplesv1.NewTriplesServiceClient(m.conn)}
	after := ""
	for {
		r, err := triples.ListBatches(ctx, &triplesv1.ListBatchesRequest{After: after, Limit: 1000})
		if err != nil {
			return err
		}
		for _, b := range r.GetBatches() {
			if b.GetState() == triplesv1.BatchState_BATCH_STATE_LOCKED && !except[b.GetId()] {
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

// cancelNamed cancels a session by its name, job and ordinal.
func cancelNamed(ctx context.Context, s sessions, name string) error {
	at := strings.LastIndexByte(name, '-')
	ordinal, err := strconv.ParseUint(name[at+1:], 10, 32)
	if at < 0 || err != nil {
		return fmt.Errorf("%q names no session", name)
	}
	return s.cancel(ctx, &jobv1.SessionRef{JobId: name[:at], Ordinal: uint32(ordinal)}, "its job failed")
}
