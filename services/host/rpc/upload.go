package rpc

import (
	"errors"
	"io"
	"time"
)

// Upload passes the messages of a client's stream to each until the stream ends, each fails, or the
// time limit passes. The limit keeps a slow uploader from occupying a stream for long.
func Upload[T any](limit time.Duration, recv func() (T, error), each func(T) error) error {
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		m, err := Within(over, Errorf(TimedOut, "send all messages without pauses", "the upload took more than %s", limit), recv)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(m)
		}
		if err != nil {
			return err
		}
	}
}

// NoHeader is the error for an upload without a header.
var NoHeader = Errorf(Invalid, "send the header first", "no header")

// Receive is Upload for a stream whose first message has a header. It calls open with that message
// and then add with every message, the first included. It returns the result of open even if add
// has failed, so that the caller can release it.
func Receive[M, S any](limit time.Duration, recv func() (M, error), open func(first M) (S, error), add func(S, M) error) (state S, err error) {
	opened := false
	err = Upload(limit, recv, func(m M) error {
		if !opened {
			if state, err = open(m); err != nil {
				return err
			}
			opened = true
		}
		return add(state, m)
	})
	if err == nil && !opened {
		err = NoHeader
	}
	return state, err
}

// Within returns the result of f, or the error late when the timer fires before. f then continues
// until the handler has ended, which ends the handler's stream.
func Within[T any](over *time.Timer, late *Error, f func() (T, error)) (result T, err error) {
	type returned struct {
		result T
		err    error
	}
	done := make(chan returned, 1)
	go func() {
		result, err := f()
		done <- returned{result, err}
	}()
	select {
	case r := <-done:
		return r.result, r.err
	case <-over.C:
		return result, late
	}
}
