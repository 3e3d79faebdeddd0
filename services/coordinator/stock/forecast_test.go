package stock

import (
	"math"
	"testing"
	"time"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 0.02*max(1, math.Abs(b)) }

// Batches of 1200 tuples every minute give a rate of 20 per second from the first minutes on. The
// rate decays when no more batches arrive.
func TestAverage(t *testing.T) {
	began := time.Unix(1e9, 0)
	var a average
	if a.rate(began) != 0 {
		t.Error("a rate without tuples")
	}
	a = average{since: began, last: began}
	at := began
	for minute := 1; minute <= 60; minute++ {
		at = at.Add(time.Minute)
		a.add(1200, at)
		if r := a.rate(at); minute >= 2 && (r < 19 || r > 23) { // right after a batch the rate is a little higher
			t.Errorf("%f a second after %d minutes", r, minute)
		}
	}
	settled := a.rate(at)
	if r := a.rate(at.Add(window)); !near(r, settled/math.E) {
		t.Errorf("%f a second after a window without tuples, %f before", r, settled)
	}
	if r := a.rate(at.Add(-time.Hour)); !near(r, settled) {
		t.Errorf("%f a second after the clock was set back, %f before", r, settled)
	}
	a.add(1200, at.Add(-time.Hour))
	if r := a.rate(at); r <= settled {
		t.Errorf("%f a second: tuples after the clock was set back do not count", r)
	}
	// The first tuples of a process do not count as a burst.
	first := average{since: began, last: began}
	first.add(1000, began.Add(time.Millisecond))
	if r := first.rate(began.Add(time.Millisecond)); r > 1000/leastWindow.Seconds()*1.1 {
		t.Errorf("%f a second of 1000 tuples", r)
	}
}

func TestForecast(t *testing.T) {
	for _, c := range []struct {
		name            string
		available, high uint64
		made, reserved  float64
		empty, full     time.Duration
	}{
		{"at rest", 10, 20, 0, 0, never, never},
		{"idle without a policy", 10, 0, 0, 0, never, never},
		{"none", 0, 20, 0, 0, 0, never},
		{"empty, none arrive, some are requested", 0, 20, 0, 5, 0, never},
		{"filling", 10, 20, 2, 0, never, 5 * time.Second},
		{"filling while some are reserved", 10, 20, 3, 1, never, 5 * time.Second},
		{"filling from nothing", 0, 20, 2, 0, 0, 10 * time.Second},
		{"draining", 100, 200, 1, 3, 50 * time.Second, never},
		{"full", 20, 20, 1, 0, never, 0},
		{"full and draining", 30, 20, 0, 3, 10 * time.Second, 0},
		{"balanced", 10, 20, 3, 3, never, never},
		{"beyond the longest time", 1 << 60, 1 << 61, 0, 1e-9, never, never},
	} {
		if empty, full := forecast(c.available, c.high, c.made, c.reserved); empty != c.empty || full != c.full {
			t.Errorf("%s: empty in %s, full in %s; want %s and %s", c.name, empty, full, c.empty, c.full)
		}
	}
}

func TestFlowsForget(t *testing.T) {
	began := time.Unix(1e9, 0)
	f := newFlows(began)
	f.of(place{"a", 1}).made.add(1, began)
	f.of(place{"b", 1}).reserved.add(1, began.Add(15*window))
	f.forget(began.Add(25 * window))
	if len(f.at) != 1 || f.at[place{"b", 1}] == nil {
		t.Errorf("%v is not removed", f.at)
	}
}
