package rpc

import (
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// Bounds of what one caller may hold.
const (
	// MaxRequest bounds a request that is one message, in bytes; what is larger travels as a stream.
	MaxRequest = 64 << 10
	// Streams of one client at the same time. Members need one for each session and each peer's exchange in it.
	clientStreams = 32
	memberStreams = 256
)

// streams counts the streams that each caller has open.
type streams struct {
	mu   sync.Mutex
	open map[caller]int
	tell func(role Role, n int) // of streams that begin (1) and end (-1)
}

type caller struct {
	role Role
	name string
}

// enter takes a place for one stream. The caller calls leave once.
func (s *streams) enter(p Principal) (leave func(), refused *Error) {
	most := memberStreams
	if p.Role == Client {
		most = clientStreams
	}
	c := caller{p.Role, p.Name}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[c] >= most {
		return nil, Errorf(Busy, "end one first", "%s %s has %d streams open", p.Role, p.Name, most)
	}
	s.open[c]++
	s.tell(p.Role, 1)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.tell(p.Role, -1)
		if s.open[c]--; s.open[c] == 0 {
			delete(s.open, c)
		}
	}, nil
}

// small refuses a request of more than MaxRequest.
func small(request any) *Error {
	m, ok := request.(proto.Message)
	if !ok {
		return Errorf(Internal, "", "a request that is no message")
	}
	if n := proto.Size(m); n > MaxRequest {
		return Errorf(TooLarge, "", "a request of %d bytes; at most %d", n, MaxRequest)
	}
	return nil
}

// bounded is a server stream whose caller takes each message within the time, and sends one small request if it
// is not the caller who streams.
type bounded struct {
	grpc.ServerStream
	stall  time.Duration
	upload bool
}

// SendMsg ends with an error when the caller has not made room for m in time. The handler then ends the stream,
// which also ends the send; m must not change until then.
func (b *bounded) SendMsg(m any) error {
	sent := make(chan error, 1)
	go func() { sent <- b.ServerStream.SendMsg(m) }()
	over := time.NewTimer(b.stall)
	defer over.Stop()
	select {
	case err := <-sent:
		return err
	case <-over.C:
		return Errorf(TimedOut, "read what is sent", "the caller took nothing for %s", b.stall)
	}
}

// RecvMsg refuses a single request that is too large.
func (b *bounded) RecvMsg(m any) error {
	if err := b.ServerStream.RecvMsg(m); err != nil || b.upload {
		return err
	}
	if refused := small(m); refused != nil {
		return refused
	}
	return nil
}
