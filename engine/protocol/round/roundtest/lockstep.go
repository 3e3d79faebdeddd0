// Package roundtest runs all parties of a protocol in one process, in lockstep and over bytes:
// every message is encoded, passed frame by frame through scripted faults, and decoded by its
// recipients.
package roundtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/lodge-mpc/lodge/engine/protocol/internal/byzantine"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Stalled is the error of a party that waits for messages that do not come.
type Stalled struct{ Missing []round.Want }

func (s *Stalled) Error() string {
	return fmt.Sprintf("roundtest: party %d never sent %s", s.Missing[0].From, s.Missing[0].Name)
}

// ErrSkew is the error if honest parties are in different rounds, because their chains differ in
// shape.
var ErrSkew = errors.New("roundtest: parties are in different rounds")

// Outcome is the result of a run for each party.
type Outcome[R any] struct {
	Results     []R
	Errors      []error // nil where there is a result
	Sent        []int64 // bytes of payload to all recipients, by sender
	Rounds      int     // started rounds, including those of the echo check
	Transcripts []round.Digest
	Sessions    []round.Session
	Recording   *Recording // with the option Record
	cheats      map[round.Party]bool
}

// Option changes a run.
type Option func(*config)

type config struct {
	ctx        context.Context
	id         round.Digest
	serial     bool
	hooks      map[round.Party]byzantine.Hooks
	cheats     map[round.Party]bool
	rushing    round.Party // round.All when nobody is
	view       *View
	edits      []edit
	rewrites   []edit
	deliveries []delivery
	recording  *Recording
}

// Context runs the parties under ctx.
func Context(ctx context.Context) Option { return func(c *config) { c.ctx = ctx } }

// ID sets the session's ID; without it runs share a fixed one.
func ID(id round.Digest) Option { return func(c *config) { c.id = id } }

// Serial steps one party after another, for runs that would not fit in memory together.
func Serial() Option { return func(c *config) { c.serial = true } }

// Cheat sets the hooks of party p, which OK and Blamed then do not count as honest.
func Cheat(p round.Party, h byzantine.Hooks) Option {
	return func(c *config) { c.hooks[p], c.cheats[p] = h, true }
}

// Watch sets the hooks of party p, which stays honest. A test uses it to read values, or to skip a
// check and show the attack that the check prevents.
func Watch(p round.Party, h byzantine.Hooks) Option { return func(c *config) { c.hooks[p] = h } }

// Rushing makes p step after all other parties in every round. Through v, its hooks and rewrites
// see the messages that the others are about to send.
func Rushing(p round.Party, v *View) Option {
	return func(c *config) { c.rushing, c.view, c.cheats[p] = p, v, true }
}

// Record keeps all messages in the outcome.
func Record() Option { return func(c *config) { c.recording = &Recording{} } }

// Lockstep runs n parties. start gets each party's session, with its hooks.
func Lockstep[R any](n int, start func(s round.Session) (round.Transition[R], error), options ...Option) *Outcome[R] {
	c := &config{
		ctx:     context.Background(),
		id:      round.Hash("roundtest session"),
		hooks:   map[round.Party]byzantine.Hooks{},
		cheats:  map[round.Party]bool{},
		rushing: round.All,
		view:    &View{},
	}
	for _, o := range options {
		o(c)
	}
	d := &driver[R]{config: c, n: n, start: start, Outcome: &Outcome[R]{
		Results:     make([]R, n),
		Errors:      make([]error, n),
		Sent:        make([]int64, n),
		Transcripts: make([]round.Digest, n),
		Sessions:    make([]round.Session, n),
		Recording:   c.recording,
		cheats:      c.cheats,
	}}
	d.run()
	return d.Outcome
}

type driver[R any] struct {
	*config
	*Outcome[R]
	n        int
	start    func(s round.Session) (round.Transition[R], error)
	machines []*round.Machine[R] // nil where the party has failed or is done
	mu       sync.Mutex
}

func (d *driver[R]) run() {
	d.machines = make([]*round.Machine[R], d.n)
	d.view.frames = d.outgoing
	d.each(func(p round.Party) {
		s := round.Session{ID: d.id, Self: p, Parties: d.n, Hooks: d.hooks[p], Secrets: new(round.Secrets)}
		d.Sessions[p] = s
		t, err := d.start(s)
		if err == nil {
			d.machines[p], err = round.NewMachine(s, rewriting(t, d.edit(p)))
		}
		d.settle(p, err)
	})
	for d.inStep() {
		d.Rounds++
		d.record()
		d.each(d.receive)
		d.each(d.step)
	}
	for _, s := range d.Sessions {
		s.Secrets.Wipe()
	}
}

