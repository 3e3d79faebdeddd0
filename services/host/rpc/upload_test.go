package rpc

import (
	"errors"
	"io"
	"testing"
	"time"
)

func TestUpload(t *testing.T) {
	messages := []int{1, 2, 3}
	recv := func() (int, error) {
		if len(messages) == 0 {
			return 0, io.EOF
		}
		m := messages[0]
		messages = messages[1:]
		return m, nil
	}
	sum := 0
	if err := Upload(time.Minute, recv, func(m int) error { sum += m; return nil }); err != nil || sum != 6 {
		t.Errorf("%d, %v", sum, err)
	}
	broken := errors.New("broken")
	if err := Upload(time.Minute, func() (int, error) { return 0, broken }, func(int) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("a broken stream gives %v", err)
	}
	if err := Upload(time.Minute, func() (int, error) { return 1, nil }, func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("a refused message gives %v", err)
	}
	stop := make(chan struct{})
	defer close(stop)
	slow := func() (int, error) { <-stop; return 0, io.EOF }
	if err := Upload(10*time.Millisecond, slow, func(int) error { return nil }); !errors.Is(err, &Error{Code: TimedOut}) {
		t.Errorf("a slow client gives %v", err)
	}
}
