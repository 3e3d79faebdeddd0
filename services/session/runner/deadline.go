package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/engine/protocol/round"
)

// Limits bounds the time that peers may take.
type Limits struct {
	// Idle is how long a peer may make no progress once it sends.
	Idle time.Duration
	// Compute is how long a peer may compute before it sends the first byte of a round, in addition
	// to four times the duration of this party's own last step.
	Compute time.Duration
	// MinRate is the lowest rate of a sending peer, in bytes per second.
	MinRate int64
}

// clock tracks the deadline of one peer in one round. Every accepted frame extends the deadline by
// size/MinRate, but never to more than Idle from now, so that neither silence nor a trickle of data
// can hold a session. A cap that follows from the size of the expected messages limits the deadline
// as a whole.
type clock struct {
	due      time.Time
	cap      time.Time
	begun    bool
	bytes    int64 // received in this round
	mostMade int64 // bytes that the round's wants allow
}

func (l Limits) start(now time.Time, most int64, ownStep time.Duration) *clock {
	due := now.Add(l.Idle + l.Compute + 4*ownStep)
	return &clock{due: due, cap: due.Add(l.Idle + l.worth(most)), mostMade: most}
}

// worth returns the time that this many bytes may take at MinRate.
func (l Limits) worth(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / float64(l.MinRate) * float64(time.Second))
}

// progress moves the due time for a frame of this size.
func (c *clock) progress(l Limits, now time.Time, size int) {
	c.bytes += int64(size)
	latest := now.Add(l.Idle)
	next := c.due.Add(l.worth(int64(size)))
	//lodge:check runner/rate-idle [drop=next.After(latest)] [run=TestClock] a silent peer holds the
	//  session forever
	if !c.begun || next.After(latest) {
		next = latest
	}
	c.begun = true
	//lodge:check runner/rate [run=TestClock] a peer that trickles data holds the session forever
	if next.After(c.cap) {
		next = c.cap
	}
	c.due = next
}

// pause extends the deadline by time that this party itself used.
func (c *clock) pause(d time.Duration) {
	c.due = c.due.Add(d)
	c.cap = c.cap.Add(d)
}

// earliest returns the first due time. clocks must not be empty.
func earliest(clocks map[round.Party]*clock) time.Time {
	var first time.Time
	for _, c := range clocks {
		if first.IsZero() || c.due.Before(first) {
			first = c.due
		}
	}
	return first
}

// late returns the failure of a round whose deadline has passed.
func (d *driver) late(now time.Time) *Failure {
	f := &Failure{Outcome: Timeout, Round: d.label, Index: d.index}
	var reasons []string
	for _, p := range d.awaited() {
		c := d.clocks[p]
		if c.due.After(now) {
			continue
		}
		f.Suspects = append(f.Suspects, p)
		r := fmt.Sprintf("%s sent %d of at most %d bytes in %s and then not enough",
			d.name(p), c.bytes, c.mostMade, now.Sub(d.since).Round(time.Millisecond))
		if trouble := d.o.Session.Trouble(p); trouble != "" {
			r += " (it cannot be reached: " + trouble + ")"
		}
		reasons = append(reasons, r)
	}
	f.Reason = strings.Join(reasons, "; ")
	return f
}

// awaited lists the peers whose messages are missing, ascending.
func (d *driver) awaited() []round.Party {
	var ps []round.Party
	for p := range d.clocks {
		ps = append(ps, p)
	}
	slices.Sort(ps)
	return ps
}
