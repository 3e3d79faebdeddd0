package exchange_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/services/internal/testnet"
	"github.com/lodge-mpc/lodge/services/session/exchange"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// Parties of a group are numbered by their position in it. A party of the roster outside the group
// receives nothing and is refused.
func TestGroup(t *testing.T) {
	n := testnet.New(t, 4, testnet.Options{})
	ctx := short(t)
	group := []round.Party{0, 1, 3}
	join := func(p int, group ...round.Party) *exchange.Streams {
		t.Helper()
		s, err := n.Parties[p].Exchange.Open(ref, pins, group...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Abort(&exchange.AbortedError{Outcome: "test"}, unsigned) })
		return s
	}
	s := []*exchange.Streams{join(0, group...), join(1, group...), join(3, group...)}
	shared, private := &body{frames: 3, size: 100}, round.Bytes([]byte("for one"))
	done := make(chan error, 3)
	go func() {
		done <- errors.Join(send(ctx, n, s[0], round.All, "a", shared), send(ctx, n, s[0], 2, "b", private))
	}()
	go func() { done <- take(ctx, n, s[1], round.All, "a", &body{frames: 3, size: 100}) }()
	go func() {
		done <- errors.Join(take(ctx, n, s[2], round.All, "a", &body{frames: 3, size: 100}), take(ctx, n, s[2], 2, "b", private))
	}()
	for range 3 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}

	// Party 2 is in the roster and tries to join the session.
	intruder := join(2, 0, 2)
	if _, err := intruder.Receive(ctx, from(0)); lost(err) == nil || lost(err).Check != exchange.CheckRefused ||
		!strings.Contains(lost(err).Reason, "one of others") || lost(err).Name != "p0" {
		t.Errorf("party 2: %v", err)
	}
	for p := range s {
		if err := s[p].Failed(); err != nil {
			t.Errorf("number %d: %v", p, err)
		}
	}
	for _, bad := range [][]round.Party{{0}, {1, 2}, {0, 4}, {-1, 0}, {1, 0}, {0, 0, 1}} {
		if x, err := n.Parties[0].Exchange.Open(job.Ref{JobID: "bad", Ordinal: 1}, pins, bad...); err == nil {
			t.Errorf("group %d passes", bad)
			x.Abort(&exchange.AbortedError{}, unsigned)
		}
	}
}

func lost(err error) *exchange.LostError {
	var l *exchange.LostError
	errors.As(err, &l)
	return l
}