func (d *driver[R]) step(p round.Party) {
	switch m := d.machines[p]; {
	case m == nil:
	case d.Errors[p] != nil: // while it received
		d.settle(p, d.Errors[p])
	case m.Ready():
		d.settle(p, m.Step(d.ctx))
	default:
		d.settle(p, &Stalled{m.Missing()})
	}
}

// each runs f for all parties, the rushing one last.
func (d *driver[R]) each(f func(p round.Party)) {
	var wg sync.WaitGroup
	for p := range round.Party(d.n) {
		switch {
		case p == d.rushing:
		case d.serial:
			f(p)
		default:
			wg.Go(func() { f(p) })
		}
	}
	wg.Wait()
	if d.rushing != round.All {
		f(d.rushing)
	}
}

// settle records the result of a party's step.
func (d *driver[R]) settle(p round.Party, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	m := d.machines[p]
	if m != nil {
		d.Transcripts[p] = m.Transcript()
	}
	if err != nil {
		d.Errors[p], d.machines[p] = err, nil
	} else if r, ok := m.Result(); ok {
		d.Results[p], d.machines[p] = r, nil
	}
}

func (d *driver[R]) live() (n int) {
	for _, m := range d.machines {
		if m != nil {
			n++
		}
	}
	return n
}

// inStep reports whether any party is still running, and fails parties that are in another round
// than the rest. It does not wait for a cheating party that left the protocol because of a rewrite
// or fault.
func (d *driver[R]) inStep() bool {
	rounds := map[int]int{}
	for p, m := range d.machines {
		if m != nil && !d.config.cheats[round.Party(p)] {
			rounds[m.Round()]++
		}
	}
	if len(rounds) > 1 {
		for p, m := range d.machines {
			if m != nil {
				d.settle(round.Party(p), ErrSkew)
			}
		}
	}
	return d.live() > 0
}

// link is one message on its way to one recipient.
type link struct {
	from   round.Party
	name   string
	round  int
	frames int
	frame  func(i int) ([]byte, error)
}

// links returns the messages to p in this round, without faults.
func (d *driver[R]) links(p round.Party) []link {
	var links []link
	for from, m := range d.machines {
		if m == nil || round.Party(from) == p {
			continue
		}
		for _, o := range m.Outgoing() {
			if o.To == round.All || o.To == p {
				links = append(links, link{round.Party(from), o.Name, o.Round, o.Body.Frames(), o.Body.Frame})
			}
		}
	}
	return links
}

// receive delivers all messages to p in this round: the first frame of every sender, then the
// second, and so on through the sender's messages, each in a buffer that is overwritten afterwards.
func (d *driver[R]) receive(p round.Party) {
	m := d.machines[p]
	if m == nil {
		return
	}
	lanes := make([][]func() (round.Incoming, error), d.n)
	for _, l := range d.links(p) {
		lanes[l.from] = append(lanes[l.from], d.lane(p, l)...)
	}
	var buffer []byte
	for i := 0; len(lanes) > 0; i++ {
		lanes = slices.DeleteFunc(lanes, func(l []func() (round.Incoming, error)) bool { return i >= len(l) })
		for _, lane := range lanes {
			in, err := lane[i]()
			if err != nil {
				d.settleSender(p, in.From, err)
				return
			}
			buffer = append(buffer[:0], in.Payload...)
			in.Payload = buffer
			err = m.Deliver(d.ctx, in)
			for j := range buffer {
				buffer[j] = 0xA5
			}
			if err != nil && !errors.Is(err, round.ErrEarly) {
				d.fail(p, err)
				return
			}
		}
	}
}

// fail records the error of p without removing it from the round, because others still receive from
// it.
func (d *driver[R]) fail(p round.Party, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Errors[p] = err
}

// settleSender records that a sender could not make its own frame.
func (d *driver[R]) settleSender(p, from round.Party, err error) {
	d.fail(p, fmt.Errorf("roundtest: party %d cannot make its frame: %w", from, err))
}

// lane returns a message as a list of functions that make its frames, after the faults on this
// link.
func (d *driver[R]) lane(p round.Party, l link) []func() (round.Incoming, error) {
	var frames []func() (round.Incoming, error)
	plain := func(i, n int, payload func() ([]byte, error)) func() (round.Incoming, error) {
		return func() (round.Incoming, error) {
			b, err := payload()
			d.count(l.from, len(b))
			return round.Incoming{Round: l.round, From: l.from, Name: l.name, Index: i, Last: i == n-1, Payload: b}, err
		}
	}
	changed, ok := d.edited(p, l)
	if !ok {
		for i := range l.frames {
			frames = append(frames, plain(i, l.frames, func() ([]byte, error) { return l.frame(i) }))
		}
	}
	for i := range changed {
		frames = append(frames, plain(i, len(changed), func() ([]byte, error) { return changed[i], nil }))
	}
	return d.delivered(p, l, frames)
}

func (d *driver[R]) count(from round.Party, bytes int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.Sent[from] += int64(bytes)
}
