package lodge

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"math/big"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/clients/go/verify"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// Shares is a stream of one party's shares of a reservation. Read gives the bytes of the records of docs/export-format.md,
// and Tuples, Triples and their like give them as values; use one or the other. A stream that breaks is taken up again
// where it ended, also when the party was restarted, for as long as the client is patient and the lease lasts.
//
// Everything that came over a stream is compared with the party's SHA-256 at its end; what came before a break has TLS
// alone to vouch for it. Values are given out before the end: only when Read has returned io.EOF, or Err nil after a range
// over values, are all of them as the party sent them. Close a stream that is not read to its end.
type Shares struct {
	Reservation *Reservation
	// Modulus is the prime of the field.
	Modulus *big.Int
	// ElementBytes is the length of an element, TupleBytes that of a tuple's record at this party.
	ElementBytes, TupleBytes int

	from   uint64 // tuple that it begins with
	ctx    context.Context
	stop   context.CancelFunc
	client *Client
	tuples tuplesv1.TuplesServiceClient
	digest []byte // of the reservation, the same in every stream

	stream grpc.ServerStreamingClient[tuplesv1.FetchResponse] // nil: to be opened
	sum    hash.Hash                                          // of the stream
	skip   int64                                              // bytes of the stream that were given out before it began
	chunk  []byte                                             // received and not yet given out
	at     int64                                              // bytes given out, and those before the first
	done   bool
	err    error
}

// Fetch begins to draw a reservation from the client's party. The party gives it to one client; the same client may draw it
// again while the lease lasts, and gets the same bytes.
func (c *Client) Fetch(ctx context.Context, reservation string, options ...FetchOption) (*Shares, error) {
	tuples, err := c.tuples()
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Shares{ctx: ctx, stop: stop, client: c, tuples: tuples, Reservation: &Reservation{ID: reservation}}
	for _, o := range options {
		o(s)
	}
	p := c.pause()
	for {
		err := s.open()
		if err == nil {
			return s, nil
		}
		if err := p.after(ctx, err); err != nil {
			stop()
			return nil, err
		}
	}
}

// open begins a stream at the tuple that the next byte belongs to.
func (s *Shares) open() *Error {
	s.stream = nil
	from := int64(s.from)
	if s.TupleBytes > 0 {
		// All bytes may be here, and the sum not: then the last tuple comes again.
		from = min(s.at/int64(s.TupleBytes), int64(s.Reservation.Count)-1)
		s.skip = s.at - from*int64(s.TupleBytes)
	}
	stream, err := s.tuples.Fetch(s.ctx, &tuplesv1.FetchRequest{ReservationId: s.Reservation.ID, From: uint64(from)})
	if err != nil {
		return FromError(err)
	}
	head, err := stream.Recv()
	if err != nil {
		return FromError(err)
	}
	if err := s.begin(head); err != nil {
		return err
	}
	s.stream, s.sum = stream, sha256.New()
	return nil
}

// begin takes the first message of a stream.
func (s *Shares) begin(head *tuplesv1.FetchResponse) *Error {
	r := head.GetReservation()
	if r.GetId() != s.Reservation.ID {
		return errorf(BadShares, "", "the party sends reservation %q", r.GetId())
	}
	if s.TupleBytes > 0 {
		if !bytes.Equal(r.GetDigest(), s.digest) || head.GetTupleBytes() != uint64(s.TupleBytes) {
			return errorf(BadShares, "", "the party sends another reservation %s than before", r.GetId())
		}
		return nil
	}
	p, err := verify.Modulus(r.GetClass().GetParams(), r.GetClass().GetField())
	if err != nil {
		return errorf(BadShares, "use a newer client", "%v", err)
	}
	x := reservationOf(r)
	size := (p.BitLen() + 7) / 8
	if want := layoutOf(x.Class, s.client.config.own()).elements() * size; want == 0 || head.GetTupleBytes() != uint64(want) {
		return errorf(BadShares, "", "a tuple of kind %q has %d bytes, not %d", x.Class.Kind, want, head.GetTupleBytes())
	}
	if x.Count == 0 || x.Count > 1<<62/head.GetTupleBytes() {
		return errorf(BadShares, "", "a reservation of %d tuples", x.Count)
	}
	s.Reservation, s.Modulus, s.ElementBytes, s.TupleBytes, s.digest = x, p, size, int(head.GetTupleBytes()), r.GetDigest()
	s.at = int64(s.from) * int64(s.TupleBytes)
	return nil
}

