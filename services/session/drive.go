package session

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/sample"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// Source returns a new source of randomness for a computation of this party only. bind
// distinguishes the computation from all others.
func Source(purpose string, bind ...[]byte) (*sample.Source, error) {
	return sample.Draw(rand.Reader, purpose, bind...)
}

// sourceOf draws a session's source, after the prelude: it is bound to the session's id, in which
// every party has a nonce, and to the party.
func sourceOf(random io.Reader, rs round.Session) (*sample.Source, error) {
	return sample.Draw(random, "session", rs.ID[:], round.Uint(uint64(rs.Self)), round.Uint(uint64(rs.Parties)))
}

// Start returns a protocol's chain after the session has its id. The protocol draws its secrets
// from the source, which is bound to the id. Drive wipes the source.
type Start[R any] func(rs round.Session, source *sample.Source) (round.Transition[R], error)

// Drive runs one chain with the peers. Only Drive and Join create a session's secrets. params is
// the hash of the protocol's further parameters, beyond the set.
func Drive[R any](ctx context.Context, s *Entry, protocol string, params [32]byte, start Start[R]) (R, error) {
	var none R
	c := s.registry.Config
	ref, err := job.RefOf(s.Spec.GetRef())
	if err != nil {
		return none, err
	}
	g, err := c.group(job.Participants(s.Spec))
	if err != nil {
		return none, err
	}
	var kept *evidence.Recorder
	if g.whole(&c) { // files name parties by their places in the roster
		kept = s.recorder()
	}
	defer kept.Close()
	log := c.Log.With("job", ref.JobID, "ordinal", ref.Ordinal, "protocol", protocol)
	log.Info("session begins", "kind", job.KindName(s.Spec.GetKind()), "field", s.Spec.GetField(), "count", s.Spec.GetCount(), "epoch", s.Spec.GetEpoch())
	span := c.Traces.Session(ref.JobID, ref.Ordinal, protocol, job.KindName(s.Spec.GetKind()), s.Spec.GetField())
	s.Enter(jobv1.JobState_JOB_STATE_GENERATING)
	result, report, err := drive(ctx, &c, task{
		ref: ref, digest: s.digest, protocol: protocol, params: params, epoch: s.Spec.GetEpoch(), group: g,
		log: log, trace: span, kept: kept, progress: func(p runner.Progress) { s.progress(g, p) },
	}, start)
	span.End(report.SessionID, report.Sent, report.Received, err)
	s.id = report.SessionID
	record(log, g.Names, report, err)
	s.accuse(ctx, kept, params, report, err)
	s.update(func(st *jobv1.SessionStatus) {
		s.signed = report.Broadcasts
		st.Rounds = uint32(report.Rounds)
		if st.Progress == nil {
			st.Progress = &jobv1.Progress{}
		}
		st.Progress.SentBytes, st.Progress.ReceivedBytes = uint64(report.Sent), uint64(report.Received)
	})
	return result, renumbered(g, err)
}

// Call is a session that clients begin by sending the same request to each party of the group.
type Call struct {
	Ref      job.Ref
	Digest   [32]byte // digest of the request, which the parties compare first
	Group    []uint32
	Protocol string
	Params   [32]byte
	Epoch    uint64
}

// Join takes part in the session of a call, under the same conditions as in other sessions. The
// chain's parties are numbered by their place in the group.
func Join[R any](ctx context.Context, r *Registry, call Call, start Start[R]) (R, error) {
	var none R
	g, err := r.group(call.Group)
	if err != nil {
		return none, err
	}
	spec := &jobv1.SessionSpec{Ref: call.Ref.Proto(), Kind: jobv1.Kind_KIND_MASKS, Epoch: call.Epoch, Group: call.Group}
	if err := r.behaved(spec); err != nil {
		return none, err
	}
	leave, err := r.enter()
	if err != nil {
		return none, err
	}
	defer leave()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.calling, func() { cancel(context.Cause(r.calling)) })()
	log := r.Log.With("job", call.Ref.JobID, "ordinal", call.Ref.Ordinal, "protocol", call.Protocol)
	result, report, err := drive(ctx, &r.Config, task{
		ref: call.Ref, digest: call.Digest, protocol: call.Protocol, params: call.Params, epoch: call.Epoch, group: g, log: log,
	}, start)
	if err == nil {
		log.Debug("call complete", "seconds", report.Took.Seconds(), "rounds", report.Rounds, "sent", report.Sent, "received", report.Received)
		return result, nil
	}
	record(log, g.Names, report, err)
	err = renumbered(g, err)
	var f *runner.Failure
	if errors.As(err, &f) && r.Conduct != nil {
		r.Conduct.Ended(spec, report.SessionID, f)
	}
	return none, err
}

