package linear

import (
	"errors"
	"io"
	"iter"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Time limits for uploads.
const (
	grace     = 2 * time.Minute
	leastRate = 64 << 10 // bytes per second beyond the grace time
)

// maxChunk is the maximum size of a chunk in bytes, in both directions.
const maxChunk = 1 << 20

// patience returns the time limit for an upload of the given number of bytes.
func patience(size uint64) time.Duration {
	return grace + time.Duration(size/leastRate)*time.Second
}

// part is a section of an upload: its size, and a function that consumes its bytes without keeping
// them.
type part struct {
	size int
	take func([]byte) error
}

// intake splits an upload into its parts. It buffers at most one part.
type intake struct {
	next func() (part, bool)
	stop func()
	now  part
	more bool
	held []byte // received bytes of the current part
	all  uint64 // total bytes of the upload
	come uint64
}

// intakeOf returns an intake for the parts, which have all bytes in total. The caller must call
// close.
func intakeOf(parts iter.Seq[part], all uint64) *intake {
	x := &intake{all: all}
	x.next, x.stop = iter.Pull(parts)
	x.now, x.more = x.next()
	return x
}

// close wipes the buffer. It accepts a nil intake.
func (x *intake) close() {
	if x != nil {
		clear(x.held[:cap(x.held)])
		x.stop()
	}
}

// add consumes the next bytes.
func (x *intake) add(chunk []byte) error {
	if len(chunk) > maxChunk {
		return rpc.Errorf(rpc.TooLarge, "", "a chunk of %d bytes; at most %d", len(chunk), maxChunk)
	}
	//lodge:check linearservice/more [swap=x.all=>x.all + 1<<20]
	//  [run=TestMultiplyRefuses|FuzzIntake] a client uploads more than the set and the shape need
	if x.come += uint64(len(chunk)); x.come > x.all {
		return rpc.Errorf(rpc.TooLarge, "", "more than the %d bytes that set and shape require", x.all)
	}
	for len(chunk) > 0 {
		n := min(len(chunk), x.now.size-len(x.held))
		piece := chunk[:n]
		chunk = chunk[n:]
		if n < x.now.size {
			if cap(x.held) < x.now.size { // the buffer is still empty, so no copy of possibly secret bytes stays behind
				x.held = make([]byte, 0, x.now.size)
			}
			if x.held = append(x.held, piece...); len(x.held) < x.now.size {
				return nil
			}
			piece = x.held
		}
		if err := x.now.take(piece); err != nil {
			return refusal(err)
		}
		clear(x.held)
		x.held = x.held[:0]
		x.now, x.more = x.next()
	}
	return nil
}

// whole returns an error unless the upload is complete.
func (x *intake) whole() error {
	//lodge:check linearservice/less [run=TestMultiplyRefuses|FuzzIntake] an upload that ends early
	//  is accepted
	if x.more {
		return rpc.Errorf(rpc.Invalid, "send all bytes that set and shape require", "the upload ended after %d of %d bytes", x.come, x.all)
	}
	return nil
}

// upload passes the messages of a client's stream to each. After the first message, each returns
// the time limit for the whole upload. The time that each itself needs does not count.
func upload[T any](recv func() (T, error), each func(T) (time.Duration, error)) error {
	type message struct {
		m   T
		err error
	}
	left, spent := grace, time.Duration(0)
	for {
		got, began, over := make(chan message, 1), time.Now(), time.NewTimer(left-spent)
		go func() { // ends at the latest with the handler, which ends the stream
			m, err := recv()
			got <- message{m, err}
		}()
		select {
		case r := <-got:
			over.Stop()
			spent += time.Since(began)
			if errors.Is(r.err, io.EOF) {
				return nil
			}
			if r.err != nil {
				return r.err
			}
			limit, err := each(r.m)
			if err != nil {
				return err
			}
			left = limit
		case <-over.C:
			return rpc.Errorf(rpc.TimedOut, "send the upload without pauses", "the upload did not arrive within %s", left)
		}
	}
}

// send sends bytes to a client in chunks.
func send(b []byte, f func(chunk []byte) error) error {
	for len(b) > 0 {
		n := min(len(b), maxChunk)
		if err := f(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}
