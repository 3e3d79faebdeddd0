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