// task is one run of a chain.
type task struct {
	ref      job.Ref
	digest   [32]byte
	protocol string
	params   [32]byte
	epoch    uint64
	group    Group
	log      *slog.Logger
	trace    *traces.SessionSpan
	kept     *evidence.Recorder
	progress func(runner.Progress)
}

func drive[R any](ctx context.Context, c *Config, t task, start Start[R]) (R, runner.Report, error) {
	var none R
	var source *sample.Source
	defer func() {
		if source != nil {
			source.Wipe()
		}
	}()
	x, err := c.Exchange.Open(t.ref, exchange.Pins{ParamsHash: t.params, SpecDigest: t.digest}, t.group.Parties...)
	if errors.Is(err, exchange.ErrOpened) {
		return none, runner.Report{}, rpc.Errorf(rpc.Conflict, "take a new name for another attempt", "session %s was begun before", t.ref)
	}
	if err != nil {
		return none, runner.Report{}, err
	}
	// When the deferred call runs, the session has ended, unless this party is at fault: a call can
	// panic in its handler, which the server survives.
	defer x.Abort(&exchange.AbortedError{Outcome: string(runner.Internal)}, func(*exchange.AbortedError) []byte { return nil })
	return runner.Run(ctx, runner.Options{
		Terms: round.Terms{
			Version: job.ProtocolVersion, Protocol: t.protocol, Params: t.params, Roster: c.Roster, Epoch: t.epoch, Job: t.digest,
		},
		Session: x, Self: t.group.Self, Names: t.group.Names, Places: t.group.Parties, Signer: c.Signer, Keys: t.group.Keys, Random: rand.Reader,
		Limits: c.Limits, Metrics: c.Metrics, Log: t.log, Trace: t.trace, Progress: t.progress, Cheat: c.Cheat,
		Recorder: t.kept,
	}, func(rs round.Session) (tr round.Transition[R], err error) {
		if source, err = sourceOf(rand.Reader, rs); err != nil {
			return tr, err
		}
		return start(rs, source)
	})
}

// renumbered converts the parties in a failure from indexes of the group to indexes of the roster.
func renumbered(g Group, err error) error {
	var f *runner.Failure
	if errors.As(err, &f) {
		g.renumber(f)
	}
	return err
}

// record logs the end of a session, with data to compare with the logs of other parties: the
// transcript, which is equal at honest parties; or after a dispute the signed messages of the
// blamed party, or of all parties if no party is blamed.
func record(log *slog.Logger, names []string, report runner.Report, err error) {
	log = log.With("session", hex.EncodeToString(report.SessionID[:]), "seconds", report.Took.Seconds(), "rounds", report.Rounds, "sent", report.Sent, "received", report.Received)
	if err == nil {
		log.Info("session complete", "transcript", hex.EncodeToString(report.Transcript[:]))
		return
	}
	var f *runner.Failure
	if !errors.As(err, &f) {
		return // the party that ends the session logs it
	}
	end := []any{"outcome", string(f.Outcome), "round", f.Round, "check", f.Check, "reason", f.Reason}
	if f.Outcome == runner.Blamed {
		end = append(end, "peer", names[f.Party])
	}
	if len(f.Suspects) > 0 {
		suspects := make([]string, len(f.Suspects))
		for i, p := range f.Suspects {
			suspects[i] = names[p]
		}
		end = append(end, "suspects", suspects)
	}
	log.Warn("session failed", end...)
	if f.Outcome != runner.Blamed && f.Outcome != runner.Aborted {
		return
	}
	for _, e := range report.Broadcasts {
		if f.Outcome == runner.Aborted || e.Envelope.From == f.Party {
			log.Warn("signed broadcast", "peer", names[e.Envelope.From], "evidence", e)
		}
	}
}

// progress copies the runner's view into the status.
func (s *Entry) progress(g Group, p runner.Progress) {
	waiting := make([]uint32, len(p.WaitingFor))
	for i, w := range p.WaitingFor {
		waiting[i] = uint32(g.roster(w))
	}
	s.update(func(st *jobv1.SessionStatus) {
		st.Progress = &jobv1.Progress{
			Round: p.Round, RoundIndex: uint32(p.Index), WaitingFor: waiting, Since: timestamppb.New(p.Since),
			SentBytes: uint64(p.Sent), ReceivedBytes: uint64(p.Received),
			RoundReceivedBytes: uint64(p.RoundReceived), RoundLimitBytes: uint64(p.RoundLimit),
		}
		st.Rounds = uint32(p.Index)
		if strings.Contains(p.Round, "mac/") && st.State == jobv1.JobState_JOB_STATE_GENERATING {
			st.State = jobv1.JobState_JOB_STATE_VERIFYING
		}
	})
}

// Now returns the time of a record.
func Now() time.Time { return time.Now().UTC() }
