// Package quota limits the tuples of each kind and the bytes that a client draws per day. A day
// starts at 00:00 UTC. A Store persists the usage. The charge and the draw are in the same
// transaction: either both happen or neither.
//
// The day is determined by the party's clock at the time of the charge. If the clock goes back,
// charges count towards the usage of the earlier day, and after it returns, towards the current
// day's usage. So however the clock changes, no client draws more than its limit for each day that
// the clock has shown, as long as the Store remembers that day.
package quota

import (
	"fmt"
	"math"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Day is a day in UTC, counted from 1 January 1970.
type Day int64

const seconds = 24 * 60 * 60

// DayOf returns the day of a time.
func DayOf(t time.Time) Day {
	s := t.Unix()
	if s < 0 {
		s -= seconds - 1 // round down, not to 0
	}
	return Day(s / seconds)
}

// Start returns the start of the day.
func (d Day) Start() time.Time { return time.Unix(int64(d)*seconds, 0).UTC() }

func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// Usage is the amount that a client has drawn on a day.
type Usage struct {
	Tuples map[string]uint64 // by kind
	Bytes  uint64
}

// Store persists usage. Both calls belong to one transaction, which also reserves the tuples; no
// other charge of the same client may happen between them. The Store may drop a client's oldest
// days if it has very many.
type Store interface {
	// Load returns the client's usage on the day, or an empty Usage if there is no record.
	Load(client string, day Day) (Usage, error)
	// Add adds to the client's usage on the day.
	Add(client string, day Day, kind string, tuples, bytes uint64) error
}

// Limits are the daily limits of a client. A missing entry means no limit; 0 allows nothing.
type Limits struct {
	Tuples map[string]uint64 // per day, by kind
	Bytes  *uint64           // per day
}

// Book charges clients.
type Book struct {
	limits map[string]Limits
	now    func() time.Time
}

// NewBook returns a Book with the limits of clients by name. A client without an entry has no
// limit, but its usage is counted.
func NewBook(limits map[string]Limits, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{limits, now}
}

// Charge adds a draw to the client's usage of today, or returns rpc.OverQuota without changes. It
// never splits a draw; the error states the remaining amount.
func (b *Book) Charge(s Store, client, kind string, tuples, bytes uint64) error {
	now := b.now()
	day := DayOf(now)
	used, err := s.Load(client, day)
	if err != nil {
		return fmt.Errorf("quota: %w", err)
	}
	l := b.limits[client]
	if most, ok := l.Tuples[kind]; ok && !fits(used.Tuples[kind], tuples, most) {
		return over(client, kind+" tuples", used.Tuples[kind], tuples, most, day, now)
	}
	if l.Bytes != nil && !fits(used.Bytes, bytes, *l.Bytes) {
		return over(client, "bytes", used.Bytes, bytes, *l.Bytes, day, now)
	}
	if math.MaxUint64-used.Bytes < bytes || math.MaxUint64-used.Tuples[kind] < tuples {
		return rpc.Errorf(rpc.Invalid, "ask for less", "%d tuples of %d bytes", tuples, bytes)
	}
	if err := s.Add(client, day, kind, tuples, bytes); err != nil {
		return fmt.Errorf("quota: %w", err)
	}
	return nil
}

// fits reports whether used+more is at most the limit.
func fits(used, more, limit uint64) bool { return used <= limit && more <= limit-used }

func over(client, what string, used, more, limit uint64, day Day, now time.Time) error {
	left := limit - min(used, limit)
	e := rpc.Errorf(rpc.OverQuota, fmt.Sprintf("ask for at most %d, or again after %s", left, (day+1).Start().Format(time.RFC3339)),
		"client %s may draw %d %s a day, has drawn %d, and asks for %d", client, limit, what, used, more)
	if more <= limit { // it can succeed tomorrow
		e.Retry = (day + 1).Start().Sub(now)
	} else {
		e.Next = fmt.Sprintf("ask for at most %d", left)
	}
	return e
}
