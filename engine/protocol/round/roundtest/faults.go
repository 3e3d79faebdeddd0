package roundtest

import (
	"context"
	"slices"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Any matches every party; it is the value of round.All.
const Any = round.All

// View shows the messages of the current round before faults.
type View struct {
	frames func(from, to round.Party, name string) [][]byte
}

// Frames returns a copy of the message with this name that from sends to to (or to Any) in this
// round, or nil.
func (v *View) Frames(from, to round.Party, name string) [][]byte { return v.frames(from, to, name) }

// Edit changes the frames of a message, which are copies; nil drops the message. Edits of links run
// for several recipients at once.
type Edit func(v *View, frames [][]byte) [][]byte

type edit struct {
	from, to round.Party
	name     string
	apply    Edit
}

func (e *edit) matches(from, to round.Party, name string) bool {
	return (e.from == from || e.from == Any) && (e.to == to || e.to == Any) && (e.name == name || e.name == "")
}

// Link edits messages in transit from one party to another. The sender's own record, which it
// reports in the echo, is unchanged. An empty name matches every message.
func Link(from, to round.Party, name string, e Edit) Option {
	return func(c *config) {
		c.edits = append(c.edits, edit{from: from, to: to, name: name, apply: e})
		if from != Any {
			c.cheats[from] = true
		}
	}
}

// Rewrite edits messages inside a party: the party lies consistently, to all recipients and in its
// echo. With Rushing the edit sees the messages that other parties send in the same round.
func Rewrite(from round.Party, name string, e Edit) Option {
	return func(c *config) {
		c.rewrites = append(c.rewrites, edit{from: from, to: Any, name: name, apply: e})
		c.cheats[from] = true
	}
}

// Deliver edits how the frames of a message arrive: their order, number, positions and rounds.
func Deliver(from, to round.Party, name string, f func(frames []round.Incoming) []round.Incoming) Option {
	return func(c *config) {
		c.deliveries = append(c.deliveries, delivery{edit{from: from, to: to, name: name}, f})
		if from != Any {
			c.cheats[from] = true
		}
	}
}

type delivery struct {
	edit
	apply func([]round.Incoming) []round.Incoming
}

// Drop loses the message.
func Drop(*View, [][]byte) [][]byte { return nil }

// Flip changes one bit of the message; a negative bit counts from the end.
func Flip(bit int) Edit {
	return func(_ *View, frames [][]byte) [][]byte {
		total := 0
		for _, f := range frames {
			total += 8 * len(f)
		}
		at := bit
		if at < 0 {
			at += total
		}
		for _, f := range frames {
			if at < 8*len(f) {
				f[at/8] ^= 1 << (at % 8)
				return frames
			}
			at -= 8 * len(f)
		}
		panic("roundtest: no such bit")
	}
}

// Truncate takes n bytes from the end of the last frame.
func Truncate(n int) Edit {
	return func(_ *View, frames [][]byte) [][]byte {
		last := &frames[len(frames)-1]
		*last = (*last)[:len(*last)-n]
		return frames
	}
}

// Extend adds n zero bytes to the last frame.
func Extend(n int) Edit {
	return func(_ *View, frames [][]byte) [][]byte {
		last := &frames[len(frames)-1]
		*last = append(*last, make([]byte, n)...)
		return frames
	}
}

// ExtraFrame adds a frame.
func ExtraFrame(b []byte) Edit {
	return func(_ *View, frames [][]byte) [][]byte { return append(frames, b) }
}

// Payload replaces the message.
func Payload(frames ...[]byte) Edit { return func(*View, [][]byte) [][]byte { return frames } }

// CopyOf replaces the message by that of another party with this name in the same round.
func CopyOf(victim round.Party, name string) Edit {
	return func(v *View, _ [][]byte) [][]byte { return v.Frames(victim, Any, name) }
}

// Replay replaces the message by a message recorded in another run.
func Replay(r *Recording, from, to round.Party, name string) Edit {
	return func(*View, [][]byte) [][]byte { return r.Frames(from, to, name) }
}

// Twice delivers the message a second time.
func Twice(frames []round.Incoming) []round.Incoming { return append(frames, frames...) }

// Reversed delivers the frames in reverse order, with their own positions.
func Reversed(frames []round.Incoming) []round.Incoming {
	slices.Reverse(frames)
	return frames
}

// Unending clears the mark of the last frame.
func Unending(frames []round.Incoming) []round.Incoming {
	frames[len(frames)-1].Last = false
	return frames
}

// Renamed delivers the message under another name.
func Renamed(name string) func([]round.Incoming) []round.Incoming {
	return func(frames []round.Incoming) []round.Incoming {
		for i := range frames {
			frames[i].Name = name
		}
		return frames
	}
}

// Shifted delivers the message as one of another round.
func Shifted(by int) func([]round.Incoming) []round.Incoming {
	return func(frames []round.Incoming) []round.Incoming {
		for i := range frames {
			frames[i].Round += by
		}
		return frames
	}
}

// Recording holds the messages of a run.
type Recording struct{ messages []recorded }

type recorded struct {
	round    int
	from, to round.Party
	name     string
	frames   [][]byte
}

// Digest returns a hash of all messages, ordered by round, recipient, sender and the sender's
// order.
func (r *Recording) Digest() round.Digest {
	return round.HashEach("roundtest recording", len(r.messages), func(room []byte, i int) []byte {
		m := r.messages[i]
		h := round.NewHasher(m.name)
		for _, f := range m.frames {
			h.Frame(f)
		}
		d := h.Sum()
		for _, v := range []int{m.round, int(m.from), int(m.to)} {
			room = append(room, round.Uint(uint64(v))...)
		}
		return append(room, d[:]...)
	})
}

// Frames returns the first message with this sender, recipient and name, or nil.
func (r *Recording) Frames(from, to round.Party, name string) [][]byte {
	for _, m := range r.messages {
		if m.from == from && (m.to == to || to == Any) && m.name == name {
			return copied(m.frames)
		}
	}
	return nil
}

// Names lists the names of the messages.
func (r *Recording) Names() map[string]bool {
	names := map[string]bool{}
	for _, m := range r.messages {
		names[m.name] = true
	}
	return names
}

func copied(frames [][]byte) [][]byte {
	out := make([][]byte, len(frames))
	for i, f := range frames {
		out[i] = slices.Clone(f)
	}
	return out
}

// record keeps the messages of this round.
func (d *driver[R]) record() {
	if d.recording == nil {
		return
	}
	for p := range round.Party(d.n) {
		for _, l := range d.links(p) {
			if frames, err := collect(l.frames, l.frame); err == nil {
				d.recording.messages = append(d.recording.messages, recorded{l.round, l.from, p, l.name, frames})
			}
		}
	}
}

func collect(n int, frame func(int) ([]byte, error)) ([][]byte, error) {
	frames := make([][]byte, n)
	for i := range frames {
		f, err := frame(i)
		if err != nil {
			return nil, err
		}
		frames[i] = slices.Clone(f)
	}
	return frames, nil
}

// outgoing implements View.Frames.
func (d *driver[R]) outgoing(from, to round.Party, name string) [][]byte {
	for p := range round.Party(d.n) {
		if p == from || to != Any && p != to {
			continue
		}
		for _, l := range d.links(p) {
			if l.from == from && l.name == name {
				frames, err := collect(l.frames, l.frame)
				if err != nil {
					panic(err)
				}
				return frames
			}
		}
	}
	return nil
}

// edited returns the frames of a message that a fault on its link has changed, or false if no fault
// has.
func (d *driver[R]) edited(to round.Party, l link) ([][]byte, bool) {
	var frames [][]byte
	changed := false
	for _, e := range d.edits {
		if !e.matches(l.from, to, l.name) {
			continue
		}
		if !changed {
			var err error
			if frames, err = collect(l.frames, l.frame); err != nil {
				panic(err)
			}
			changed = true
		}
		if frames == nil {
			return nil, true
		}
		frames = e.apply(d.view, frames)
	}
	return frames, changed
}

// delivered applies the faults of delivery.
func (d *driver[R]) delivered(to round.Party, l link, frames []func() (round.Incoming, error)) []func() (round.Incoming, error) {
	for _, f := range d.deliveries {
		if !f.matches(l.from, to, l.name) || len(frames) == 0 {
			continue
		}
		var list []round.Incoming
		for _, frame := range frames {
			in, err := frame()
			if err != nil {
				panic(err)
			}
			list = append(list, in)
		}
		frames = nil
		for _, in := range f.apply(list) {
			frames = append(frames, func() (round.Incoming, error) { return in, nil })
		}
	}
	return frames
}

// edit returns the change to the messages of p's transitions, or nil.
func (d *driver[R]) edit(p round.Party) func([]round.Message) ([]round.Message, error) {
	mine := slices.DeleteFunc(slices.Clone(d.rewrites), func(e edit) bool { return e.from != p })
	if len(mine) == 0 {
		return nil
	}
	return func(send []round.Message) ([]round.Message, error) {
		var out []round.Message
		for _, msg := range send {
			for _, e := range mine {
				if msg.Body == nil || !e.matches(p, msg.To, msg.Name) {
					continue
				}
				frames, err := collect(msg.Body.Frames(), msg.Body.Frame)
				if err != nil {
					return nil, err
				}
				msg.Body = nil
				if frames = e.apply(d.view, frames); frames != nil {
					msg.Body = round.Frames(len(frames), func(i int) ([]byte, error) { return frames[i], nil })
				}
			}
			if msg.Body != nil {
				out = append(out, msg)
			}
		}
		return out, nil
	}
}

// rewriting returns the chain t with the messages of every transition changed.
func rewriting[R any](t round.Transition[R], change func([]round.Message) ([]round.Message, error)) round.Transition[R] {
	if change == nil || t.Next == nil {
		return t
	}
	send, err := change(t.Send)
	if err != nil {
		return round.Next(round.Local(func(context.Context) (round.Transition[R], error) { return t, err }))
	}
	return round.Next(round.Round[R](rewritten[R]{t.Next, change}), send...)
}

type rewritten[R any] struct {
	inner  round.Round[R]
	change func([]round.Message) ([]round.Message, error)
}

func (r rewritten[R]) Wants() []round.Want { return r.inner.Wants() }

func (r rewritten[R]) Frame(ctx context.Context, from round.Party, name string, index int, last bool, frame []byte) error {
	return r.inner.(round.Streamer).Frame(ctx, from, name, index, last, frame)
}

func (r rewritten[R]) Step(ctx context.Context, in round.Inbox) (round.Transition[R], error) {
	t, err := r.inner.Step(ctx, in)
	if err != nil {
		return t, err
	}
	return rewriting(t, r.change), nil
}
