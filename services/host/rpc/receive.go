package rpc

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/tap"
)

// gRPC knows one limit for the messages of all methods, and reads the message of a unary call before any interceptor
// runs, for as long as the caller likes. This file reads messages itself: it looks at the length that precedes each
// message, refuses what is too large for the method before buffering it, and gives the caller a time.

// MaxRequest bounds a request that is one message, in bytes, where the rule of its method says nothing else. Larger
// requests travel as streams.
const MaxRequest = 64 << 10

// Pieces in which a message is read, in bytes. A message is a sixteenth of it at a time, between these.
const (
	leastPiece = 1 << 10
	mostPiece  = 64 << 10
)

// minUpload is what a caller that sends a message must keep up, in bytes per second.
const minUpload = 64 << 10

// incoming is what gRPC's stream gives below messages. transport.ServerStream has these methods; TestReceive fails
// where a new version of gRPC has not.
type incoming interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// errSlow cancels the context of a call whose message is late.
var errSlow = errors.New("rpc: the message did not arrive in time")

// patience ends a call whose message is late. gRPC waits for data under the context that tap returns and under no
// later one, which is why it begins there.
type patience struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

type patienceKey struct{}

// tap runs when the headers of a call have arrived. It refuses nothing: where it returns an error, gRPC keeps the timer
// of the deadline that the caller chose, for as long as that is (v1.85).
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, patienceKey{}, patience{ctx, cancel}), nil
}

// within gives the caller so long to send what is read next. The caller of within calls done when it has been read.
func within(ctx context.Context, d time.Duration) (done func()) {
	p, ok := ctx.Value(patienceKey{}).(patience)
	if !ok {
		return func() {}
	}
	t := time.AfterFunc(d, func() { p.cancel(errSlow) })
	return func() { t.Stop() }
}

// receiver reads the messages of one call.
type receiver struct {
	ctx   context.Context
	from  incoming
	most  int           // bytes of a message
	first time.Duration // for the first message to arrive; 0: as long as the caller likes
	slow  time.Duration // for any message, once its length has arrived, beside what its length takes; 0: likewise
	begun bool

	refused func(reason string)
}

func (s *Server) receiver(ctx context.Context, most int) (*receiver, *Error) {
	from, ok := grpc.ServerTransportStreamFromContext(ctx).(incoming)
	if !ok {
		return nil, Errorf(Internal, "", "this version of gRPC does not let messages be limited by method")
	}
	//lodge:check rpc/compressed run=TestCompressed a small message becomes a large one after its length was checked
	if c := from.RecvCompress(); c != "" && c != "identity" {
		return nil, Errorf(Invalid, "send requests without compression", "the request is compressed with %q", c)
	}
	return &receiver{ctx: ctx, from: from, most: most, first: s.opts.RequestTimeout, slow: s.opts.RequestTimeout, refused: s.opts.Refused}, nil
}

// message reads the next message into m. io.EOF says that there is none.
func (r *receiver) message(m any) error {
	if !r.begun && r.first > 0 {
		defer within(r.ctx, r.first)()
	}
	r.begun = true
	var header [5]byte // a flag and the length
	if err := r.from.ReadMessageHeader(header[:]); err != nil {
		return r.why(err)
	}
	n := binary.BigEndian.Uint32(header[1:])
	if header[0] != 0 {
		return Errorf(Invalid, "send requests without compression", "the request is compressed")
	}
	//lodge:check rpc/message-size run=TestReceive|TestRequestsAre|TestOversized a message is buffered whatever its length is
	if int64(n) > int64(r.most) {
		r.refused(RefusedMessage)
		return Errorf(TooLarge, "", "a message of %d bytes; this method takes at most %d", n, r.most)
	}
	if r.slow > 0 {
		defer within(r.ctx, r.slow+time.Duration(n)*time.Second/minUpload)()
	}
	data, err := r.read(int(n))
	if err != nil {
		return r.why(err)
	}
	defer data.Free()
	if err := Codec.Unmarshal(data, m); err != nil {
		return Errorf(Invalid, "", "the request cannot be decoded: %v", err)
	}
	return nil
}

// read reads n bytes. What comes in many small frames is copied together on the way: a byte in a frame of its own
// takes 60 bytes and more until then.
func (r *receiver) read(n int) (mem.BufferSlice, error) {
	var all mem.BufferSlice
	piece := min(max(n/16, leastPiece), mostPiece)
	for n > 0 {
		some, err := r.from.Read(min(n, piece))
		if err != nil {
			all.Free()
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		n -= some.Len()
		//lodge:check rpc/small-frames run=TestSmallFrames a message in frames of a byte takes sixty times its length
		if len(some) > 4+some.Len()/1024 {
			whole := mem.SliceBuffer(some.Materialize())
			some.Free()
			some = mem.BufferSlice{whole}
		}
		all = append(all, some...)
	}
	return all, nil
}

// only reads the one message of a call into m, and that no other follows.
func (r *receiver) only(m any) error {
	done := func() {}
	if r.first > 0 {
		done = within(r.ctx, r.first)
		r.begun = true
	}
	defer done()
	if err := r.message(m); err != nil {
		if errors.Is(err, io.EOF) {
			return Errorf(Invalid, "send one message", "a call without a message")
		}
		return err
	}
	switch err := r.from.ReadMessageHeader(make([]byte, 5)); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return r.why(err)
	}
	return Errorf(Invalid, "send one message", "a second message")
}

// why says that it was we who gave up.
func (r *receiver) why(err error) error {
	// The context of tap has the cause before anything wakes up. Those made of it get the cause later.
	if p, ok := r.ctx.Value(patienceKey{}).(patience); ok && errors.Is(context.Cause(p.ctx), errSlow) {
		r.refused(RefusedSlow)
		return Errorf(TimedOut, "send the request at once", "the request did not arrive in time")
	}
	return err
}
