package exchange

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// inbox holds the frames received from one peer that the protocol has not yet accepted. Session.mu
// guards it.
type inbox struct {
	incarnation []byte // of the peer's process; set by its first hello
	generation  int    // counts the peer's streams; only the newest may push
	received    uint64 // frames received so far
	queue       []*Frame
	bytes       int // memory of the queue, at most

	// The message that is being received.
	open  bool
	start *exchangev1.Start
	index int
}

func (b *inbox) pop() *Frame {
	if len(b.queue) == 0 {
		return nil
	}
	f := b.queue[0]
	b.queue[0] = nil
	b.queue = b.queue[1:]
	b.bytes -= f.weight
	return f
}

func (b *inbox) drop() { b.queue, b.bytes = nil, 0 }

// taken returns the number of frames that the protocol has received.
func (b *inbox) taken() uint64 { return b.received - uint64(len(b.queue)) }

// accept validates a frame's position and shape, and returns it in the protocol's form.
func (b *inbox) accept(from round.Party, f *exchangev1.Frame) (*Frame, error) {
	malformed := func(format string, args ...any) error {
		return &round.Blame{Party: from, Check: round.CheckShape, Reason: fmt.Sprintf(format, args...)}
	}
	st := f.GetStart()
	switch {
	//lodge:check exchange/frame/order
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] frames are accepted out
	//  of order
	case f.GetSeq() != b.received:
		return nil, malformed("frame %d of the stream where %d was due", f.GetSeq(), b.received)
	//lodge:check exchange/frame/size
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] a frame exceeds the
	//  memory set aside for it
	case len(f.GetData()) > round.MaxFrame:
		return nil, &round.Blame{Party: from, Check: round.CheckSize, Reason: fmt.Sprintf("a frame of %d bytes", len(f.GetData()))}
	//lodge:check exchange/frame/start [swap=(st != nil) == b.open=>st == nil && !b.open]
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] a message starts before
	//  the previous one has ended
	case (st != nil) == b.open:
		return nil, malformed("a message starts inside another, or none has started")
	//lodge:check exchange/frame/shape
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] a message has no frames,
	//  too many frames, or too long a name
	case st != nil && (st.GetFrames() == 0 || st.GetFrames() > maxFrames || len(st.GetName()) == 0 || len(st.GetName()) > maxName):
		return nil, malformed("a message of %d frames and a name of %d bytes", st.GetFrames(), len(st.GetName()))
	}
	if st != nil {
		b.open, b.start, b.index = true, st, 0
	}
	last := b.index == int(b.start.GetFrames())-1
	//lodge:check exchange/frame/end
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] a message ends before or
	//  after its last frame
	if (f.GetEnd() != nil) != last {
		return nil, malformed("message %s ends in the wrong frame", clip(b.start.GetName()))
	}
	//lodge:check exchange/frame/signature
	//  [run=TestMalformedFrames|TestOversizedFrame|TestEmptyFrames|Inbox] a message ends without a
	//  digest or a signature
	if end := f.GetEnd(); last && (len(end.GetDigest()) != len(round.Digest{}) || len(end.GetSignature()) != ed25519.SignatureSize) {
		return nil, malformed("message %s has a digest of %d bytes and a signature of %d", clip(b.start.GetName()), len(end.GetDigest()), len(end.GetSignature()))
	}
	out := &Frame{
		From: from, Round: b.start.GetRound(), Name: b.start.GetName(), Broadcast: b.start.GetBroadcast(),
		Index: b.index, Count: int(b.start.GetFrames()), Data: f.GetData(),
		Digest: f.GetEnd().GetDigest(), Signature: f.GetEnd().GetSignature(), weight: weight(f),
	}
	b.index++
	b.received++
	if last {
		b.open = false
	}
	return out, nil
}

// frameOverhead is the memory of a frame in addition to its encoding, so that empty frames count as
// well.
const frameOverhead = 512

// weight returns a frame's share of the window.
func weight(f *exchangev1.Frame) int { return proto.Size(f) + frameOverhead }

// attach makes a stream the peer's newest, and returns the sequence number from which the peer must
// resume.
func (s *Streams) attach(from round.Party, incarnation []byte) (generation int, next uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.in[from]
	name := s.peers[from].Name
	switch {
	case s.end == aborted:
		return 0, 0, errAborted
	case b.incarnation == nil:
		b.incarnation = bytes.Clone(incarnation)
	//lodge:check exchange/restarted [run=TestRestarted] a restarted process continues a session
	//  with other randomness
	case !bytes.Equal(b.incarnation, incarnation):
		s.failLocked(&LostError{Peer: from, Name: name, Check: CheckIncarnation, Reason: "its process restarted within the session"})
		return 0, 0, rpc.Errorf(rpc.SessionOver, "start a new session", "%s restarted within the session", name)
	}
	if b.generation > 0 && s.end == running { // a peer may reconnect for the last acknowledgement
		s.x.cfg.Metrics.Count(metrics.PeerResumes, 1, name)
	}
	b.generation++
	s.notify() // an older stream of this peer leaves
	return b.generation, b.received, nil
}

