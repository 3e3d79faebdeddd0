package rpc

import (
	"time"

	"golang.org/x/time/rate"
)

// Rate limits how often a client may call: a token bucket with a capacity of Burst calls, refilled
// at PerSecond. The zero value sets no limit.
type Rate struct {
	PerSecond float64
	Burst     int
}

// buckets holds the buckets of the clients with a rate, by name. The configuration determines them;
// callers cannot add any.
type buckets map[string]*rate.Limiter

func newBuckets(d *Directory) buckets {
	b := buckets{}
	add := func(p Principal) {
		if p.Role == Client && p.Rate != (Rate{}) && b[p.Name] == nil {
			b[p.Name] = rate.NewLimiter(rate.Limit(p.Rate.PerSecond), p.Rate.Burst)
		}
	}
	for _, p := range d.entries {
		add(p)
	}
	for _, t := range d.subjects {
		add(t.principal)
	}
	return b
}

// take removes one call from the client's bucket, or returns an error that says when the next call
// is possible.
func (b buckets) take(p Principal, now time.Time) *Error {
	l := b[p.Name]
	if p.Role != Client || l == nil {
		return nil
	}
	if l.AllowN(now, 1) {
		return nil
	}
	missing := max(0, 1-l.TokensAt(now))
	wait := time.Duration(missing/float64(l.Limit())*float64(time.Second)).Truncate(time.Millisecond) + time.Millisecond
	e := Errorf(RateLimited, "try again in "+wait.String(), "client %s may make %g calls a second, %d at once", p.Name, p.Rate.PerSecond, p.Rate.Burst)
	e.Retry = wait
	return e
}
