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

	"github.com/lodge-mpc/lodge/clients/go/verify"
	"github.com/lodge-mpc/lodge/engine/kind"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
)

// Shares is a stream of one party's shares of a reservation. Read returns the bytes of the records
// of docs/reference/export-format.md; [Shares.Triples] and similar methods return them as values.
// Use one or the other. A broken stream is resumed where it ended, even after a restart of the
// party, as long as the client's patience and the lease last.
//
// At the end of a stream, all data received over it is compared with the party's SHA-256; data
// received before a break is protected only by TLS. Values are returned before the end. They are
// known to be complete and as the party sent them only when Read has returned [io.EOF], or Err
// returns nil after a range over values. The caller must close a stream that it does not read to
// the end.
type Shares struct {
	Reservation *Reservation
	// Modulus is the prime of the field.
	Modulus *big.Int
	// ElementBytes is the size of an element, and TupleBytes that of a tuple's record at this
	// party.
	ElementBytes, TupleBytes int

	from   uint64 // the stream's first tuple
	ctx    context.Context
	stop   context.CancelFunc
	client *Client
	tuples tuplesv1.TuplesServiceClient
	digest []byte // of the reservation, the same in every stream

	stream grpc.ServerStreamingClient[tuplesv1.FetchResponse] // nil if not open
	sum    hash.Hash                                          // of the stream
	skip   int64                                              // bytes of the stream that were returned before it began
	chunk  []byte                                             // received and not yet returned
	at     int64                                              // bytes returned, plus those before the first tuple
	done   bool
	err    error
}

// Fetch starts drawing a reservation from the client's party. The party gives a reservation to one
// client only; the same client may draw it again while the lease lasts, and receives the same
// bytes.
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

// open opens a stream at the tuple of the next byte.
func (s *Shares) open() *Error {
	s.stream = nil
	from := int64(s.from)
	if s.TupleBytes > 0 {
		// If all bytes have been received but not the sum, the last tuple is requested again.
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

// begin processes the first message of a stream.
func (s *Shares) begin(head *tuplesv1.FetchResponse) *Error {
	r := head.GetReservation()
	if r.GetId() != s.Reservation.ID {
		return Errorf(BadShares, "", "the party sends reservation %q", r.GetId())
	}
	if s.TupleBytes > 0 {
		if !bytes.Equal(r.GetDigest(), s.digest) || head.GetTupleBytes() != uint64(s.TupleBytes) {
			return Errorf(BadShares, "", "the party changed reservation %s between two streams", r.GetId())
		}
		return nil
	}
	p, err := verify.Modulus(r.GetClass().GetParams(), r.GetClass().GetField())
	if err != nil {
		return Errorf(BadShares, "use a newer client", "%v", err)
	}
	x := reservationOf(r)
	size := (p.BitLen() + 7) / 8
	if want := x.Class.elements(s.client.config.own()) * size; want == 0 || head.GetTupleBytes() != uint64(want) {
		return Errorf(BadShares, "", "a tuple of kind %q has %d bytes, not %d", x.Class.Kind, want, head.GetTupleBytes())
	}
	if x.Count == 0 || x.Count > 1<<62/head.GetTupleBytes() {
		return Errorf(BadShares, "", "a reservation of %d tuples", x.Count)
	}
	s.Reservation, s.Modulus, s.ElementBytes, s.TupleBytes, s.digest = x, p, size, int(head.GetTupleBytes()), r.GetDigest()
	s.at = int64(s.from) * int64(s.TupleBytes)
	return nil
}

// Size returns the length of all records in bytes.
func (s *Shares) Size() int64 { return int64(s.Reservation.Count) * int64(s.TupleBytes) }

// Read returns the next bytes. It returns [io.EOF] after the last byte, if the checksum matched.
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

// fail ends the stream permanently.
func (s *Shares) fail(err *Error) {
	s.err = err
	s.stop()
}

// more receives the next message, over a new stream if the last one broke.
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
		return Errorf(Unavailable, "", "the stream ended without its checksum")
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
		return Errorf(BadShares, "", "the party sends more than %d bytes", s.Size())
	}
	if len(r.GetSha256()) == 0 {
		return nil
	}
	if !bytes.Equal(r.GetSha256(), s.sum.Sum(nil)) {
		return Errorf(BadShares, "draw the reservation again", "the shares differ from their checksum")
	}
	if s.at+int64(len(s.chunk)) != s.Size() {
		return Errorf(BadShares, "draw the reservation again", "the party sent %d bytes of %d", s.at, s.Size())
	}
	s.done = true
	_, _ = s.stream.Recv() // receives the end of the call; its status is irrelevant because the shares are complete
	s.stop()
	return nil
}

// Close closes the stream.
func (s *Shares) Close() error {
	s.stop()
	clear(s.chunk)
	s.chunk = nil
	if s.err == nil && !s.done {
		s.err = Errorf(Cancelled, "", "the stream was closed")
	}
	return nil
}

// Err returns the error that ended a range over values: nil after the last tuple.
func (s *Shares) Err() error { return s.err }

// elements returns the number of elements of a tuple's record at the party with this index; 0 for
// an unknown kind or an invalid shape.
func (c Class) elements(party int) int {
	k, s := kind.Of(c.Kind), c.shape()
	if k.CheckShape(s) != nil {
		return 0
	}
	n := 2 * k.Values(s)
	if c.InputParty == party {
		n += k.Clear(s)
	}
	return n
}

// String describes the stream without its shares.
func (s *Shares) String() string {
	r := s.Reservation
	return fmt.Sprintf("%d %s tuples over %s (%s), epoch %d, reservation %s", r.Count, r.Class.Kind, r.Class.Field, r.Class.Params, r.Epoch, r.ID)
}

// GoString returns String.
func (s *Shares) GoString() string { return s.String() }
