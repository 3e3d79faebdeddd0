package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/job"
)

var errStalled = errors.New("exchange: the peer receives nothing")

// queued is a frame, and the round in which it is sent.
type queued struct {
	*exchangev1.Frame
	protocol, round string
}

// outbox holds the frames that one peer has not yet acknowledged. Session.mu guards the
// fields below the first two.
type outbox struct {
	s    *Streams
	peer round.Party

	queue       []queued // in order; the first has sequence number base
	base        uint64
	next        uint64 // the first that the present stream has not sent
	bytes       int    // of memory that the queue takes, at most
	taken       int64  // bytes, counted as above, that the peer has acknowledged
	incarnation []byte // of the peer's process; set by its first welcome
	trouble     string // the reason if there is no stream at present
}

// room waits until a frame of this weight fits into the window. A peer that receives nothing for
// too long ends the session: it would delay data for the other peers, who would then suspect this
// party. begun are the recipients that have received part of the frame's message and wait for the
// rest.
func (o *outbox) room(ctx context.Context, weight int, begun []*outbox) error {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	fits := func() bool {
		return s.failed != nil || s.end != running || len(o.queue) == 0 || o.bytes+weight <= s.x.cfg.Window
	}
	base, since := o.base, time.Now()
	for !fits() {
		clock, stop := context.WithTimeoutCause(ctx, min(s.x.cfg.Lull, max(s.x.cfg.Stall-time.Since(since), 0)), errStalled)
		err := s.until(clock, func() bool { return fits() || o.base != base })
		stop()
		switch {
		case err != nil && !errors.Is(err, errStalled):
			return err
		case o.base != base:
			base, since = o.base, time.Now()
		case err != nil && (time.Since(since) >= s.x.cfg.Stall || slices.ContainsFunc(begun, func(q *outbox) bool { return len(q.queue) == 0 })):
			reason := fmt.Sprintf("it took nothing for %s, with %d bytes on the way", time.Since(since).Round(time.Millisecond), o.bytes)
			if o.trouble != "" {
				reason += ": " + o.trouble
			}
			s.failLocked(&LostError{Peer: o.peer, Name: s.peers[o.peer].Name, Check: CheckStalled, Reason: reason})
		}
	}
	return s.overLocked()
}

// put numbers and queues a frame that fits into the window.
func (o *outbox) put(f queued) error {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.overLocked(); err != nil {
		return err
	}
	f.Seq = o.base + uint64(len(o.queue))
	o.queue = append(o.queue, f)
	o.bytes += weight(f.Frame)
	s.notify()
	return nil
}

// overLocked returns the reason why nothing more can be sent, or nil; s.mu is held.
func (s *Streams) overLocked() error {
	switch {
	case s.failed != nil:
		return s.failed
	case s.end != running:
		return errors.New("exchange: the session is over")
	}
	return nil
}

// drop removes the frames below next, which the peer has acknowledged; s.mu is held.
func (o *outbox) drop(next uint64) error {
	if next < o.base || next > o.base+uint64(len(o.queue)) {
		if o.s.end != running {
			return nil
		}
		return fmt.Errorf("acknowledges %d, outside of %d to %d", next, o.base, o.base+uint64(len(o.queue)))
	}
	for ; o.base < next; o.base++ {
		o.bytes -= weight(o.queue[0].Frame)
		o.taken += int64(weight(o.queue[0].Frame))
		o.queue[0] = queued{}
		o.queue = o.queue[1:]
	}
	o.next = max(o.next, o.base)
	o.s.notify()
	return nil
}

