package rpc

import (
	"errors"
	"io"
	"time"
)

// Upload gives the messages of a client's stream to each, until the client has sent all, each fails, or the limit
// is over: whoever uploads slowly does not hold a place for long.
func Upload[T any](limit time.Duration, recv func() (T, error), each func(T) error) error {
	type message struct {
		m   T
		err error
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		got := make(chan message, 1)
		go func() { // ends at the latest with the handler, which ends the stream
			m, err := recv()
			got <- message{m, err}
		}()
		select {
		case r := <-got:
			if errors.Is(r.err, io.EOF) {
				return nil
			}
			if r.err != nil {
				return r.err
			}
			if err := each(r.m); err != nil {
				return err
			}
		case <-over.C:
			return Errorf(TimedOut, "send everything at once", "the upload took more than %s", limit)
		}
	}
}
