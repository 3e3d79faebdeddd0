package runner

import (
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

func TestClock(t *testing.T) {
	l := Limits{Idle: 10 * time.Second, Compute: 20 * time.Second, MinRate: 1000}
	t0 := time.Unix(0, 0)
	at := func(c *clock) time.Duration { return c.due.Sub(t0) }
	c := l.start(t0, 100_000, time.Second) // worth 100 s
	if at(c) != 34*time.Second || c.cap.Sub(t0) != 144*time.Second {
		t.Fatalf("start: %s, cap %s", at(c), c.cap.Sub(t0))
	}
	// The first frame ends the time for computing.
	c.progress(l, t0.Add(5*time.Second), 1)
	if at(c) != 15*time.Second {
		t.Errorf("first frame: %s", at(c))
	}
	// A trickle of one byte a second does not hold the session.
	for s := 6; at(c) > time.Duration(s)*time.Second; s++ {
		if s > 20 {
			t.Fatalf("a trickle still lives: %s", at(c))
		}
		c.progress(l, t0.Add(time.Duration(s)*time.Second), 1)
	}
	// A sender at twice the rate continues until all data has arrived, with a deadline never more
	// than Idle ahead.
	c = l.start(t0, 100_000, 0)
	for s := 1; s <= 50; s++ {
		now := t0.Add(time.Duration(s) * time.Second)
		if !c.due.After(now) {
			t.Fatalf("late at %d s", s)
		}
		c.progress(l, now, 2000)
		if c.due.Sub(now) > l.Idle {
			t.Fatalf("%s ahead", c.due.Sub(now))
		}
	}
	// Nothing goes beyond the cap.
	c = l.start(t0, 0, 0)
	for s := range 200 {
		c.progress(l, t0.Add(time.Duration(s)*time.Second), 1_000_000)
	}
	if at(c) != 40*time.Second {
		t.Errorf("cap: %s", at(c))
	}
	c.pause(time.Minute)
	if at(c) != 100*time.Second {
		t.Errorf("pause: %s", at(c))
	}
}

func TestLabels(t *testing.T) {
	for name, want := range map[string]string{
		"coin/commit": "coin/commit", "popk/12/open": "popk/open", "ddec.3": "ddec", "7": "local", "echo": "echo", "a-1-b": "a/b",
	} {
		if got := labelOf([]round.Want{{Name: name}}, nil); got != want {
			t.Errorf("%s: %s", name, got)
		}
	}
	if labelOf(nil, nil) != "local" || labelOf(nil, []round.Outgoing{{Message: round.Message{Name: "x"}}}) != "x" {
		t.Error("rounds without wants")
	}
}