// Size returns the length of all records in bytes.
func (s *Shares) Size() int64 { return int64(s.Reservation.Count) * int64(s.TupleBytes) }

// Read returns the next bytes; io.EOF after the last of them, when their sum was right.
func (s *Shares) Read(b []byte) (int, error) {
	for len(s.chunk) == 0 && len(b) > 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.done {
			return 0, io.EOF
		}
		if err := s.more(); err != nil {
			s.fail(err)
		}
	}
	n := copy(b, s.chunk)
	clear(s.chunk[:n])
	s.chunk, s.at = s.chunk[n:], s.at+int64(n)
	return n, nil
}

// fail ends the stream for good.
func (s *Shares) fail(err *Error) {
	s.err = err
	s.stop()
}

// more takes the next message, over a new stream if the last one broke.
func (s *Shares) more() *Error {
	p := s.client.pause()
	for {
		err := s.receive()
		if err == nil {
			return nil
		}
		s.stream, s.chunk = nil, nil
		if err := p.after(s.ctx, err); err != nil {
			return err
		}
	}
}

func (s *Shares) receive() *Error {
	if s.stream == nil {
		if err := s.open(); err != nil {
			return err
		}
	}
	r, err := s.stream.Recv()
	if err == io.EOF {
		return errorf(Unavailable, "", "the stream ended without its checksum")
	}
	if err != nil {
		return FromError(err)
	}
	chunk := r.GetChunk()
	s.sum.Write(chunk)
	again := min(s.skip, int64(len(chunk)))
	s.skip -= again
	s.chunk = chunk[again:]
	if s.at+int64(len(s.chunk)) > s.Size() {
		s.chunk = nil
		return errorf(BadShares, "", "the party sends more than %d bytes", s.Size())
	}
	if len(r.GetSha256()) == 0 {
		return nil
	}
	if !bytes.Equal(r.GetSha256(), s.sum.Sum(nil)) {
		return errorf(BadShares, "draw the reservation again", "the shares differ from their checksum")
	}
	if s.at+int64(len(s.chunk)) != s.Size() {
		return errorf(BadShares, "draw the reservation again", "the party sent %d bytes of %d", s.at, s.Size())
	}
	s.done = true
	_, _ = s.stream.Recv() // the end of the call; the shares are here, whatever it says
	s.stop()
	return nil
}

// Close ends the stream.
func (s *Shares) Close() error {
	s.stop()
	clear(s.chunk)
	s.chunk = nil
	if s.err == nil && !s.done {
		s.err = errorf(Cancelled, "", "the stream was closed")
	}
	return nil
}

// Err is what a range over values ended with: nil after the last tuple.
func (s *Shares) Err() error { return s.err }

// layout is how the elements of a tuple's record at this party are arranged.
type layout struct {
	parts []int // elements of each value: 1, or those of a matrix or an image
	clear int
}

func (l layout) elements() int {
	n := l.clear
	for _, p := range l.parts {
		n += 2 * p
	}
	return n
}

// layoutOf a class, as the party of this index has it; nothing for a kind that is not known.
func layoutOf(c Class, party int) (l layout) {
	switch c.Kind {
	case tuplefile.Scalar:
		l.parts = []int{1, 1, 1}
	case tuplefile.Matrix:
		l.parts = []int{c.Rows * c.Inner, c.Inner * c.Columns, c.Rows * c.Columns}
	case tuplefile.ConvolutionKind:
		if c.Convolution.Check() == nil {
			x, w, y := c.Convolution.Sizes()
			l.parts = []int{x, w, y}
		}
	case tuplefile.Square, tuplefile.Inverse:
		l.parts = []int{1, 1}
	case tuplefile.Random, tuplefile.Bit:
		l.parts = []int{1}
	case tuplefile.Input:
		l.parts = []int{1}
		if c.InputParty == party {
			l.clear = 1
		}
	}
	return l
}

// String describes the stream and none of its shares.
func (s *Shares) String() string {
	r := s.Reservation
	return fmt.Sprintf("%d %s tuples over %s (%s), epoch %d, reservation %s", r.Count, r.Class.Kind, r.Class.Field, r.Class.Params, r.Epoch, r.ID)
}

// GoString is String.
func (s *Shares) GoString() string { return s.String() }
