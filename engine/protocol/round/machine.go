package round

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//lodge:tests faults Faults|TestCopied|TestRushing|TestEquivocation|TestFalseEcho|TestFrames|TestEarly|TestBytesFraming|TestNonsense|TestStreamed|FuzzDeliver

// ErrEarly is returned by Deliver for a frame of a later round. The driver delivers the frame again
// in that round.
var ErrEarly = errors.New("round: frame of a later round")

// ErrDead is returned by a machine whose chain has already failed.
var ErrDead = errors.New("round: session is dead")

// Machine runs one party's chain for a driver. The driver sends [Machine.Outgoing], delivers frames
// ([Machine.Deliver]) until [Machine.Ready] and calls [Machine.Step], and repeats this until
// [Machine.Result] is available. If a round has received broadcasts and
// there are at least three parties, the machine inserts a round for the echo check before the
// protocol's Step. A machine is not safe for concurrent use, but the driver may send the bodies of
// Outgoing concurrently.
type Machine[R any] struct {
	session    Session
	index      int
	next       Round[R]
	streamer   Streamer
	result     *R
	dead       bool
	out        []Outgoing
	wants      map[key]Want
	partial    map[key]*partial
	inbox      Inbox
	broadcasts broadcasts
	transcript Transcript
	history    []Agreement
	// waiting is the inbox of the protocol's round during the echo round.
	waiting *Inbox
}

// Outgoing is a message to send in the current round.
type Outgoing struct {
	Round int
	Message
}

// Incoming is one frame from an authenticated peer.
type Incoming struct {
	Round   int
	From    Party
	Name    string
	Index   int
	Last    bool
	Payload []byte
	// Signature is the sender's signature of a broadcast. It comes with the last frame if the
	// driver has Signatures. The driver verifies it before Step.
	Signature []byte
}

// partial is a message that still lacks frames.
type partial struct {
	hasher  *Hasher
	frames  int
	bytes   int64
	payload []byte
}

// NewMachine starts the chain t of a party. The transcript begins with the session's ID. Before the
// messages of a transition are hashed or signed, each passes the hook of its name, and all of them
// pass the hook "messages" (*[]Message).
func NewMachine[R any](s Session, t Transition[R]) (*Machine[R], error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	m := &Machine[R]{
		session:    s,
		transcript: NewTranscript(s.ID, s.Parties),
	}
	if err := m.enter(t); err != nil {
		return nil, err
	}
	return m, nil
}

// Round returns the number of the current round, from 0. Echo rounds count. Messages that belong
// together have the same round number at all parties.
func (m *Machine[R]) Round() int { return m.index }

// Outgoing returns the messages to send in the current round. It is valid until Step.
func (m *Machine[R]) Outgoing() []Outgoing { return m.out }

// Result returns the chain's result and whether the chain has ended.
func (m *Machine[R]) Result() (R, bool) {
	if m.result == nil {
		var none R
		return none, false
	}
	return *m.result, true
}

// Echoing reports whether the current round is an echo round, which compares the broadcasts of the
// previous round.
func (m *Machine[R]) Echoing() bool { return m.waiting != nil }

// Transcript returns the hash over all broadcasts so far. It is equal at all honest parties in the
// same round.
func (m *Machine[R]) Transcript() Digest { return Digest(m.transcript) }

// History returns the agreements that the transcript includes, in order. The caller must not change
// it.
func (m *Machine[R]) History() []Agreement { return m.history }

// echo returns the echo check of the protocol's current round.
func (m *Machine[R]) echo() echo {
	e := echo{session: m.session, broadcasts: m.broadcasts, round: m.index, transcript: m.transcript}
	if m.waiting != nil {
		e.round-- // the current round is the echo round
	}
	return e
}

