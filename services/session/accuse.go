package session

import (
	"context"
	"errors"
	"time"

	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/runner"
)

// accuseTime limits the time to make an accusation, which verifies a proof and reads and writes it.
const accuseTime = 5 * time.Minute

// recorder returns a recorder of the messages that an accusation may need, or nil if evidence is
// not wanted.
func (s *Entry) recorder() *evidence.Recorder {
	c := s.registry.Config
	if c.Accuse == nil {
		return nil
	}
	return evidence.NewRecorder(c.EvidenceDir, func(err error) {
		c.Metrics.Count(metrics.EvidenceLost, 1)
		c.Log.Warn("less evidence is kept of this session", "session", s.Spec.GetRef().GetJobId(), "error", err)
	})
}

// accuse passes on evidence of the cheat that ended a session, if others can verify it. The
// session's own context may have ended already.
func (s *Entry) accuse(ctx context.Context, kept *evidence.Recorder, params [32]byte, report runner.Report, err error) {
	c := s.registry.Config
	var f *runner.Failure
	//lodge:check session/accuse/blamed [drop=f.Outcome != runner.Blamed] [run=TestRecord]
	//  [redundant=an accusation needs a *round.Blame, which other outcomes do not have] a party is
	//  accused after a session that blamed nobody
	if kept == nil || !errors.As(err, &f) || f.Outcome != runner.Blamed {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), accuseTime)
	defer cancel()
	found, file, err := kept.Accuse(ctx, evidence.Case{
		Members: evidence.Members{Names: c.Names, Keys: c.Keys, Hash: c.Roster},
		Self:    c.Self, Signer: c.Signer, Spec: s.Spec, Params: params,
		Nonces: report.Nonces, History: report.History, Round: uint32(f.Index), Err: f.Cause, When: Now(), Key: s.proofKey,
	}, c.EvidenceDir)
	log := c.Log.With("session", s.Spec.GetRef().GetJobId(), "party", c.Names[f.Party], "check", f.Check)
	if err != nil {
		log.Warn("the blame cannot be proved to others", "error", err)
		return
	}
	defer file.Close()
	log.Warn("a cheat is proved", "kind", found.Kind)
	//lodge:check session/accuse/handed-over [run=TestProvedCheats] a proved cheat is dropped
	c.Accuse(found, file)
}

// ProvedUnder sets the function that returns the public key under which the session's parties
// prove: the seed of its reference string, and the key's other half.
func (s *Entry) ProvedUnder(key func() (seed, half []byte)) { s.proofKey = key }
