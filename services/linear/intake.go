package linear

import (
	"errors"
	"io"
	"iter"
	"time"

	"github.com/lodge-mpc/lodge/services/rpc"
)

// How long clients may take for what they send.
const (
	grace     = 2 * time.Minute
	leastRate = 64 << 10 // bytes in a second beyond that
)

// maxChunk bounds a chunk in bytes, both ways.
const maxChunk = 1 << 20

// patience is how long a client may take for so many bytes.
func patience(size uint64) time.Duration {
	return grace + time.Duration(size/leastRate)*time.Second
}

// part is what comes next: so many bytes, and what takes them, which does not keep them.
type part struct {
	size int
	take func([]byte) error
}

// intake cuts what comes into its parts. It holds at most one of them.
type intake struct {
	next func() (part, bool)
	stop func()
	now  part
	more bool
	held []byte // of the part that comes
	all  uint64 // bytes that are to come
	come uint64
}

// intakeOf begins with the first of the parts, which have so many bytes. The caller calls close.
func intakeOf(parts iter.Seq[part], all uint64) *intake {
	x := &intake{all: all}
	x.next, x.stop = iter.Pull(parts)
	x.now, x.more = x.next()
	return x
}

// close wipes what is held; nil holds nothing.
func (x *intake) close() {
	if x != nil {
		clear(x.held[:cap(x.held)])
		x.stop()
	}
}

// add takes the bytes that come next.
func (x *intake) add(chunk []byte) error {
	if len(chunk) > maxChunk {
		return rpc.Errorf(rpc.TooLarge, "", "a chunk of %d bytes; at most %d", len(chunk), maxChunk)
	}
	//lodge:check linearservice/more [swap=x.all=>x.all + 1<<20]
	//  [run=TestMultiplyRefuses|FuzzIntake] a client uploads more than the set and the shape need
	if x.come += uint64(len(chunk)); x.come > x.all {
		return rpc.Errorf(rpc.TooLarge, "", "more than the %d bytes that set and shape fix", x.all)
	}
	for len(chunk) > 0 {
		n := min(len(chunk), x.now.size-len(x.held))
		piece := chunk[:n]
		chunk = chunk[n:]
		if n < x.now.size {
			if cap(x.held) < x.now.size { // nothing is held yet: no copy of what may be secret stays behind
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

// whole refuses an upload that has ended early.
func (x *intake) whole() error {
	//lodge:check linearservice/less [run=TestMultiplyRefuses|FuzzIntake] an upload that ends early
	//  is accepted
	if x.more {
		return rpc.Errorf(rpc.Invalid, "send all that set and shape fix", "the upload has ended after %d of %d bytes", x.come, x.all)
	}
	return nil
}

// upload gives the messages of a client's stream to each, which says after the first how long all may take to come. What
// each takes for itself does not count.
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
			return rpc.Errorf(rpc.TimedOut, "send everything at once", "what was to be sent did not come within %s", left)
		}
	}
}

// send gives a client bytes in chunks.
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