// Missing lists the messages that the current round still waits for, by party and name.
func (m *Machine[R]) Missing() []Want {
	var missing []Want
	for k, w := range m.wants {
		if _, ok := m.inbox.received[k]; !ok {
			missing = append(missing, w)
		}
	}
	slices.SortFunc(missing, func(a, b Want) int {
		if a.From != b.From {
			return int(a.From - b.From)
		}
		return strings.Compare(a.Name, b.Name)
	})
	return missing
}

// Want returns the want of the current round for this sender and name.
func (m *Machine[R]) Want(from Party, name string) (Want, bool) {
	w, ok := m.wants[key{from, name}]
	return w, ok
}

// Received returns the digest of a complete message of the current round. The driver verifies the
// sender's signature with it.
func (m *Machine[R]) Received(from Party, name string) (Digest, bool) {
	r, ok := m.inbox.received[key{from, name}]
	return r.digest, ok
}

// Taken returns the received part of a message of the current round, which may be incomplete or
// invalid: the digests of its frames, and their bytes unless they are streamed.
func (m *Machine[R]) Taken(from Party, name string) (frames []Digest, payload []byte) {
	k := key{from, name}
	if r, ok := m.inbox.received[k]; ok {
		return r.frames, r.payload
	}
	if p := m.partial[k]; p != nil {
		return p.hasher.Digests(), p.payload
	}
	return nil, nil
}

// Ready reports whether all wanted messages have arrived, so that Step may run.
func (m *Machine[R]) Ready() bool {
	return !m.dead && m.result == nil && len(m.inbox.received) == len(m.wants)
}

// Deliver accepts the next frame of a message. It copies the payload unless the want is streamed. A
// peer's fault is a *Blame, after which the machine is dead. [ErrEarly] leaves the machine
// unchanged.
func (m *Machine[R]) Deliver(ctx context.Context, in Incoming) error {
	if m.dead || m.result != nil {
		return ErrDead
	}
	//lodge:check round/early [run=@faults] a frame of a later round is processed too early
	if in.Round > m.index {
		return ErrEarly
	}
	if err := m.deliver(ctx, in); err != nil {
		//lodge:check round/dead [run=@faults|TestCancelled|TestChains] the machine continues after
		//  an error
		m.dead = true
		return err
	}
	return nil
}

func (m *Machine[R]) deliver(ctx context.Context, in Incoming) error {
	k := key{in.From, in.Name}
	//lodge:check round/over [run=@faults|TestDuplicate|TestMachine] a frame of a finished round
	//  changes the state
	if in.Round < m.index {
		return &Blame{Party: in.From, Check: CheckDuplicate, Reason: "frame of a round that is over"}
	}
	w, ok := m.wants[k]
	//lodge:check round/unwanted [run=@faults] a message that the round does not expect is accepted
	if !ok {
		return &Blame{Party: in.From, Check: CheckShape, Reason: fmt.Sprintf("unwanted message %q", clip(in.Name))}
	}
	//lodge:check round/second [run=@faults] a second message replaces the first
	if _, ok := m.inbox.received[k]; ok {
		return &Blame{Party: in.From, Check: CheckDuplicate, Reason: "second " + in.Name}
	}
	p := m.partial[k]
	if p == nil {
		p = &partial{hasher: NewHasher(in.Name)}
		m.partial[k] = p
	}
	if err := p.check(w, in); err != nil {
		return err
	}
	p.frames++
	p.bytes += int64(len(in.Payload))
	p.hasher.Frame(in.Payload)
	if !w.Stream {
		p.payload = append(p.payload, in.Payload...)
	} else if err := m.streamer.Frame(ctx, in.From, in.Name, in.Index, in.Last, in.Payload); err != nil {
		return err
	}
	if !in.Last {
		return nil
	}
	m.complete(k, w, p, in.Signature)
	return nil
}

