package runner

import (
	"bytes"
	"context"
	"errors"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// keep records complete signed messages for evidence.
func keep[R any](d *driver, m *round.Machine[R], e exchange.Envelope, signature []byte) {
	if e.To != round.All {
		return
	}
	frames, payload := m.Taken(e.From, e.Name)
	d.o.Recorder.Message(e, signature, frames, payload)
}

// hear receives the rest of a peer's message that is already known to be faulty. It needs the
// signature at the end, without which the fault cannot be proved to others. It stops at the peer's
// deadline, if the message is more than twice as long as expected, or if the session ends for
// another reason.
func hear[R any](ctx context.Context, d *driver, m *round.Machine[R], f *exchange.Frame, fault error) {
	var blame *round.Blame
	w, wanted := m.Want(f.From, f.Name)
	if d.o.Recorder == nil || !wanted || !w.Broadcast || !f.Broadcast || int(f.Round) != d.index || d.clocks[f.From] == nil ||
		!errors.As(fault, &blame) || blame.Party != f.From {
		return
	}
	if blame.Charge == nil {
		blame.Charge = &round.Charge{Name: f.Name, Index: f.Index, Frame: bytes.Clone(f.Data)}
	}
	frames, payload := m.Taken(f.From, f.Name)
	if len(frames) != f.Index && len(frames) != f.Index+1 || f.Count > 2*w.MaxFrames+1 {
		return
	}
	frames = frames[:f.Index] // the machine may not have accepted the last frame
	timed, cancel := context.WithDeadline(ctx, d.clocks[f.From].cap)
	defer cancel()
	size, e := int64(len(payload)), d.envelope(int(f.Round), f.Name, f.From, round.All, m.Transcript())
	for {
		if size += int64(len(f.Data)); size > 2*w.MaxBytes+round.MaxFrame {
			return
		}
		frames = append(frames, round.FrameDigest(f.Data))
		if f.Last() {
			break
		}
		name, index, from := f.Name, f.Index, f.From
		var err error
		f, err = d.receive(timed, func(p round.Party) bool { return p == from })
		if err != nil || f.Name != name || f.Index != index+1 {
			return
		}
	}
	h := round.NewHasher(f.Name)
	for _, frame := range frames {
		h.FrameDigest(frame)
	}
	if e.Digest = h.Sum(); e.Verify(d.o.Keys[f.From], f.Signature) {
		d.o.Recorder.Message(e, bytes.Clone(f.Signature), frames, nil)
	}
}

// keepOwn records this party's broadcasts, if the round records those of the peers.
func keepOwn(d *driver, wants []round.Want, p post) error {
	var like round.Keep
	for _, w := range wants {
		if w.Broadcast && w.Name == p.message.Name {
			like = w.Keep
		}
	}
	return d.o.Recorder.Own(p.envelope, p.signature, like, p.message.Body)
}
