// Package runner drives any protocol over the network. Its loop sends the messages of a round,
// collects the expected messages, checks every message's envelope, runs the step, and records
// metrics. Protocols need no loops, timeouts, retries or metrics.
//
// A session fails as a whole: any error, at a peer or at this party, ends it with a *Failure,
// notifies the peers, and leaves no state behind. The runner does not retry; another attempt is
// another session with fresh randomness.
package runner

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/traces"
	"github.com/lodge-mpc/lodge/services/session/evidence"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// Options of one session. All but Metrics, Progress and Log are required.
type Options struct {
	Terms   round.Terms // the common inputs of all parties; Protocol labels metrics
	Session *exchange.Streams
	Self    round.Party
	Names   []string            // of all parties, by index
	Places  []round.Party       // of the parties in the roster, by index; nil: their indices
	Signer  ed25519.PrivateKey  // this party's
	Keys    []ed25519.PublicKey // of all parties, by index
	Random  io.Reader           // for the prelude's nonce; cryptographic
	Limits  Limits
	Metrics *metrics.Metrics
	// Progress is called when a round begins, when a message is complete, and
	// now and then in between; never concurrently.
	Progress func(Progress)
	Log      *slog.Logger
	Trace    *traces.SessionSpan // may be nil
	// Cheat, if set, changes the session before its first message. Only tests set it. It is the
	// only way in which tests change what a party does in a session; see round.Expose.
	Cheat    func(s *round.Session)
	Recorder *evidence.Recorder // may be nil
}

// Progress of a session in its present round.
type Progress struct {
	Round      string
	Index      int
	WaitingFor []round.Party // empty while this party computes
	Since      time.Time     // begin of the round
	// Bytes of the session so far, and of the round: received, and at most to come.
	Sent, Received            int64
	RoundReceived, RoundLimit int64
}

// Report has the measurements and the transcript of a session.
type Report struct {
	Outcome        Outcome
	SessionID      round.Digest
	Transcript     round.Digest // over all broadcasts; equal at honest parties
	Rounds         int
	Sent, Received int64
	Took           time.Duration
	Broadcasts     []Broadcast // with the signatures of all parties, this one included
	// Nonces determine the session's id. History is the transcript of the session that ran before
	// in the chain.
	Nonces  []round.Digest
	History []round.Agreement
}

// Broadcast is a party's signature over one of its broadcasts.
type Broadcast struct {
	Envelope  exchange.Envelope
	Signature []byte
}

// LogValue contains all that a signature covers, so that anyone with the log and the roster can
// verify it.
func (e Broadcast) LogValue() slog.Value {
	v := e.Envelope
	return slog.GroupValue(
		slog.String("protocol", v.Protocol), slog.Uint64("version", uint64(v.Version)), slog.String("session", hex.EncodeToString(v.Session[:])),
		slog.Uint64("round", uint64(v.Round)), slog.String("name", v.Name), slog.Int("from", int(v.From)),
		slog.String("digest", hex.EncodeToString(v.Digest[:])), slog.String("signature", hex.EncodeToString(e.Signature)))
}

// Start returns a protocol's chain after the session has its id.
type Start[R any] func(round.Session) (round.Transition[R], error)

// Run drives a session to its result: the prelude that makes the session's id,
// then the protocol. It ends the exchange's session in any case. A context that
// is cancelled or past its deadline ends it. The error is a *Failure.
func Run[R any](ctx context.Context, o Options, start Start[R]) (R, Report, error) {
	began := time.Now()
	ended := o.Metrics.SessionStarted(o.Terms.Protocol)
	result, report, failure := run(ctx, o, start)
	report.Took = time.Since(began)
	report.Sent, report.Received = o.Session.Traffic()
	report.Outcome = OK
	if failure != nil {
		report.Outcome = failure.Outcome
		ended(string(failure.Outcome))
		o.count(failure)
		return result, report, failure
	}
	ended(string(OK))
	return result, report, nil
}