// receive receives the frames of one stream until it breaks, ends or is superseded.
func (s *Streams) receive(st exchangev1.ExchangeService_ExchangeServer, from round.Party, incarnation []byte) error {
	generation, next, err := s.attach(from, incarnation)
	if errors.Is(err, errAborted) {
		return farewell(st, s.bye)
	}
	if err != nil {
		return err
	}
	err = st.Send(&exchangev1.ExchangeResponse{Kind: &exchangev1.ExchangeResponse_Welcome{
		Welcome: &exchangev1.Welcome{NextSeq: next, Incarnation: s.incarnation[:]}}})
	if err != nil {
		return err
	}
	pulled := make(chan error, 1)
	go func() { pulled <- s.pull(st, from, generation) }() // ends with the stream
	acked := make(chan error, 1)
	stop := make(chan struct{})
	go func() { acked <- s.acknowledge(st, from, generation, next, stop) }()
	select {
	case err = <-pulled:
		close(stop)
		<-acked
	case err = <-acked:
	}
	return err
}

// farewell ends a peer's stream with the reason why the session has ended here.
func farewell(st exchangev1.ExchangeService_ExchangeServer, bye *exchangev1.Abort) error {
	return st.Send(&exchangev1.ExchangeResponse{Kind: &exchangev1.ExchangeResponse_Abort{Abort: bye}})
}

// pull moves frames from the stream into the inbox, waiting while it is full.
func (s *Streams) pull(st exchangev1.ExchangeService_ExchangeServer, from round.Party, generation int) error {
	for {
		m := &arrival{ExchangeRequest: new(exchangev1.ExchangeRequest)}
		err := st.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch k := m.GetKind().(type) {
		case *exchangev1.ExchangeRequest_Frame:
			if err := s.push(st, from, generation, k.Frame, m.buffer); err != nil {
				return err
			}
		case *exchangev1.ExchangeRequest_Abort:
			s.fail(s.abortOf(from, k.Abort))
			return nil
		default:
			return rpc.Errorf(rpc.Invalid, "", "neither a frame nor an abort")
		}
	}
}

func (s *Streams) abortOf(from round.Party, a *exchangev1.Abort) *AbortedError {
	e := &AbortedError{Peer: from, Name: s.peers[from].Name, Outcome: clip(a.GetOutcome()),
		Round: clip(a.GetRound()), Check: clip(a.GetCheck()), Reason: clip(a.GetReason()), Signature: a.GetSignature()}
	if a.Blamed != nil && int(a.GetBlamed()) < len(s.peers) {
		p := round.Party(a.GetBlamed())
		e.Blamed = &p
	}
	for i, r := range a.GetRelayed() {
		if i < len(s.peers) && r.GetAbort() != nil && int(r.GetFrom()) < len(s.peers) {
			r.Abort.Relayed = nil // a party relays farewells over one step only
			e.Relayed = append(e.Relayed, s.abortOf(round.Party(r.GetFrom()), r.GetAbort()))
		}
	}
	return e
}

// push queues a frame. If buffer is not nil, it contains the frame's data. If the frame is not
// queued, the garbage collector frees the buffer.
func (s *Streams) push(st exchangev1.ExchangeService_ExchangeServer, from round.Party, generation int, f *exchangev1.Frame, buffer []byte) error {
	size := proto.Size(f)
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.in[from]
	//lodge:check exchange/frame/window [swap=b.bytes+weight(f) <= s.x.cfg.Window=>true]
	//  [run=TestBackpressure|TestEmptyFrames] a peer can send more than the receive window
	err := s.until(st.Context(), func() bool {
		return s.end != running || b.generation != generation || len(b.queue) == 0 || b.bytes+weight(f) <= s.x.cfg.Window
	})
	switch {
	case err != nil:
		return err
	//lodge:check exchange/superseded [run=TestNewerStream] [redundant=both streams are of one
	//  process and their frames are numbered, so each is taken once] an old stream of a peer
	//  continues after a new one has started
	case b.generation != generation:
		return errSuperseded
	case s.end != running:
		return nil // it is no longer wanted
	}
	s.taken += int64(size)
	frame, err := b.accept(from, f)
	if err != nil {
		s.failLocked(err)
		return rpc.Errorf(rpc.Invalid, "", "%v", err)
	}
	frame.buffer = buffer
	b.queue = append(b.queue, frame)
	b.bytes += frame.weight
	s.notify()
	return nil
}

// acknowledge tells the peer how much the protocol has consumed. It returns at stop, when a newer
// stream starts, or when the session ends.
func (s *Streams) acknowledge(st exchangev1.ExchangeService_ExchangeServer, from round.Party, generation int, told uint64, stop <-chan struct{}) error {
	b := s.in[from]
	for {
		s.mu.Lock()
		taken, changed, end, newest := b.taken(), s.changed, s.end, b.generation == generation
		bye := s.bye
		s.mu.Unlock()
		if taken > told || end == finished {
			if err := st.Send(&exchangev1.ExchangeResponse{Kind: &exchangev1.ExchangeResponse_Ack{Ack: &exchangev1.Ack{NextSeq: taken}}}); err != nil {
				return err
			}
			told = taken
		}
		switch {
		case !newest:
			return errSuperseded
		case end == finished:
			return nil
		case end == aborted:
			return farewell(st, bye)
		}
		select {
		case <-changed:
		case <-stop:
			return nil
		}
	}
}
