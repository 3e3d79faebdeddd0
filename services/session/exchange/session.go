package exchange

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Streams holds one session's streams to and from every peer.
type Streams struct {
	x           *Exchange
	ref         job.Ref
	pins        Pins
	group       []round.Party // of the roster, in the order in which the session numbers them
	peers       []rpc.PeerConn
	self        round.Party
	incarnation [16]byte
	ctx         context.Context // ends the outgoing streams
	cancel      context.CancelFunc
	streams     sync.WaitGroup

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change below
	in      []*inbox
	out     []*outbox
	turn    int           // where Receive looks first
	lent    []byte        // the buffer of the frame that Receive returned last
	failed  error         // what ended it early
	broken  chan struct{} // closed when failed is set
	end     ending        // how it ended here
	bye     *exchangev1.Abort
	sent    int64 // bytes of frames, resent ones included
	taken   int64
}

type ending int

const (
	running ending = iota
	finished
	aborted
)

// Frame is a part of a message as it was received. Data is valid until the next call of Receive.
type Frame struct {
	From      round.Party
	Round     uint32
	Name      string
	Broadcast bool
	Index     int
	Count     int // frames of the message
	Data      []byte
	// With the last frame: the digest that the sender claims and its signature.
	Digest    []byte
	Signature []byte

	weight int    // its share of the window
	buffer []byte // the buffer that holds Data; nil if Data has separate memory
}

// Last reports whether the frame ends its message.
func (f *Frame) Last() bool { return f.Index == f.Count-1 }

// Size returns the frame's size on the wire in bytes.
func (f *Frame) Size() int { return f.weight - frameOverhead }

// notify wakes everybody who waits for a change; s.mu is held.
func (s *Streams) notify() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// until waits until cond is true or ctx is done; s.mu is held before and after.
func (s *Streams) until(ctx context.Context, cond func() bool) error {
	for !cond() {
		changed := s.changed
		s.mu.Unlock()
		select {
		case <-changed:
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return context.Cause(ctx)
		}
	}
	return nil
}

// fail ends the session because of err, unless it has ended.
func (s *Streams) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failLocked(err)
}

// failLocked is fail with s.mu held.
func (s *Streams) failLocked(err error) {
	if s.failed == nil && s.end == running {
		s.failed = err
		close(s.broken)
		s.notify()
	}
}

// Broken returns a channel that is closed when the session has failed; Failed returns the reason.
func (s *Streams) Broken() <-chan struct{} { return s.broken }

// Trouble returns the reason why a peer cannot be reached at present, or "" if it can.
func (s *Streams) Trouble(p round.Party) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out[p].trouble
}

// Receive returns the next frame of any peer that wanted selects, in the order in which that peer
// sent them, and acknowledges it. Calls must not overlap: each call invalidates the data of the
// previous frame. It fails if any peer is lost, has aborted or has broken the rules of the stream
// (*LostError, *AbortedError, *round.Blame), and when ctx is done.
func (s *Streams) Receive(ctx context.Context, wanted func(round.Party) bool) (*Frame, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lent != nil {
		putBuffer(s.lent)
		s.lent = nil
	}
	var f *Frame
	err := s.until(ctx, func() bool {
		if s.failed != nil || s.end != running {
			return true
		}
		for i := range s.in {
			p := (s.turn + i) % len(s.in)
			if wanted(round.Party(p)) {
				if f = s.in[p].pop(); f != nil {
					s.turn = p + 1
					return true
				}
			}
		}
		return false
	})
	switch {
	case err != nil:
		return nil, err
	case s.failed != nil:
		return nil, s.failed
	case f == nil:
		return nil, errors.New("exchange: the session is over")
	}
	s.lent = f.buffer
	s.notify() // room for the peer, and an acknowledgement
	return f, nil
}

