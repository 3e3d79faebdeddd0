// Package quota bounds what a client draws in a day: tuples of each kind, and bytes. A day begins at 00:00 UTC. What was
// drawn is kept by a Store, so that it outlives the process, and is charged in the same transaction as what is drawn:
// either both happen or neither.
//
// The day is that of the party's clock at the moment of the charge. A clock that goes back finds what was drawn on that
// day, and one that comes back to the present finds the present's: whatever the clock does, nobody draws more than its
// limit for each day that the clock has shown, as long as the Store remembers that day.
package quota

import (
	"fmt"
	"math"
	"time"

	"github.com/lodge-mpc/lodge/services/rpc"
)

// Day is a day in UTC, counted from 1 January 1970.
type Day int64

const seconds = 24 * 60 * 60

// DayOf is the day of a moment.
func DayOf(t time.Time) Day {
	s := t.Unix()
	if s < 0 {
		s -= seconds - 1 // round down, not to 0
	}
	return Day(s / seconds)
}

// Start is when the day begins.
func (d Day) Start() time.Time { return time.Unix(int64(d)*seconds, 0).UTC() }

func (d Day) String() string { return d.Start().Format(time.DateOnly) }

// Usage is what a client has drawn on a day.
type Usage struct {
	Tuples map[string]uint64 // by kind
	Bytes  uint64
}

// Store keeps usage. Both calls are of one transaction, in which the tuples are also set aside; no other charge of the
// same client lies between them. Of a client the earliest of very many days may be forgotten.
type Store interface {
	// Load gives what the client has drawn on the day: nothing, if there is no record.
	Load(client string, day Day) (Usage, error)
	// Add adds to it.
	Add(client string, day Day, kind string, tuples, bytes uint64) error
}

// Limits of a client. What is not there is not bounded, and 0 is nothing.
type Limits struct {
	Tuples map[string]uint64 // a day, by kind
	Bytes  *uint64           // a day
}

// Book charges clients.
type Book struct {
	limits map[string]Limits
	now    func() time.Time
}

// NewBook has the limits of clients by name; a client that is not there is not bounded, but what it draws is counted.
func NewBook(limits map[string]Limits, now func() time.Time) *Book {
	if now == nil {
		now = time.Now
	}
	return &Book{limits, now}
}

// Charge adds what a client is about to draw to what it has drawn today, or refuses with rpc.OverQuota and changes
// nothing. A draw is not split: the error says what would still be given.
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

// fits says whether used+more is at most the limit.
func fits(used, more, limit uint64) bool { return used <= limit && more <= limit-used }

func over(client, what string, used, more, limit uint64, day Day, now time.Time) error {
	left := limit - min(used, limit)
	e := rpc.Errorf(rpc.OverQuota, fmt.Sprintf("ask for at most %d, or again after %s", left, (day+1).Start().Format(time.RFC3339)),
		"client %s may draw %d %s a day, has drawn %d, and asks for %d", client, limit, what, used, more)
	if more <= limit { // tomorrow it can succeed
		e.Retry = (day + 1).Start().Sub(now)
	} else {
		e.Next = fmt.Sprintf("ask for at most %d", left)
	}
	return e
}
