package rpc

import (
	"errors"
	"io"
	"time"
)

// Upload passes the messages of a client's stream to each until the stream ends, each fails, or the
// time limit passes. The limit keeps a slow uploader from occupying a stream for long.
func Upload[T any](limit time.Duration, recv func() (T, error), each func(T) error) error {
	type message struct {
		m   T
		err error
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		got := make(chan message, 1)
		go func() { // ends with the handler at the latest, which ends the stream
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
			return Errorf(TimedOut, "send all messages without pauses", "the upload took more than %s", limit)
		}
	}
}
