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
	"github.com/lodge-mpc/lodge/services/exchange"
	"github.com/lodge-mpc/lodge/services/job"
	"github.com/lodge-mpc/lodge/services/runner"
)

// Source is a fresh source of randomness for work of this party alone, bound to what tells the work from any other.
func Source(purpose string, bind ...[]byte) (*sample.Source, error) {
	return sample.Draw(rand.Reader, purpose, bind...)
}

// sourceOf draws a session's source, after the prelude: it is bound to the session's id, in which every party has a nonce,
// and to the party.
func sourceOf(random io.Reader, rs round.Session) (*sample.Source, error) {
	return sample.Draw(random, "session", rs.ID[:], round.Uint(uint64(rs.Self)), round.Uint(uint64(rs.Parties)))
}

// Start gives a protocol's chain, once the session has its id, from which the session's secrets are drawn. Drive wipes the
// source.
type Start[R any] func(rs round.Session, source *sample.Source) (round.Transition[R], error)

// Drive runs one chain with the peers, and is the only place where a session's secrets come from. params is the hash of what the protocol computes with, beyond the set.
func Drive[R any](ctx context.Context, s *Session, protocol string, params [32]byte, start Start[R]) (R, error) {
	var none R
	var source *sample.Source
	defer func() {
		if source != nil {
			source.Wipe()
		}
	}()
	c := s.registry.Config
	ref, err := job.RefOf(s.Spec.GetRef())
	if err != nil {
		return none, err
	}
	x, err := c.Exchange.Open(ref, exchange.Pins{ParamsHash: params, SpecDigest: s.digest})
	if err != nil {
		return none, err
	}
	kept := s.recorder()
	defer kept.Close()
	s.Enter(jobv1.JobState_JOB_STATE_GENERATING)
	result, report, err := runner.Run(ctx, runner.Options{
		Terms: round.Terms{
			Version: job.ProtocolVersion, Protocol: protocol, Params: params, Roster: c.Roster,
			Epoch: s.Spec.GetEpoch(), Job: s.digest,
		},
		Session: x, Self: c.Self, Names: c.Names, Signer: c.Signer, Keys: c.Keys, Random: rand.Reader,
		Limits: c.Limits, Metrics: c.Metrics, Log: c.Log, Progress: s.progress, Deviation: c.Deviation,
		Recorder: kept,
	}, func(rs round.Session) (t round.Transition[R], err error) {
		if source, err = sourceOf(rand.Reader, rs); err != nil {
			return t, err
		}
		return start(rs, source)
	})
	s.id = report.SessionID
	record(c.Log, c.Names, ref, report, err)
	s.accuse(ctx, kept, params, report, err)
	s.update(func(st *jobv1.SessionStatus) {
		s.signed = report.Broadcasts
		st.Rounds = uint32(report.Rounds)
		if st.Progress == nil {
			st.Progress = &jobv1.Progress{}
		}
		st.Progress.SentBytes, st.Progress.ReceivedBytes = uint64(report.Sent), uint64(report.Received)
	})
	return result, err
}

// record logs what a session leaves to be compared with the logs of others: the transcript, which is equal at honest
// parties, or after a dispute what the party at fault, or everybody when none is named, has signed.
func record(log *slog.Logger, names []string, ref job.Ref, report runner.Report, err error) {
	log = log.With("job", ref.JobID, "ordinal", ref.Ordinal)
	if err == nil {
		log.Info("session complete", "session", hex.EncodeToString(report.SessionID[:]), "transcript", hex.EncodeToString(report.Transcript[:]))
		return
	}
	var f *runner.Failure
	if !errors.As(err, &f) || f.Outcome != runner.Blamed && f.Outcome != runner.Aborted {
		return
	}
	for _, e := range report.Broadcasts {
		if f.Outcome == runner.Aborted || e.Envelope.From == f.Party {
			log.Warn("signed broadcast", "party", names[e.Envelope.From], "evidence", e)
		}
	}
}

// progress copies the runner's view into the status.
func (s *Session) progress(p runner.Progress) {
	waiting := make([]uint32, len(p.WaitingFor))
	for i, w := range p.WaitingFor {
		waiting[i] = uint32(w)
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

// Now is when a record is made.
func Now() time.Time { return time.Now().UTC() }
