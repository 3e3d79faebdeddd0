// Package transfer sends byte strings over the streams of calls in chunks, and collects them.
package transfer

import (
	"errors"
	"io"
	"slices"
)

// chunkBytes is the number of bytes sent at a time.
const chunkBytes = 1 << 20

// Stream is the sending side of a call that streams its requests.
type Stream[M any] interface {
	Send(*M) error
	CloseSend() error
}

// Sender sends the requests of a call, up to the first error.
type Sender[M any] struct {
	stream Stream[M]
	err    error
}

// To returns a Sender for a stream.
func To[M any](stream Stream[M]) *Sender[M] { return &Sender[M]{stream: stream} }

// Send sends one message.
func (s *Sender[M]) Send(m *M) {
	if s.err == nil {
		s.err = s.stream.Send(m)
	}
}

// Bytes sends b in the messages that message makes of its chunks.
func (s *Sender[M]) Bytes(b []byte, message func(chunk []byte) *M) {
	for chunk := range slices.Chunk(b, chunkBytes) {
		s.Send(message(chunk))
	}
}

// Close ends the stream and returns the first error. It returns nil if the other side ended the
// call, because receiving the response returns the cause.
func (s *Sender[M]) Close() error {
	if s.err == nil {
		s.err = s.stream.CloseSend()
	}
	if errors.Is(s.err, io.EOF) {
		return nil
	}
	return s.err
}

// Collect concatenates the chunks of a response. It stops early when it has more than most bytes,
// which the caller must check.
func Collect[M interface{ GetChunk() []byte }](recv func() (M, error), most int) (b []byte, err error) {
	for len(b) <= most {
		m, err := recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		b = append(b, m.GetChunk()...)
	}
	return b, nil
}
