package stock

import (
	"math"
	"time"
)

// window is over how long rates are averaged: what happened a window ago counts 1/e of what happens now.
const window = 5 * time.Minute

// leastWindow is the shortest time that a rate is taken over, when counting has only just begun.
const leastWindow = 10 * time.Second

// average is an exponential average of how many tuples a second come or go.
type average struct {
	since time.Time // when counting began
	last  time.Time
	sum   float64 // tuples, each with its weight at last
}

// add counts n tuples at a time. Times that go back count as no time.
func (a *average) add(n uint64, at time.Time) {
	if a.since.IsZero() {
		a.since, a.last = at, at
	}
	a.sum, a.last = a.at(at)+float64(n), later(a.last, at)
}

// at is the sum at a time.
func (a *average) at(t time.Time) float64 {
	return a.sum * math.Exp(-max(0, t.Sub(a.last).Seconds())/window.Seconds())
}

// rate is tuples a second at a time: the sum, over the weight of the time that was counted.
func (a *average) rate(t time.Time) float64 {
	if a.since.IsZero() {
		return 0
	}
	counted := max(later(a.last, t).Sub(a.since), leastWindow)
	return a.at(t) / (window.Seconds() * (1 - math.Exp(-counted.Seconds()/window.Seconds())))
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// flow is what comes and goes of a class in an epoch.
type flow struct{ made, reserved average }

// flows are those of all places since counting began.
type flows struct {
	began time.Time
	at    map[place]*flow
}

func newFlows(began time.Time) *flows { return &flows{began, map[place]*flow{}} }

func (f *flows) of(p place) *flow {
	if f.at[p] == nil {
		f.at[p] = &flow{average{since: f.began, last: f.began}, average{since: f.began, last: f.began}}
	}
	return f.at[p]
}

// forget drops places of which nothing has been heard for many windows.
func (f *flows) forget(now time.Time) {
	for p, x := range f.at {
		if now.Sub(x.made.last) > 20*window && now.Sub(x.reserved.last) > 20*window {
			delete(f.at, p)
		}
	}
}

// never is a time span that does not end.
const never = time.Duration(math.MaxInt64)

// forecast says when none of the tuples that are available is left, and when there are as many as high, if they come
// and go at these rates.
func forecast(available, high uint64, made, reserved float64) (empty, full time.Duration) {
	empty, full = never, never
	switch {
	case available == 0:
		empty = 0
	case reserved > made:
		empty = span(float64(available) / (reserved - made))
	}
	switch {
	case high == 0:
	case available >= high:
		full = 0
	case made > reserved:
		full = span(float64(high-available) / (made - reserved))
	}
	return empty, full
}

// span is so many seconds; what is longer than a hundred years is never.
func span(seconds float64) time.Duration {
	if !(seconds < 100*365*24*3600) {
		return never
	}
	return time.Duration(seconds * float64(time.Second))
}
