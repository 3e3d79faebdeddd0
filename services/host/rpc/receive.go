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

// gRPC has one message limit for all methods, and reads the message of a unary call without a
// deadline before any interceptor runs. This file reads messages itself: it checks the length that
// precedes each message, rejects a message that is too large for the method before buffering it,
// and sets a deadline.

// MaxRequest limits a request that is one message, in bytes, unless the rule of its method says
// otherwise. Larger requests must be streams.
const MaxRequest = 64 << 10

// A message is read in pieces of a sixteenth of its length, within these limits in bytes.
const (
	leastPiece = 1 << 10
	mostPiece  = 64 << 10
)

// minUpload is the lowest rate of a caller that sends a message, in bytes per second.
const minUpload = 64 << 10

// incoming has the methods of gRPC's transport.ServerStream that this file uses. TestReceive fails
// if a new version of gRPC lacks them.
type incoming interface {
	ReadMessageHeader(header []byte) error
	Read(n int) (mem.BufferSlice, error)
	RecvCompress() string
}

// errSlow cancels the context of a call whose message is late.
var errSlow = errors.New("rpc: the message did not arrive in time")

// patience cancels a call whose message is late. gRPC waits for data under the context that tap
// returns, not under a later one, so the deadline must be installed there.
type patience struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
}

type patienceKey struct{}

// tap runs when the headers of a call have arrived. It never returns an error: gRPC (v1.85) would
// then keep the timer of the deadline that the caller chose, however long that is.
func (s *Server) tap(ctx context.Context, _ *tap.Info) (context.Context, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	return context.WithValue(ctx, patienceKey{}, patience{ctx, cancel}), nil
}

// within sets a deadline d for the next read. The caller must call done after the read.
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
	most  int           // largest message in bytes
	first time.Duration // time limit for the arrival of the first message; 0 means none
	slow  time.Duration // time limit for each message after its length has arrived, plus a time for its length; 0 means none
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

// message reads the next message into m. It returns io.EOF if there is none.
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
		return Errorf(TooLarge, "", "a message of %d bytes; this method accepts at most %d", n, r.most)
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

// read reads n bytes. It merges many small frames as they arrive: a byte in a frame of its own
// takes 60 bytes or more until it is merged.
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

// only reads the one message of a call into m, and checks that no other follows.
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

// why returns the timeout error if this side cancelled the call, and err otherwise.
func (r *receiver) why(err error) error {
	// The context of tap has its cause before anything wakes up. Contexts derived from it get the
	// cause later.
	if p, ok := r.ctx.Value(patienceKey{}).(patience); ok && errors.Is(context.Cause(p.ctx), errSlow) {
		r.refused(RefusedSlow)
		return Errorf(TimedOut, "send the request at once", "the request did not arrive in time")
	}
	return err
}
