package quota

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// kept is a Store that outlives a Book. A transaction works on a copy, which is discarded on abort.
type kept struct {
	usage map[string]Usage
	err   error
}

func newKept() *kept { return &kept{usage: map[string]Usage{}} }

func (k *kept) key(client string, day Day) string { return fmt.Sprint(client, " ", day) }

func (k *kept) Load(client string, day Day) (Usage, error) { return k.usage[k.key(client, day)], k.err }

func (k *kept) Add(client string, day Day, kind string, tuples, bytes uint64) error {
	u := k.usage[k.key(client, day)]
	u.Tuples = maps.Clone(u.Tuples)
	if u.Tuples == nil {
		u.Tuples = map[string]uint64{}
	}
	u.Tuples[kind] += tuples
	u.Bytes += bytes
	k.usage[k.key(client, day)] = u
	return k.err
}

func (k *kept) copy() *kept { return &kept{usage: maps.Clone(k.usage)} }

func limits(tuples, bytes uint64) map[string]Limits {
	return map[string]Limits{"mpc": {Tuples: map[string]uint64{"scalar": tuples, "bit": 0}, Bytes: &bytes}}
}

func TestCharge(t *testing.T) {
	now := time.Date(2026, 3, 4, 22, 0, 0, 0, time.UTC)
	b := NewBook(limits(100, 5000), func() time.Time { return now })
	s := newKept()
	for _, c := range []struct {
		client, kind  string
		tuples, bytes uint64
		refused       string
		retry         time.Duration
	}{
		{"mpc", "scalar", 60, 600, "", 0},
		{"mpc", "scalar", 41, 410, "may draw 100 scalar tuples a day, has drawn 60, and asks for 41 (ask for at most 40, or again after 2026-03-05T00:00:00Z)", 2 * time.Hour},
		{"mpc", "scalar", 40, 400, "", 0},
		{"mpc", "scalar", 1, 1, "ask for at most 0", 2 * time.Hour},
		{"mpc", "scalar", 101, 1, "(ask for at most 0)", 0},
		{"mpc", "scalar", math.MaxUint64, 1, "(ask for at most 0)", 0},
		{"mpc", "bit", 1, 1, "may draw 0 bit tuples", 0},
		{"mpc", "matrix", 7, 3900, "", 0}, // no limit on the number
		{"mpc", "matrix", 1, 101, "may draw 5000 bytes a day, has drawn 4900, and asks for 101", 2 * time.Hour},
		{"mpc", "matrix", 1, 100, "", 0},
		{"mpc", "matrix", 1, 1, "5000 bytes", 2 * time.Hour},
		{"mpc", "matrix", 1, 0, "", 0},
		{"web", "scalar", 1 << 60, 1 << 60, "", 0}, // no limits
		{"web", "scalar", math.MaxUint64, 0, "invalid_request", 0},
	} {
		before := s.copy()
		err := b.Charge(s, c.client, c.kind, c.tuples, c.bytes)
		if c.refused == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		e := rpc.FromError(err)
		if e == nil || !strings.Contains(e.Error(), c.refused) || e.Retry != c.retry || c.client == "mpc" && e.Code != rpc.OverQuota {
			t.Errorf("%+v: %v, retry %v", c, err, e.Retry)
		}
		if fmt.Sprint(before.usage) != fmt.Sprint(s.usage) {
			t.Errorf("%+v was refused and charged", c)
		}
	}
	now = now.Add(2 * time.Hour)
	if err := b.Charge(s, "mpc", "scalar", 100, 5000); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

func TestDays(t *testing.T) {
	for text, want := range map[string]Day{
		"1970-01-01T00:00:00Z": 0, "1970-01-01T23:59:59Z": 0, "1970-01-02T00:00:00Z": 1, "1969-12-31T23:59:59Z": -1, "1969-12-31T00:00:00Z": -1,
		"1969-12-30T23:59:59Z": -2, "2026-03-04T23:30:00-01:00": 20517, "2026-03-05T00:00:00Z": 20517, "2026-03-04T23:59:59.999Z": 20516,
	} {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			t.Fatal(err)
		}
		d := DayOf(at)
		if d != want || d.Start().After(at) || !(d + 1).Start().After(at) {
			t.Errorf("%s is day %d, from %s", text, d, d.Start())
		}
	}
	if s := Day(20517).String(); s != "2026-03-05" {
		t.Error(s)
	}
}

// However the clock changes, and across restarts and aborted transactions, a client draws at most
// its limit for each day that the clock has shown, and it can draw the remaining amount.
func TestClockJumps(t *testing.T) {
	const limit = 1000
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 7))
		now := time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)
		s, b := newKept(), NewBook(limits(limit, 1<<40), func() time.Time { return now })
		drawn := map[Day]uint64{}
		for range 300 {
			switch rng.IntN(8) {
			case 0: // back or forward, by up to three days
				now = now.Add(time.Duration(rng.Int64N(6*seconds)-3*seconds) * time.Second)
			case 1:
				b = NewBook(limits(limit, 1<<40), func() time.Time { return now })
			default:
				now = now.Add(time.Duration(rng.IntN(3600)) * time.Second)
			}
			n, tx := rng.Uint64N(limit/2), s.copy()
			err := b.Charge(tx, "mpc", "scalar", n, n)
			day := DayOf(now)
			if fits := drawn[day]+n <= limit; fits != (err == nil) {
				t.Fatalf("seed %d: %d more on %s after %d: %v", seed, n, day, drawn[day], err)
			}
			if err == nil && rng.IntN(4) > 0 { // otherwise the transaction aborts
				s = tx
				drawn[day] += n
			}
		}
	}
}

// Nothing is drawn if the store fails.
func TestStoreFails(t *testing.T) {
	s := newKept()
	s.err = errors.New("disk")
	if err := NewBook(nil, nil).Charge(s, "mpc", "scalar", 1, 1); !errors.Is(err, s.err) {
		t.Error(err)
	}
}

// A limit below the current usage refuses draws, without integer underflow.
func TestLoweredLimit(t *testing.T) {
	s := newKept()
	now := func() time.Time { return time.Unix(1, 0) }
	if err := NewBook(limits(100, 100), now).Charge(s, "mpc", "scalar", 90, 90); err != nil {
		t.Fatal(err)
	}
	for _, n := range []uint64{0, 1, math.MaxUint64} {
		err := NewBook(limits(50, 100), now).Charge(s, "mpc", "scalar", n, 0)
		if e := rpc.FromError(err); e == nil || e.Code != rpc.OverQuota || !strings.Contains(e.Next, "at most 0") {
			t.Errorf("%d: %v", n, err)
		}
	}
}
