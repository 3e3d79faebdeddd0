package rpc

import (
	"time"

	"golang.org/x/time/rate"
)

// Rate bounds how often a client may call: a bucket of Burst calls that fills with PerSecond. Zero bounds nothing.
type Rate struct {
	PerSecond float64
	Burst     int
}

// buckets are those of the clients that have a rate, by name. There is one for each client of the configuration, and no
// caller can make more.
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

// take takes one call out of the client's bucket, or says when there will be one.
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
