package runner

import (
	"context"
	"errors"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/exchange"
)

// drive runs one chain, whose rounds follow those that were run before.
func drive[R any](ctx context.Context, d *driver, s round.Session, t round.Transition[R]) (result R, err error) {
	d.id = s.ID
	m, err := round.NewMachine(s, t)
	if err != nil {
		return result, err
	}
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
		d.o.Metrics.Round(d.o.Terms.Protocol, d.label, time.Since(begin), compute)
	}
}

// turn sends, collects and steps one round.
func turn[R any](ctx context.Context, d *driver, m *round.Machine[R]) (compute time.Duration, err error) {
	missing := m.Missing()
	d.index, d.label, d.since = d.offset+m.Round(), labelOf(missing, m.Outgoing()), time.Now()
	d.clocks, d.folding = map[round.Party]*clock{}, 0
	most := map[round.Party]int64{}
	for _, w := range missing {
		most[w.From] += w.MaxBytes
	}
	for p, bytes := range most {
		d.clocks[p] = d.o.Limits.start(d.since, bytes, d.ownStep)
	}
	d.queue.add(d.outgoing(m.Outgoing()))
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
	d.ownStep = d.folding + compute
	return compute, err
}

// outgoing binds messages to their place in the session, for signing later.
func (d *driver) outgoing(out []round.Outgoing) []post {
	posts := make([]post, len(out))
	for i, m := range out {
		e := exchange.Envelope{
			Protocol: d.o.Terms.Protocol, Version: uint32(d.o.Terms.Version), Session: d.id,
			Round: uint32(d.offset + m.Round), Name: m.Name, From: d.o.Self, To: m.To,
		}
		posts[i] = post{m.Message, e}
	}
	return posts
}

// collect takes one frame of an awaited peer.
func collect[R any](ctx context.Context, d *driver, m *round.Machine[R]) error {
	timed, cancel := context.WithDeadline(ctx, earliest(d.clocks))
	f, err := d.o.Session.Receive(timed, func(p round.Party) bool { return d.clocks[p] != nil })
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

// settle stops waiting for a peer that owes nothing more in this round.
func (d *driver) settle(p round.Party, missing []round.Want) {
	for _, w := range missing {
		if w.From == p {
			return
		}
	}
	delete(d.clocks, p)
}

// deliver gives a frame to the machine, and checks the envelope with the last one.
func deliver[R any](ctx context.Context, d *driver, m *round.Machine[R], f *exchange.Frame) error {
	blame := func(check, reason string) error {
		return &round.Blame{Party: f.From, Check: check, Reason: reason}
	}
	if int(f.Round) < d.offset {
		return blame(round.CheckDuplicate, "frame of a round that is over")
	}
	w, wanted := m.Want(f.From, f.Name)
	if wanted && int(f.Round) == d.index && w.Broadcast && !f.Broadcast {
		return blame(round.CheckShape, f.Name+" is not signed as the broadcast that it is")
	}
	err := m.Deliver(ctx, round.Incoming{
		Round: int(f.Round) - d.offset, From: f.From, Name: f.Name, Index: f.Index, Last: f.Last(), Payload: f.Data,
	})
	if errors.Is(err, round.ErrEarly) { // its stream is in order, so something is missing for good
		return blame(round.CheckShape, "message of a later round before those of this one")
	}
	if err != nil {
		return err
	}
	if f.Last() {
		digest, _ := m.Received(f.From, f.Name)
		return d.authenticate(f, digest)
	}
	return nil
}

// authenticate checks that the sender has signed what arrived.
func (d *driver) authenticate(f *exchange.Frame, digest round.Digest) error {
	e := exchange.Envelope{
		Protocol: d.o.Terms.Protocol, Version: uint32(d.o.Terms.Version), Session: d.id,
		Round: f.Round, Name: f.Name, From: f.From, To: d.o.Self, Digest: digest,
	}
	if f.Broadcast {
		e.To = round.All
	}
	if string(f.Digest) != string(digest[:]) || !e.Verify(d.o.Keys[f.From], f.Signature) {
		return &round.Blame{Party: f.From, Check: CheckSignature, Reason: "the signature of " + f.Name + " does not verify"}
	}
	if f.Broadcast {
		d.evidence = append(d.evidence, Evidence{e, f.Signature})
	}
	return nil
}