// check returns a *Blame for a frame that is out of order or too large.
func (p *partial) check(w Want, in Incoming) error {
	switch {
	//lodge:check round/order [run=@faults] frames are accepted out of order
	case in.Index != p.frames:
		return &Blame{Party: in.From, Check: CheckShape, Reason: fmt.Sprintf("frame %d of %s, expected frame %d", in.Index, in.Name, p.frames)}
	//lodge:check round/frame-size [run=@faults] a frame exceeds the memory that the receiver
	//  planned for
	case len(in.Payload) > MaxFrame:
		return &Blame{Party: in.From, Check: CheckSize, Reason: "frame of " + in.Name + " is too large"}
	//lodge:check round/frames [run=@faults] a message can have any number of frames
	case p.frames >= w.MaxFrames:
		return &Blame{Party: in.From, Check: CheckSize, Reason: "too many frames of " + in.Name}
	//lodge:check round/bytes [run=@faults] a message can have any number of bytes
	case p.bytes+int64(len(in.Payload)) > w.MaxBytes:
		return &Blame{Party: in.From, Check: CheckSize, Reason: "too many bytes of " + in.Name}
	case w.Stream:
		return nil
	//lodge:check round/framing [run=@faults] one message has several framings and so several
	//  digests
	case !in.Last && len(in.Payload) != MaxFrame, in.Last && in.Index > 0 && len(in.Payload) == 0:
		return &Blame{Party: in.From, Check: CheckShape, Reason: "frames of " + in.Name + " are not full"}
	}
	return nil
}

func (m *Machine[R]) complete(k key, w Want, p *partial, signature []byte) {
	delete(m.partial, k)
	r := received{payload: p.payload, digest: p.hasher.Sum(), frames: p.hasher.Digests()}
	m.inbox.received[k] = r
	if w.Broadcast {
		m.broadcasts.set(m.session.Parties, k.name, k.from, r.digest, signature)
	}
}

// Step runs the round, which must be Ready, and enters the next. After an error the machine is
// dead.
func (m *Machine[R]) Step(ctx context.Context) error {
	if m.dead || m.result != nil {
		return ErrDead
	}
	if !m.Ready() {
		return errors.New("round: step before all messages have arrived")
	}
	if err := m.step(ctx); err != nil {
		m.dead = true
		m.next, m.streamer, m.out = nil, nil, nil
		return err
	}
	return nil
}

func (m *Machine[R]) step(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in := m.inbox
	if m.waiting != nil {
		echoed := m.inbox
		if err := m.echo().compare(func(p Party) []byte { return echoed.Bytes(p, EchoName) }); err != nil {
			return err
		}
		in, m.waiting = *m.waiting, nil
		//lodge:check round/echo [swap=2=>1000] [run=@faults] a party can send different broadcasts to
		//  different parties
	} else if len(m.broadcasts) > 0 && m.session.Parties > 2 {
		report := m.echo().report()
		m.waiting = &in
		m.index++
		m.out = []Outgoing{{m.index, Broadcast(EchoName, report)}}
		m.expect(m.session.Each(Want{Name: EchoName, MaxFrames: framesFor(int64(len(report))), MaxBytes: int64(len(report))}))
		return nil
	}
	in.broad = m.broadcasts.agreed(m.session.ID)
	for _, name := range m.broadcasts.names() {
		m.transcript = m.transcript.With(m.index, name, in.broad[name])
		m.history = append(m.history, Agreement{m.index, name, m.broadcasts.digests(name)})
	}
	in.Transcript = Digest(m.transcript)
	m.out = nil // the driver has it; free the sent messages during a long step
	t, err := m.next.Step(withHooks(ctx, m.session), in)
	if err != nil {
		return err
	}
	m.index++
	return m.enter(t)
}