func run[R any](ctx context.Context, o Options, start Start[R]) (result R, report Report, failure *Failure) {
	d, err := newDriver(o)
	if err != nil {
		o.Session.Abort(&exchange.AbortedError{Outcome: string(Internal)}, func(*exchange.AbortedError) []byte { return nil })
		return result, report, &Failure{Outcome: Internal, Reason: "this party failed; its log says more", Cause: err}
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	sending := make(chan struct{})
	go func() {
		defer close(sending)
		if err := d.sendAll(inner); err != nil {
			cancel(err)
		}
	}()
	stopWatch := make(chan struct{})
	defer close(stopWatch)
	go func() { // wakes a step that computes while the session breaks
		select {
		case <-o.Session.Broken():
			cancel(o.Session.Failed())
		case <-stopWatch:
		}
	}()
	result, err = chain(inner, d, start)
	report.SessionID, report.Transcript, report.Rounds, report.Broadcasts = d.id, d.transcript, max(d.index, d.offset), d.signed
	report.Nonces, report.History = d.nonces, d.history
	d.queue.close()
	if err == nil {
		err = d.finish(inner, sending)
	} else if d.session.Omits(round.Failures) {
		_ = d.finish(inner, sending) // it sends its remaining messages even if it has blamed a peer
	}
	if err == nil {
		return result, report, nil
	}
	if errors.Is(err, context.Canceled) && ctx.Err() == nil {
		err = context.Cause(inner) // the cause of the cancellation
	}
	failure = d.classify(ctx, err)
	if failure.Outcome == Internal {
		d.log.Error("session failed here", "round", failure.Round, "error", err)
	}
	cancel(err)
	o.Session.Abort(d.farewell(failure), func(a *exchange.AbortedError) []byte { return d.farewellOf(a, o.Self).Sign(o.Signer) })
	<-sending
	var none R
	return none, report, failure
}

// chain runs the prelude and the protocol.
func chain[R any](ctx context.Context, d *driver, start Start[R]) (result R, err error) {
	s := round.Session{ID: d.o.Terms.ID(), Self: d.o.Self, Parties: len(d.o.Names)}
	s.Signatures = signatures{d, s.ID, 0}
	if d.o.Cheat != nil {
		d.o.Cheat(&s)
	}
	d.session = s
	t, err := round.Prelude(s, d.o.Random)
	if err != nil {
		return result, err
	}
	s, err = drive(ctx, d, s, t)
	if err != nil {
		return result, err
	}
	d.nonces, d.history = s.Nonces, nil
	s.Secrets, s.Signatures = new(round.Secrets), signatures{d, s.ID, d.offset}
	defer s.Secrets.Wipe()
	p, err := start(s)
	if err != nil {
		return result, err
	}
	return drive(ctx, d, s, p)
}

// farewell returns the statement for the peers. It does not describe this party's own faults.
func (d *driver) farewell(f *Failure) *exchange.AbortedError {
	a := &exchange.AbortedError{Outcome: string(f.Outcome), Round: f.Round, Check: f.Check, Reason: f.Reason}
	if f.Outcome == Blamed {
		a.Blamed = &f.Party
	}
	for _, w := range f.Words { // all parties must learn of a check that failed there
		if w.Outcome == string(Aborted) {
			a.Relayed = append(a.Relayed, &exchange.AbortedError{
				Peer: w.From, Outcome: w.Outcome, Round: w.Round, Check: w.Check, Reason: w.Reason, Blamed: w.Blamed, Signature: w.Signature,
			})
		}
	}
	return a
}

// finish waits until the peers have received everything. The session also ends here if a peer
// reports a failure meanwhile, or receives nothing while messages are still to be sent. If only
// acknowledgements are missing, the result stands.
func (d *driver) finish(ctx context.Context, sending <-chan struct{}) error {
	patience := d.o.Limits.Idle + d.o.Limits.Compute
	if err := d.drain(ctx, sending, patience); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := d.o.Session.Finish(ctx); err != nil {
		if failed := d.o.Session.Failed(); failed != nil {
			return failed
		}
		d.log.Warn("a peer did not take the last messages", "error", err)
	}
	return nil
}

// drain waits for the last messages to be sent. Each peer that lacks frames has patience to
// acknowledge the first bytes, and must then keep the lowest rate.
func (d *driver) drain(ctx context.Context, sending <-chan struct{}, patience time.Duration) error {
	type debt struct {
		taken int64
		due   time.Time
	}
	debts := map[round.Party]debt{}
	tick := time.NewTicker(max(patience/20, time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-sending:
			return context.Cause(ctx)
		case <-ctx.Done():
			return context.Cause(ctx)
		case now := <-tick.C:
			f := &Failure{Outcome: Timeout, Round: d.label, Index: d.index, Check: exchange.CheckStalled}
			var reasons []string
			for p := range round.Party(len(d.o.Names)) {
				taken, owing := d.o.Session.Taken(p)
				last, waiting := debts[p]
				switch {
				case !owing:
					delete(debts, p)
				case !waiting:
					debts[p] = debt{taken, now.Add(patience)}
				case taken > last.taken:
					due := last.due.Add(d.o.Limits.worth(taken - last.taken))
					if latest := now.Add(patience); due.After(latest) {
						due = latest
					}
					debts[p] = debt{taken, due}
				case now.After(last.due):
					f.Suspects = append(f.Suspects, p)
					reasons = append(reasons, d.name(p)+" does not take the last messages")
				}
			}
			if len(reasons) > 0 {
				f.Reason = strings.Join(reasons, "; ")
				return f
			}
		}
	}
}

// driver is the state of one session that does not depend on its result.
type driver struct {
	o       Options
	session round.Session // as it began
	log     *slog.Logger
	queue   *sendQueue
	signed  []Broadcast // of all parties

	nonces  []round.Digest    // once the session has its id
	history []round.Agreement // of the present chain, when it has ended

	id         round.Digest // signed into envelopes
	offset     int          // of the present chain's rounds in the session
	index      int          // of the present round in the session
	label      string       // of the present round
	since      time.Time    // its begin
	clocks     map[round.Party]*clock
	ownStep    time.Duration // duration of this party's last step, and of folding the pieces of its messages
	folding    time.Duration // time spent on this round's pieces so far
	transcript round.Digest
	told       time.Time // of the last Progress
}

func newDriver(o Options) (*driver, error) {
	switch {
	case len(o.Names) != len(o.Keys) || len(o.Names) < 2 || int(o.Self) >= len(o.Names):
		return nil, errors.New("runner: names and keys of all parties are needed")
	case o.Limits.Idle <= 0 || o.Limits.MinRate <= 0:
		return nil, errors.New("runner: limits are needed")
	case len(o.Signer) != ed25519.PrivateKeySize || o.Random == nil:
		return nil, errors.New("runner: a signing key and randomness are needed")
	}
	log := o.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &driver{o: o, log: log, queue: newSendQueue(), id: o.Terms.ID()}, nil
}

func (d *driver) name(p round.Party) string {
	if p < 0 || int(p) >= len(d.o.Names) {
		return fmt.Sprintf("party %d", p)
	}
	at := p
	if d.o.Places != nil {
		at = d.o.Places[p]
	}
	return fmt.Sprintf("party %d (%s)", at, d.o.Names[p])
}

// tell reports progress: always when forced, otherwise four times a second.
func (d *driver) tell(forced bool) {
	if d.o.Progress == nil || !forced && time.Since(d.told) < 250*time.Millisecond {
		return
	}
	d.told = time.Now()
	p := Progress{Round: d.label, Index: d.index, WaitingFor: d.awaited(), Since: d.since}
	p.Sent, p.Received = d.o.Session.Traffic()
	for _, c := range d.clocks {
		p.RoundReceived += c.bytes
		p.RoundLimit += c.mostMade
	}
	d.o.Progress(p)
}

// labelOf names a round by the first message that it wants, or else sends.
// Numbers that are a segment of the name do not go into labels.
func labelOf(wants []round.Want, out []round.Outgoing) string {
	name := "local"
	if len(wants) > 0 {
		name = wants[0].Name
	} else if len(out) > 0 {
		name = out[0].Name
	}
	var kept []string
	for _, segment := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '.' || r == '-' }) {
		if strings.Trim(segment, "0123456789") != "" {
			kept = append(kept, segment)
		}
	}
	if len(kept) == 0 {
		return "local"
	}
	return strings.Join(kept, "/")
}
