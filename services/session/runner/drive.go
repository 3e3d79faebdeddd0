package runner

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// drive runs one chain, whose rounds follow those that were run before.
func drive[R any](ctx context.Context, d *driver, s round.Session, t round.Transition[R]) (result R, err error) {
	d.id = s.ID
	m, err := round.NewMachine(s, t)
	if err != nil {
		return result, err
	}
	defer func() { d.history = m.History() }()
	for {
		if r, ok := m.Result(); ok {
			d.offset += m.Round()
			d.transcript = m.Transcript()
			return r, nil
		}
		begin := time.Now()
		compute, err := turn(ctx, d, m)
		if err != nil {
			return result, err
		}
		d.o.Metrics.Observe(metrics.RoundDuration, time.Since(begin), d.o.Terms.Protocol, d.label)
		d.o.Metrics.Observe(metrics.RoundCompute, compute, d.o.Terms.Protocol, d.label)
		d.o.Trace.Round(d.label, d.index, begin, compute)
		d.log.Debug("round", "session", hex.EncodeToString(s.ID[:]), "round", d.label, "index", d.index,
			"seconds", time.Since(begin).Seconds(), "own_seconds", compute.Seconds())
	}
}

// turn sends, collects and steps one round.
func turn[R any](ctx context.Context, d *driver, m *round.Machine[R]) (compute time.Duration, err error) {
	missing := m.Missing()
	d.index, d.label, d.since = d.offset+m.Round(), labelOf(missing, m.Outgoing()), time.Now()
	d.clocks, d.folding = map[round.Party]*clock{}, 0
	proofs := proofsAmong(missing)
	most := map[round.Party]int64{}
	for _, w := range missing {
		most[w.From] += w.MaxBytes
	}
	for p, bytes := range most {
		d.clocks[p] = d.o.Limits.start(d.since, bytes, d.ownStep)
	}
	if !m.Echoing() { // the inputs of the last round may be needed until the echo has been compared
		d.o.Recorder.Stepped(uint32(d.index))
	}
	posts := d.outgoing(m.Outgoing(), m.Transcript())
	for _, p := range posts {
		if p.message.To == round.All {
			if err := keepOwn(d, missing, p); err != nil {
				return 0, err
			}
		}
	}
	d.queue.add(posts)
	d.tell(true)
	for len(d.clocks) > 0 {
		if err := collect(ctx, d, m); err != nil {
			return 0, err
		}
	}
	d.tell(true)
	start := time.Now()
	err = m.Step(ctx)
	compute = time.Since(start)
	if err == nil {
		for proof, n := range proofs {
			d.o.Metrics.Proofs(proof, true, n)
		}
	}
	d.ownStep = d.folding + compute
	return compute, err
}

// outgoing binds messages to their place in the session. Broadcasts are signed, others later.
func (d *driver) outgoing(out []round.Outgoing, transcript round.Digest) []post {
	posts := make([]post, len(out))
	for i, m := range out {
		posts[i] = post{label: d.label, message: m.Message, envelope: d.envelope(d.offset+m.Round, m.Name, d.o.Self, m.To, transcript)}
		if b, ok := m.Body.(round.Hashed); ok && m.To == round.All {
			posts[i].envelope.Digest = b.Digest()
			posts[i].signature = posts[i].envelope.Sign(d.o.Signer)
			d.signed = append(d.signed, Broadcast{posts[i].envelope, posts[i].signature})
		}
	}
	for i := range posts {
		// Tests sign a second version of a message: the machine does not know its envelope.
		round.Expose(d.session, "envelope", &posts[i].envelope)
	}
	return posts
}

// envelope returns the content of a message's signature except for the digest.
func (d *driver) envelope(index int, name string, from, to round.Party, transcript round.Digest) exchange.Envelope {
	return exchange.Envelope{
		Protocol: d.o.Terms.Protocol, Version: uint32(d.o.Terms.Version), Session: d.id,
		Round: uint32(index), Name: name, From: from, To: to, Transcript: transcript,
	}
}

// signatures makes and verifies the signatures of one chain's broadcasts, for the echo check.
type signatures struct {
	d       *driver
	session round.Digest
	offset  int // of the chain's rounds in the session
}

func (s signatures) Size() int { return ed25519.SignatureSize }

func (s signatures) envelope(b round.Signed) exchange.Envelope {
	e := s.d.envelope(s.offset+b.Round, b.Name, b.From, round.All, b.Transcript)
	e.Session, e.Digest = s.session, b.Digest
	return e
}

func (s signatures) Sign(b round.Signed) []byte { return s.envelope(b).Sign(s.d.o.Signer) }

func (s signatures) Verify(b round.Signed, signature []byte) bool {
	return s.envelope(b).Verify(s.d.o.Keys[b.From], signature)
}