// enter makes t's round the current one.
func (m *Machine[R]) enter(t Transition[R]) error {
	m.out, m.broadcasts = nil, broadcasts{}
	m.expect(nil)
	if (t.Next == nil) == (t.Done == nil) || t.Done != nil && len(t.Send) > 0 {
		return errors.New("round: transition must have either a next round or a result without messages")
	}
	m.session.expose(t.Send)
	if err := encode(t.Send); err != nil {
		return err
	}
	Expose(m.session, "messages", &t.Send)
	if m.next, m.result = t.Next, t.Done; m.result != nil {
		return nil
	}
	m.streamer, _ = t.Next.(Streamer)
	wants := slices.Clone(t.Next.Wants())
	for i := range wants {
		if err := m.check(&wants[i]); err != nil {
			return err
		}
		if wants[i].Broadcast {
			m.broadcasts.set(m.session.Parties, wants[i].Name, wants[i].From, Digest{}, nil)
		}
	}
	m.expect(wants)
	if len(m.wants) != len(wants) {
		return errors.New("round: two wants for one message")
	}
	sent := map[key]bool{}
	for _, msg := range t.Send {
		k := key{msg.To, msg.Name}
		if msg.Name == "" || msg.Name == EchoName || sent[k] || msg.To == m.session.Self || msg.To < All || int(msg.To) >= m.session.Parties {
			return fmt.Errorf("round: cannot send %q to %d", msg.Name, msg.To)
		}
		sent[k] = true
		if msg.To == All {
			d, err := DigestOf(msg.Name, msg.Body)
			if err != nil {
				return err
			}
			m.broadcasts.set(m.session.Parties, msg.Name, m.session.Self, d, nil)
			msg.Body = &hashed{serial{body: msg.Body}, d}
		} else {
			msg.Body = &serial{body: msg.Body}
		}
		m.out = append(m.out, Outgoing{m.index, msg})
	}
	return nil
}

// check fills in the defaults of a want and returns an error if the want is invalid.
func (m *Machine[R]) check(w *Want) error {
	if w.MaxFrames == 0 && !w.Stream {
		w.MaxFrames = framesFor(w.MaxBytes)
	}
	switch {
	case w.From < 0 || int(w.From) >= m.session.Parties || w.From == m.session.Self:
		return fmt.Errorf("round: cannot want %q of party %d", w.Name, w.From)
	case w.Name == "" || w.Name == EchoName:
		return fmt.Errorf("round: cannot want a message named %q", w.Name)
	case w.MaxBytes < 0 || w.MaxFrames < 1:
		return fmt.Errorf("round: want of %s without limits", w.Name)
	case w.Stream && !streams(m.next):
		return fmt.Errorf("round: streamed want of %s by a round that takes no frames", w.Name)
	}
	return nil
}

// streams reports whether a round takes frames. A combined round (Then) takes frames if its current
// inner round does.
func streams[R any](r Round[R]) bool {
	if inner, ok := r.(interface{ streams() bool }); ok {
		return inner.streams()
	}
	_, ok := r.(Streamer)
	return ok
}

// serial serialises calls to a body's Frame, so that a driver may send to several peers
// concurrently.
type serial struct {
	mu   sync.Mutex
	body Body
}

func (s *serial) Frames() int { return s.body.Frames() }

func (s *serial) Frame(i int) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.body.Frame(i)
	if err == nil && len(f) > MaxFrame {
		return nil, fmt.Errorf("round: own frame of %d bytes", len(f))
	}
	return f, err
}

// Hashed is a message body with a known digest, which saves its sender another pass.
type Hashed interface {
	Body
	Digest() Digest
}

type hashed struct {
	serial
	digest Digest
}

func (h *hashed) Digest() Digest { return h.digest }

// expect clears the inbox and waits for these wants.
func (m *Machine[R]) expect(wants []Want) {
	m.wants = make(map[key]Want, len(wants))
	for _, w := range wants {
		m.wants[key{w.From, w.Name}] = w
	}
	m.partial = map[key]*partial{}
	m.inbox = Inbox{received: make(map[key]received, len(wants))}
}

// clip bounds the length of a message name from a peer, for use in an error.
func clip(name string) string { return name[:min(len(name), 64)] }
