package rpc

import (
	"encoding/binary"
	"net"
	"sync"

	"golang.org/x/net/http2"
)

// gRPC ends a handler when it has queued the response, and keeps the stream with its headers and
// the response until the caller receives them. A caller whose flow-control window is zero never
// does, and may have 512 such streams on each connection. This file tracks the frames of a
// connection, so that a call counts as running until its stream has ended on the wire.

// wire counts the streams of one connection. The zero value is ready to use.
type wire struct {
	mu      sync.Mutex
	open    map[uint32]bool // streams that have begun and not yet ended on the wire
	last    uint32          // the caller's highest stream
	running int             // calls with a running handler
	late    []func()        // callbacks of calls whose handler ended before the stream
	closed  bool
}

// began counts a call with a running handler.
func (w *wire) began() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running++
}

// ended counts the end of a handler. leave is called when a stream without a running handler has
// ended.
func (w *wire) ended(leave func()) {
	w.mu.Lock()
	w.running--
	w.late = append(w.late, leave)
	w.unlock()
}

// close calls all remaining callbacks.
func (w *wire) close() {
	w.mu.Lock()
	w.closed = true
	w.unlock()
}

// unlock calls the callbacks of calls whose streams have ended, and unlocks. A stream without a
// running handler either has a waiting response, or its handler is about to start.
func (w *wire) unlock() {
	//lodge:check rpc/untaken [swap=max(0, len(w.open)-w.running)=>0] [run=TestUntakenResponses] responses
	//  that nobody takes fill the memory
	waiting := max(0, len(w.open)-w.running)
	//lodge:check rpc/untaken-closed [run=TestUntakenResponses] a caller that closes its connections
	//  shuts its other calls out
	if w.closed {
		waiting = 0
	}
	n := max(0, len(w.late)-waiting)
	leave := w.late[:n:n]
	w.late = w.late[n:]
	w.mu.Unlock()
	for _, f := range leave {
		f()
	}
}

// received tracks a frame from the caller.
func (w *wire) received(f http2.FrameHeader) {
	w.mu.Lock()
	switch {
	case f.Type == http2.FrameHeaders && f.StreamID > w.last && f.StreamID%2 == 1:
		if w.last = f.StreamID; w.open == nil {
			w.open = map[uint32]bool{}
		}
		w.open[f.StreamID] = true
	case f.Type == http2.FrameRSTStream:
		delete(w.open, f.StreamID)
	}
	w.unlock()
}

// sent tracks a frame of the server.
func (w *wire) sent(f http2.FrameHeader) {
	ends := f.Type == http2.FrameRSTStream ||
		(f.Type == http2.FrameHeaders || f.Type == http2.FrameData) && f.Flags.Has(http2.FlagDataEndStream)
	if !ends {
		return
	}
	w.mu.Lock()
	delete(w.open, f.StreamID)
	w.unlock()
}

// framed is a connection whose frames are tracked, above TLS.
type framed struct {
	net.Conn
	wire    *wire
	in, out follower
	greeted bool // the caller's preface was skipped
}

// Read implements net.Conn. gRPC reads in one goroutine.
func (f *framed) Read(b []byte) (int, error) {
	if !f.greeted {
		f.greeted, f.in.skip = true, len(http2.ClientPreface)
	}
	n, err := f.Conn.Read(b)
	f.in.follow(b[:n], f.wire.received)
	return n, err
}

// Write implements net.Conn. gRPC writes from one goroutine at a time, and never again after an
// error. Callbacks run before the bytes are sent, so that the caller's next call is admitted.
func (f *framed) Write(b []byte) (int, error) {
	f.out.follow(b, f.wire.sent)
	return f.Conn.Write(b)
}

// follower finds frame headers in a stream of bytes.
type follower struct {
	skip int // bytes until the next header
	head [9]byte
	got  int // bytes of head so far
}

func (f *follower) follow(b []byte, frame func(http2.FrameHeader)) {
	for len(b) > 0 {
		if f.skip > 0 {
			n := min(f.skip, len(b))
			f.skip, b = f.skip-n, b[n:]
			continue
		}
		n := copy(f.head[f.got:], b)
		f.got, b = f.got+n, b[n:]
		if f.got == len(f.head) {
			f.got = 0
			f.skip = int(binary.BigEndian.Uint32(f.head[:]) >> 8)
			frame(http2.FrameHeader{
				Type: http2.FrameType(f.head[3]), Flags: http2.Flags(f.head[4]),
				StreamID: binary.BigEndian.Uint32(f.head[5:]) & (1<<31 - 1),
			})
		}
	}
}