// collect receives one frame of an awaited peer.
func collect[R any](ctx context.Context, d *driver, m *round.Machine[R]) error {
	timed, cancel := context.WithDeadline(ctx, earliest(d.clocks))
	f, err := d.receive(timed, func(p round.Party) bool { return d.clocks[p] != nil })
	cancel()
	if err != nil {
		if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			return d.late(time.Now())
		}
		return err
	}
	arrived := time.Now()
	if err := deliver(ctx, d, m, f); err != nil {
		return err
	}
	now := time.Now()
	d.folding += now.Sub(arrived)
	for _, c := range d.clocks {
		c.pause(now.Sub(arrived))
	}
	d.clocks[f.From].progress(d.o.Limits, now, len(f.Data))
	if f.Last() {
		d.settle(f.From, m.Missing())
	}
	d.tell(f.Last())
	return nil
}

// receive receives a frame of a peer, and counts it.
func (d *driver) receive(ctx context.Context, wanted func(round.Party) bool) (*exchange.Frame, error) {
	f, err := d.o.Session.Receive(ctx, wanted)
	if err == nil {
		d.o.Metrics.Count(metrics.PeerBytes, f.Size(), d.o.Terms.Protocol, d.label, d.o.Names[f.From], "received")
	}
	return f, err
}

// settle stops waiting for a peer that owes nothing more in this round.
func (d *driver) settle(p round.Party, missing []round.Want) {
	for _, w := range missing {
		if w.From == p {
			return
		}
	}
	delete(d.clocks, p)
	d.o.Trace.Heard(d.o.Names[p])
	d.log.Debug("heard", "session", hex.EncodeToString(d.id[:]), "round", d.label, "peer", d.o.Names[p], "seconds", time.Since(d.since).Seconds())
}

// deliver passes a frame to the machine, and verifies the envelope with the last frame.
func deliver[R any](ctx context.Context, d *driver, m *round.Machine[R], f *exchange.Frame) error {
	blame := func(check, reason string) error {
		return &round.Blame{Party: f.From, Check: check, Reason: reason}
	}
	//lodge:check runner/over [run=TestCheat|TestOther] [redundant=the machine rejects frames of
	//  finished rounds too] a frame of a finished round changes the state
	if int(f.Round) < d.offset {
		return blame(round.CheckDuplicate, "frame of a round that is over")
	}
	w, wanted := m.Want(f.From, f.Name)
	//lodge:check runner/broadcast [run=TestMessagesOut] a broadcast need not be signed as a
	//  broadcast
	if wanted && int(f.Round) == d.index && w.Broadcast && !f.Broadcast {
		return blame(round.CheckShape, f.Name+" is not signed as the broadcast that it is")
	}
	err := m.Deliver(ctx, round.Incoming{
		Round: int(f.Round) - d.offset, From: f.From, Name: f.Name, Index: f.Index, Last: f.Last(), Payload: f.Data,
		Signature: f.Signature,
	})
	if err != nil {
		hear(ctx, d, m, f, err)
	}
	//lodge:check runner/early [run=TestMessagesOut] a missing message goes unnoticed when later
	//  ones arrive
	if errors.Is(err, round.ErrEarly) { // its stream is in order, so the missing message will not come
		return blame(round.CheckShape, "message of a later round before those of this one")
	}
	if err != nil {
		return err
	}
	d.o.Recorder.Frame(f.Round, w, f.Index, f.Data)
	if !f.Last() {
		return nil
	}
	digest, _ := m.Received(f.From, f.Name)
	e, err := d.authenticate(f, digest, m.Transcript())
	if err == nil {
		keep(d, m, e, f.Signature)
	}
	return err
}

// authenticate checks that the sender has signed what arrived.
func (d *driver) authenticate(f *exchange.Frame, digest, transcript round.Digest) (exchange.Envelope, error) {
	to := d.o.Self
	if f.Broadcast {
		to = round.All
	}
	e := d.envelope(int(f.Round), f.Name, f.From, to, transcript)
	e.Digest = digest
	//lodge:check runner/signature [swap=string(f.Digest) != string(digest[:]) ||
	//  !e.Verify(d.o.Keys[f.From], f.Signature)=>string(f.Digest) != string(digest[:]) &&
	//  e.Verify(d.o.Keys[f.From], f.Signature)] [run=TestWrongSigningKey|TestCheat] a message
	//  without its sender's signature is accepted
	//lodge:check runner/signature-digest [drop=string(f.Digest) != string(digest[:])]
	//  [run=TestWrongSigningKey|TestCheat] [redundant=the signature is verified over the digest of
	//  the received data] a signature for another message is accepted
	if string(f.Digest) != string(digest[:]) || !e.Verify(d.o.Keys[f.From], f.Signature) {
		return e, &round.Blame{Party: f.From, Check: CheckSignature, Reason: "the signature of " + f.Name + " does not verify"}
	}
	if f.Broadcast {
		d.signed = append(d.signed, Broadcast{e, f.Signature})
	}
	return e, nil
}
