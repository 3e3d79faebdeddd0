package byzantine

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	exchangev1 "github.com/lodge-mpc/lodge/proto/lodge/exchange/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/session/exchange"
)

// patience limits how long the cheater waits for a peer's message, so that a failed test ends.
const patience = 2 * time.Minute

// hearing records the peers' messages in the newest session, for a cheater that sends last.
type hearing struct {
	mu       sync.Mutex
	changed  chan struct{} // closed and replaced at every change
	session  *jobv1.SessionRef
	messages map[heardKey][][]byte
	partial  map[round.Party]*heardKey
}

type heardKey struct {
	from round.Party
	name string
}

func newHearing() *hearing {
	return &hearing{changed: make(chan struct{}), messages: map[heardKey][][]byte{}, partial: map[round.Party]*heardKey{}}
}

// hello starts the records of a session at its first hello.
func (h *hearing) hello(ref *jobv1.SessionRef) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !proto.Equal(h.session, ref) {
		h.session, h.messages, h.partial = ref, map[heardKey][][]byte{}, map[round.Party]*heardKey{}
	}
}

// frame records a frame. An incomplete message is followed by a nil frame.
func (h *hearing) frame(from round.Party, f *exchangev1.Frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := f.GetStart(); s != nil {
		h.partial[from] = &heardKey{from, s.GetName()}
		h.messages[*h.partial[from]] = [][]byte{nil}
	}
	k := h.partial[from]
	if k == nil {
		return
	}
	list := h.messages[*k]
	list = append(list[:len(list)-1], slices.Concat([]byte{}, f.GetData()), nil)
	if f.GetEnd() != nil {
		list = list[:len(list)-1]
		h.partial[from] = nil
	}
	h.messages[*k] = list
	close(h.changed)
	h.changed = make(chan struct{})
}

// wait waits for a peer's message with this name, and returns its frames.
func (h *hearing) wait(from round.Party, name string) [][]byte {
	end := time.After(patience)
	for {
		h.mu.Lock()
		list, changed := h.messages[heardKey{from, name}], h.changed
		h.mu.Unlock()
		if len(list) > 0 && list[len(list)-1] != nil {
			var copied [][]byte
			for _, f := range list {
				copied = append(copied, slices.Clone(f))
			}
			return copied
		}
		select {
		case <-changed:
		case <-end:
			panic(fmt.Sprintf("byzantine: party %d does not say %s", from, name))
		}
	}
}

// inner listens to the peers' streams. While the party cheats, it does not tell peers on their
// streams that it has ended a session.
func (c *cheater) inner() rpc.Inner {
	return rpc.Inner{
		Unary: func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
			return handle(ctx, req)
		},
		Stream: func(srv any, st grpc.ServerStream, info *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			caller, ok := rpc.Caller(st.Context())
			if info.FullMethod != exchange.Method || !ok {
				return handle(srv, st)
			}
			return handle(srv, &listening{st, c, round.Party(caller.Party)})
		},
	}
}

type listening struct {
	grpc.ServerStream
	c    *cheater
	from round.Party
}

func (l *listening) RecvMsg(m any) error {
	err := l.ServerStream.RecvMsg(m)
	r, ok := m.(interface {
		GetHello() *exchangev1.Hello
		GetFrame() *exchangev1.Frame
	})
	if err != nil || !ok {
		return err
	}
	if hello := r.GetHello(); hello != nil {
		l.c.heard.hello(hello.GetRef())
	}
	if f := r.GetFrame(); f != nil {
		l.c.heard.frame(l.from, f)
	}
	return nil
}

func (l *listening) SendMsg(m any) error {
	if r, ok := m.(*exchangev1.ExchangeResponse); ok && r.GetAbort() != nil && l.c.cheating() {
		return nil
	}
	return l.ServerStream.SendMsg(m)
}

func (c *cheater) cheating() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cheat != nil
}