// Send puts a message into the windows of its recipients. It builds each frame once, and returns
// when the last frame is in the windows. sign signs the digest; at has the protocol and the round,
// for the metrics. Messages to one recipient arrive in the order of the calls, which must not
// overlap.
func (s *Streams) Send(ctx context.Context, at [2]string, index uint32, m round.Message, sign func(round.Digest) []byte) error {
	var to []*outbox
	for p, o := range s.out {
		if round.Party(p) != s.self && (m.To == round.All || m.To == round.Party(p)) {
			to = append(to, o)
		}
	}
	n := m.Body.Frames()
	if len(to) == 0 || n < 1 || n > maxFrames || len(m.Name) > maxName {
		return fmt.Errorf("exchange: message %q to %d with %d frames", m.Name, m.To, n)
	}
	hashed, known := m.Body.(round.Hashed)
	h := round.NewHasher(m.Name)
	for i := range n {
		data, err := m.Body.Frame(i)
		if err != nil {
			return err
		}
		if len(data) > round.MaxFrame {
			return fmt.Errorf("exchange: message %q has a frame of %d bytes", m.Name, len(data))
		}
		if !known {
			h.Frame(data)
		}
		var start *exchangev1.Start
		var end *exchangev1.End
		if i == 0 {
			start = &exchangev1.Start{Round: index, Name: m.Name, Broadcast: m.To == round.All, Frames: uint32(n)}
		}
		if i == n-1 {
			d := h.Sum()
			if known {
				d = hashed.Digest()
			}
			end = &exchangev1.End{Digest: d[:], Signature: sign(d)}
		}
		frame := func() *exchangev1.Frame { return &exchangev1.Frame{Start: start, Data: data, End: end} }
		var begun []*outbox
		if i > 0 {
			begun = to
		}
		for _, o := range to { // the timeouts start only when all recipients can continue
			if err := o.room(ctx, weight(frame()), begun); err != nil {
				return err
			}
		}
		for _, o := range to {
			if err := o.put(queued{frame(), at[0], at[1]}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Failed returns the error that ended the session early, or nil.
func (s *Streams) Failed() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failed
}

// Taken returns the number of bytes that a peer has acknowledged, and whether frames to it are
// still unacknowledged.
func (s *Streams) Taken(p round.Party) (bytes int64, owing bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.out[p].taken, len(s.out[p].queue) > 0
}

// Traffic returns the bytes of frames sent and received so far.
func (s *Streams) Traffic() (sent, received int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent, s.taken
}

// Finish waits until every peer has received all messages, and ends the session. If a peer does not
// acknowledge until ctx is done, Finish ends the session and returns an error that names the peer.
// If the session has already failed, Finish does not end it; call Abort instead.
func (s *Streams) Finish(ctx context.Context) error {
	s.mu.Lock()
	err := s.until(ctx, func() bool {
		if s.failed != nil {
			return true
		}
		for _, o := range s.out {
			if len(o.queue) > 0 {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = s.failed
	}
	if err != nil {
		for _, o := range s.out {
			if len(o.queue) > 0 {
				err = fmt.Errorf("exchange: %s has not acknowledged %d frames: %w", s.peers[o.peer].Name, len(o.queue), err)
				break
			}
		}
	}
	if s.failed != nil || s.end != running {
		s.mu.Unlock()
		return err
	}
	s.close(finished, nil)
	s.mu.Unlock()
	s.streams.Wait()
	s.x.remember(s.ref)
	return err
}

// Abort ends the session without a result and tells the peers that can be
// reached. On a session that has ended it does nothing. sign signs it as it is sent.
func (s *Streams) Abort(a *AbortedError, sign func(*AbortedError) []byte) {
	said := *a
	said.Outcome, said.Round, said.Check, said.Reason = clip(a.Outcome), clip(a.Round), clip(a.Check), clip(a.Reason)
	said.Signature = sign(&said)
	bye := said.proto()
	for _, r := range a.Relayed {
		bye.Relayed = append(bye.Relayed, &exchangev1.Relayed{From: uint32(r.Peer), Abort: r.proto()})
	}
	s.mu.Lock()
	if s.end != running {
		s.mu.Unlock()
		return
	}
	s.close(aborted, bye)
	s.mu.Unlock()
	stop := time.AfterFunc(s.x.cfg.Farewell, s.cancel)
	defer stop.Stop()
	s.streams.Wait()
	s.x.remember(s.ref)
}

func (e *AbortedError) proto() *exchangev1.Abort {
	a := &exchangev1.Abort{Outcome: e.Outcome, Round: e.Round, Check: e.Check, Reason: e.Reason, Signature: e.Signature}
	if e.Blamed != nil {
		a.Blamed = proto.Uint32(uint32(*e.Blamed))
	}
	return a
}

// close drops all buffers and lets streams end; s.mu is held.
func (s *Streams) close(how ending, bye *exchangev1.Abort) {
	s.end, s.bye = how, bye
	s.lent = nil // the frame may still be in use
	for i := range s.in {
		s.in[i].drop()
		s.out[i].queue, s.out[i].bytes = nil, 0
	}
	if how == finished {
		s.cancel()
	}
	s.notify()
}

// clip bounds a text that goes to a peer or comes from one.
func clip(s string) string {
	const most = 500
	if len(s) > most {
		s = s[:most]
	}
	clean := []byte(s)
	for i, c := range clean {
		if c < ' ' || c > '~' {
			clean[i] = '?'
		}
	}
	return string(clean)
}
