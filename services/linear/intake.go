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

// limit returns the time limit for the whole upload.
func (x *intake) limit() time.Duration { return patience(x.all) }

// upload receives a client's stream like [rpc.Receive]. The time limit comes from the result of
// open. The time that the server itself needs does not count.
func upload[M any, S interface{ limit() time.Duration }](recv func() (M, error), open func(first M) (S, error), add func(S, M) error) (state S, err error) {
	for opened, left, spent := false, grace, time.Duration(0); ; {
		began, over := time.Now(), time.NewTimer(left-spent)
		m, err := rpc.Within(over, rpc.Errorf(rpc.TimedOut, "send the upload without pauses", "the upload did not arrive within %s", left), recv)
		over.Stop()
		spent += time.Since(began)
		switch {
		case errors.Is(err, io.EOF) && opened:
			return state, nil
		case errors.Is(err, io.EOF):
			return state, rpc.NoHeader
		case err == nil && !opened:
			if state, err = open(m); err == nil {
				opened, left = true, state.limit()
			}
		}
		if err == nil {
			err = add(state, m)
		}
		if err != nil {
			return state, err
		}
	}
}
