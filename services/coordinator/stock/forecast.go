package stock

import (
	"math"
	"time"
)

// window is the time constant of the averaged rates: an event one window ago has the weight 1/e of
// an event now.
const window = 5 * time.Minute

// leastWindow is the minimum averaging time, for a process that has just begun to count.
const leastWindow = 10 * time.Second

// average is an exponential average of the number of tuples per second.
type average struct {
	since time.Time // beginning of the counting
	last  time.Time
	sum   float64 // weighted number of tuples, as of last
}

// add counts n tuples at a time. A time before the last one counts as the last one.
func (a *average) add(n uint64, at time.Time) {
	if a.since.IsZero() {
		a.since, a.last = at, at
	}
	a.sum, a.last = a.at(at)+float64(n), later(a.last, at)
}

// at returns the weighted sum at a time.
func (a *average) at(t time.Time) float64 {
	return a.sum * math.Exp(-max(0, t.Sub(a.last).Seconds())/window.Seconds())
}

// rate returns the tuples per second at a time: the weighted sum divided by the weight of the
// counted time.
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

// flow holds the rates at which tuples of a class in an epoch are made and reserved.
type flow struct{ made, reserved average }

// flows holds the flows of all places since counting began.
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

// forget drops places without tuples for many windows.
func (f *flows) forget(now time.Time) {
	for p, x := range f.at {
		if now.Sub(x.made.last) > 20*window && now.Sub(x.reserved.last) > 20*window {
			delete(f.at, p)
		}
	}
}

// never is an infinite duration.
const never = time.Duration(math.MaxInt64)

// forecast returns when the available tuples are used up, and when their number reaches high, if
// tuples are made and reserved at these rates.
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

// span returns a duration in seconds; more than a hundred years becomes never.
func span(seconds float64) time.Duration {
	if !(seconds < 100*365*24*3600) {
		return never
	}
	return time.Duration(seconds * float64(time.Second))
}