// run keeps a stream to the peer for as long as the session runs.
func (o *outbox) run() {
	s := o.s
	defer s.streams.Done()
	pause := 20 * time.Millisecond
	for {
		progress, err := o.stream()
		s.mu.Lock()
		end := s.end
		if o.trouble = ""; err != nil {
			o.trouble = clip(rpc.FromError(err).What)
		}
		s.mu.Unlock()
		if s.ctx.Err() != nil || end == finished || (end == aborted && err == nil) {
			return
		}
		if lost := o.lost(err); lost != nil {
			s.fail(lost)
			return
		}
		if progress {
			pause = 20 * time.Millisecond
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		pause = min(2*pause, s.x.cfg.BackoffMax)
	}
}

// lost returns the error that ends the session if a retry after err cannot succeed, and nil
// otherwise.
func (o *outbox) lost(err error) error {
	var lost *LostError
	var gone *AbortedError
	var blame *round.Blame
	if err == nil || errors.As(err, &lost) || errors.As(err, &gone) || errors.As(err, &blame) {
		return err
	}
	e := rpc.FromError(err)
	name := o.s.peers[o.peer].Name
	switch e.Code {
	case rpc.PinMismatch:
		return &LostError{Peer: o.peer, Name: name, Check: CheckPins, Reason: clip(e.What)}
	case rpc.Forbidden, rpc.Unauthenticated, rpc.Invalid, rpc.TooLarge, rpc.SessionOver:
		return &LostError{Peer: o.peer, Name: name, Check: CheckRefused, Reason: clip(e.What)}
	}
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	// Next is set only in a response of the peer itself.
	if e.Code == rpc.Unavailable && e.Next != "" && o.incarnation != nil && o.s.end == running {
		return &LostError{Peer: o.peer, Name: name, Check: CheckIncarnation, Reason: "it no longer knows the session"}
	}
	return nil // the connection broke, or the peer has not started yet
}

// stream opens one stream, sends the frames that the peer lacks, and processes acknowledgements
// until the stream breaks. progress reports whether the peer welcomed it.
func (o *outbox) stream() (progress bool, err error) {
	s := o.s
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	st, err := exchangev1.NewExchangeServiceClient(s.peers[o.peer].Conn).Exchange(ctx, grpc.ForceCodecV2(rpc.Codec))
	if err != nil {
		return false, err
	}
	err = st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Hello{Hello: &exchangev1.Hello{
		Ref: s.ref.Proto(), ProtocolVersion: job.ProtocolVersion,
		ParamsHash: s.pins.ParamsHash[:], RosterHash: s.x.cfg.RosterHash[:], SpecDigest: s.pins.SpecDigest[:],
		Incarnation: s.incarnation[:],
	}}})
	if err != nil && !errors.Is(err, io.EOF) {
		return false, err
	}
	first, err := st.Recv()
	if err != nil {
		return false, err
	}
	if bye := first.GetAbort(); bye != nil {
		return false, s.abortOf(o.peer, bye)
	}
	if err := o.welcome(first.GetWelcome()); err != nil {
		return false, err
	}
	acks := make(chan error, 1)
	go func() {
		acks <- o.takeAcks(st)
		cancel() // wakes next
	}()
	err = o.feed(ctx, st)
	if err == nil { // the session is over
		err = st.CloseSend()
		select {
		case <-acks:
		case <-s.ctx.Done():
		}
		return true, err
	}
	if err = <-acks; err == nil { // the reason why the stream broke
		return false, errors.New("the peer has closed the stream")
	}
	return true, err
}

func (o *outbox) welcome(w *exchangev1.Welcome) error {
	s := o.s
	name := s.peers[o.peer].Name
	if w == nil || len(w.GetIncarnation()) != len(s.incarnation) {
		return &LostError{Peer: o.peer, Name: name, Check: CheckRefused, Reason: "its first answer is not a welcome"}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.incarnation == nil {
		o.incarnation = bytes.Clone(w.GetIncarnation())
	} else if !bytes.Equal(o.incarnation, w.GetIncarnation()) {
		return &LostError{Peer: o.peer, Name: name, Check: CheckIncarnation, Reason: "its process restarted within the session"}
	}
	if err := o.drop(w.GetNextSeq()); err != nil {
		return &round.Blame{Party: o.peer, Check: round.CheckShape, Reason: err.Error()}
	}
	o.next, o.trouble = o.base, ""
	return nil
}

func (o *outbox) takeAcks(st grpc.BidiStreamingClient[exchangev1.ExchangeRequest, exchangev1.ExchangeResponse]) error {
	for {
		m, err := st.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if bye := m.GetAbort(); bye != nil {
			return o.s.abortOf(o.peer, bye)
		}
		a := m.GetAck()
		if a == nil {
			return &round.Blame{Party: o.peer, Check: round.CheckShape, Reason: "a response that is not an acknowledgement"}
		}
		o.s.mu.Lock()
		err = o.drop(a.GetNextSeq())
		o.s.mu.Unlock()
		if err != nil {
			return &round.Blame{Party: o.peer, Check: round.CheckShape, Reason: err.Error()}
		}
	}
}

// feed sends frames as they come, and the farewell when the session is aborted.
func (o *outbox) feed(ctx context.Context, st grpc.BidiStreamingClient[exchangev1.ExchangeRequest, exchangev1.ExchangeResponse]) error {
	s := o.s
	for {
		var f queued
		var bye *exchangev1.Abort
		s.mu.Lock()
		err := s.until(ctx, func() bool {
			bye = s.bye
			if i := int(o.next - o.base); s.end == running && i < len(o.queue) {
				f = o.queue[i]
				o.next++
			}
			return f.Frame != nil || s.end != running
		})
		if f.Frame != nil {
			size := proto.Size(f.Frame)
			s.sent += int64(size)
			s.x.cfg.Metrics.Count(metrics.PeerBytes, size, f.protocol, f.round, s.peers[o.peer].Name, "sent")
		}
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case f.Frame != nil:
			m := departure{&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f.Frame}}}
			if err := st.SendMsg(m); err != nil {
				return err
			}
		case bye != nil:
			return st.Send(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Abort{Abort: bye}})
		default:
			return nil
		}
	}
}
