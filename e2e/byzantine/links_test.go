package byzantine

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/cheattest"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// sends is around the streams to a peer.
func (c *cheater) sends(peer int) grpc.StreamClientInterceptor {
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer,
		options ...grpc.CallOption) (grpc.ClientStream, error) {
		st, err := open(ctx, desc, cc, method, options...)
		if err != nil || method != exchange.Method {
			return st, err
		}
		return &speaking{ClientStream: st, c: c, peer: round.Party(peer)}, nil
	}
}

// speaking is one stream to a peer.
type speaking struct {
	grpc.ClientStream
	c    *cheater
	peer round.Party
	link *link
}

func (s *speaking) SendMsg(m any) error {
	r, ok := m.(interface {
		GetHello() *exchangev1.Hello
		GetFrame() *exchangev1.Frame
		GetAbort() *exchangev1.Abort
	})
	if !ok {
		return s.ClientStream.SendMsg(m)
	}
	switch {
	case r.GetHello() != nil:
		s.link = s.c.linkTo(s.peer, r.GetHello())
	case r.GetAbort() != nil && s.c.cheating():
		return nil
	case r.GetFrame() != nil:
		for _, f := range s.link.pass(s.c, r.GetFrame()) {
			if err := s.ClientStream.SendMsg(&exchangev1.ExchangeRequest{Kind: &exchangev1.ExchangeRequest_Frame{Frame: f}}); err != nil {
				return err
			}
		}
		return nil
	}
	return s.ClientStream.SendMsg(m)
}

// RecvMsg turns the numbers that the peer acknowledges into those of the party's own frames.
func (s *speaking) RecvMsg(m any) error {
	if err := s.ClientStream.RecvMsg(m); err != nil {
		return err
	}
	if r, ok := m.(*exchangev1.ExchangeResponse); ok && s.link != nil {
		if a := r.GetAck(); a != nil {
			a.NextSeq = s.link.own(a.GetNextSeq())
		}
		if w := r.GetWelcome(); w != nil {
			w.NextSeq = s.link.own(w.GetNextSeq())
		}
	}
	return nil
}

type linkKey struct {
	job     string
	ordinal uint32
	peer    round.Party
}

// link is one session's frames to one peer, over all of its streams.
type link struct {
	peer round.Party

	mu      sync.Mutex
	sent    []uint64 // by number on the wire: how many of the party's own frames are out with it
	next    uint64   // of the party's own frames
	message []*exchangev1.Frame
	over    bool // the fault has been
}

func (c *cheater) linkTo(peer round.Party, h *exchangev1.Hello) *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := linkKey{h.GetRef().GetJobId(), h.GetRef().GetOrdinal(), peer}
	if c.links[k] == nil {
		c.links[k] = &link{peer: peer}
	}
	return c.links[k]
}

func (l *link) own(wire uint64) uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	wire = min(wire, uint64(len(l.sent)))
	if wire == 0 {
		return 0
	}
	return l.sent[wire-1]
}

// pass returns the frames to send for one of the party's frames: an honest message unchanged, and a
// faulty one once it is complete.
func (l *link) pass(c *cheater, f *exchangev1.Frame) (out []*exchangev1.Frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if f.GetSeq() < l.next {
		return nil // a new stream repeats the frames of the old one
	}
	l.next = f.GetSeq() + 1
	f = proto.Clone(f).(*exchangev1.Frame)
	l.message = append(l.message, f)
	fault := c.faultOf(l, l.message[0].GetStart())
	if fault == nil {
		l.number(f)
		out = []*exchangev1.Frame{f}
	}
	if f.GetEnd() == nil {
		return out
	}
	message := l.message
	l.message = nil
	if fault == nil {
		c.remember(l.peer, message)
		return out
	}
	l.over = true
	return c.fault(l, fault, message)
}

// number gives a frame its place in the stream.
func (l *link) number(f *exchangev1.Frame) {
	f.Seq = uint64(len(l.sent))
	l.sent = append(l.sent, l.next)
}

// faultOf is the fault that a message which begins like this has on this link.
func (c *cheater) faultOf(l *link, start *exchangev1.Start) *cheattest.Fault {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cheat == nil || c.cheat.Fault == nil {
		return nil
	}
	if c.cheat.Fault.Kind == cheattest.Silence && l.over {
		return c.cheat.Fault
	}
	if l.over || start.GetName() != c.cheat.Fault.Message.Name {
		return nil
	}
	f := c.cheat.Fault
	if (f.Kind == cheattest.TwoVersions || f.Kind == cheattest.NotForOne) && l.peer != 0 {
		return nil
	}
	c.faults++
	return f
}

// remember keeps a message as it was signed, while a session is recorded.
func (c *cheater) remember(to round.Party, message []*exchangev1.Frame) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.recording == "" || c.cheat != nil {
		return
	}
	var kept []*exchangev1.Frame
	for _, f := range message {
		kept = append(kept, proto.Clone(f).(*exchangev1.Frame))
	}
	c.signed[place{c.recording, to, message[0].GetStart().GetName()}] = kept
}
