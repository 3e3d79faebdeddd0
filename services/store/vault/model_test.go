package vault

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

var modelSeed = flag.Uint64("model-seed", 1, "seed of the histories of the model test")

// model is a vault as a map of tuples.
type model struct {
	t       *testing.T
	r       *rand.Rand
	d       *disk
	key     *seal.Key
	v       *Vault
	now     time.Time
	batches map[string][]tupleState
	revoked map[string]bool
	held    map[string]*held
	log     []string
}

type tupleState int

const (
	freeTuple tupleState = iota
	takenTuple
	goneTuple
)

type held struct {
	stock.Reservation
	withdrawn time.Time
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	for _, l := range m.log[max(0, len(m.log)-30):] {
		m.t.Log(l)
	}
	m.t.Fatalf(format, args...)
}

// want compares the result with the model.
func (m *model) want(what string, got, want error) {
	m.t.Helper()
	m.log = append(m.log, fmt.Sprintf("%s: %v", what, got))
	if !errors.Is(got, want) {
		m.fail("%s: %v, want %v", what, got, want)
	}
}

func (m *model) open() {
	m.v = m.d.open(m.t, m.key)
	m.v.Clock = func() time.Time { return m.now }
}

func (m *model) each(r *stock.Reservation, f func(*tupleState)) {
	for _, x := range r.Ranges {
		for i := x.First; i < x.End(); i++ {
			f(&m.batches[x.Batch][i])
		}
	}
}

func (m *model) pick() (string, *held) {
	id := fmt.Sprintf("r%d", m.r.IntN(12))
	return id, m.held[id]
}

func (m *model) reserve() {
	id, old := m.pick()
	var ranges []stock.Range
	for range 1 + m.r.IntN(3) {
		x := in(m.r.Uint64N(2), m.r.Uint64N(40), 1+m.r.Uint64N(12))
		ranges = append(ranges, x)
	}
	r := reservation(m.v, id, ranges...)
	if m.r.IntN(3) == 0 {
		r.Clients = []string{"alice"}
	}
	r.Lease = m.now.Add(time.Duration(1+m.r.IntN(100)) * time.Minute)
	if old != nil && m.r.IntN(2) == 0 {
		_, err := m.v.Reserve(old.Reservation)
		m.want("reserve again "+id, err, nil)
		return
	}
	_, err := m.v.Reserve(r)
	what := fmt.Sprintf("reserve %s %v", id, ranges)
	var want error
	count := map[string]int{}
	for _, x := range ranges {
		switch {
		case want != nil:
		case m.revoked[x.Batch]:
			want = vaulterr.ErrErased
		case x.End() > 40:
			want = vaulterr.ErrRange
		}
		for i := x.First; i < x.End() && want == nil; i++ {
			place := fmt.Sprint(x.Batch, i)
			if count[place]++; count[place] > 1 || m.batches[x.Batch][i] != freeTuple {
				want = vaulterr.ErrTaken
			}
		}
	}
	if old != nil {
		want = vaulterr.ErrExists
	}
	if want == vaulterr.ErrTaken && errors.Is(err, vaulterr.ErrErased) { // all of it is erased, and its batch is a tombstone
		for _, x := range ranges {
			if b, _ := m.v.Batch(x.Batch); b.State == stock.BatchConsumed {
				want = vaulterr.ErrErased
			}
		}
	}
	m.want(what, err, want)
	if want == nil {
		r.State = stock.Reserved
		m.held[id] = &held{Reservation: r}
		m.each(&r, func(s *tupleState) { *s = takenTuple })
	}
}

func (m *model) fetch() {
	id, r := m.pick()
	client := []string{"alice", "bob"}[m.r.IntN(2)]
	got, err := fetch(m.v, id, client)
	var want error
	switch {
	case r == nil:
		want = vaulterr.ErrNotFound
	case len(r.Clients) == 1 && client != r.Clients[0], r.State == stock.Consumed && r.Client != client:
		want = vaulterr.ErrDelivered
	case r.State == stock.Withdrawn || r.State == stock.Released:
		want = vaulterr.ErrWithdrawn
	case r.State == stock.Erased || !m.now.Before(r.Lease):
		want = vaulterr.ErrExpired
	default:
		for _, x := range r.Ranges {
			if m.revoked[x.Batch] {
				want = vaulterr.ErrErased
			}
		}
	}
	m.want(fmt.Sprintf("fetch %s for %s", id, client), err, want)
	if want == nil {
		if !bytes.Equal(got, expected(r.Ranges)) {
			m.fail("other bytes")
		}
		r.State, r.Client = stock.Consumed, client
	}
}

func (m *model) withdraw() {
	id, r := m.pick()
	out, err := m.v.Withdraw(id)
	if r == nil {
		m.want("withdraw "+id, err, vaulterr.ErrNotFound)
		return
	}
	m.want("withdraw "+id, err, nil)
	if r.State == stock.Reserved {
		r.State, r.withdrawn = stock.Withdrawn, m.now
	}
	if out.State != r.State {
		m.fail("%s is %s, want %s", id, out.State, r.State)
	}
}

func (m *model) release() {
	id, r := m.pick()
	discard := m.r.IntN(2) == 0
	_, err := m.v.Release(id, discard)
	var want error
	switch {
	case r == nil:
		want = vaulterr.ErrNotFound
	case r.State == stock.Released || r.State == stock.Erased:
	case discard:
		m.end(r)
	case r.State == stock.Withdrawn:
		r.State = stock.Released
		m.each(&r.Reservation, func(s *tupleState) { *s = freeTuple })
	case r.State == stock.Consumed:
		want = vaulterr.ErrDelivered
	default:
		want = vaulterr.ErrState
	}
	m.want(fmt.Sprintf("release %s, discard %v", id, discard), err, want)
}

func (m *model) end(r *held) {
	r.State = stock.Erased
	m.each(&r.Reservation, func(s *tupleState) { *s = goneTuple })
}

// sweep: the model does not know when what ended is forgotten, only from when on.
func (m *model) sweep() {
	m.want("sweep", m.v.Sweep(), nil)
	for id, r := range m.held {
		now, err := m.v.Reservation(id)
		switch {
		case r.State == stock.Reserved && !r.Lease.After(m.now):
			r.State, r.withdrawn = stock.Withdrawn, m.now
		case r.State == stock.Consumed && !r.Lease.After(m.now), r.State == stock.Withdrawn && !r.withdrawn.Add(stock.WithdrawnFor).After(m.now):
			m.end(r)
		}
		switch {
		case errors.Is(err, vaulterr.ErrNotFound) && (r.State == stock.Released || r.State == stock.Erased) && !r.Remembered().After(m.now):
			delete(m.held, id)
		case err != nil || now.State != r.State:
			m.fail("%s is %s, want %s: %v", id, now.State, r.State, err)
		}
	}
}

// agree compares all records.
func (m *model) agree() {
	for id, tuples := range m.batches {
		b, err := m.v.Batch(id)
		if err != nil {
			m.fail("%v", err)
		}
		var taken, gone stock.Spans
		for i, s := range tuples {
			one := stock.Span{First: uint64(i), Count: 1}
			if s != freeTuple {
				taken = taken.With(one)
			}
			if s == goneTuple {
				gone = gone.With(one)
			}
		}
		if !slices.Equal(taken, b.Taken) || !slices.Equal(gone, b.Gone) {
			m.fail("batch %s: taken %v, want %v; gone %v, want %v", id, b.Taken, taken, b.Gone, gone)
		}
	}
}

func (m *model) step() {
	switch n := m.r.IntN(100); {
	case n < 35:
		m.reserve()
	case n < 60:
		m.fetch()
	case n < 70:
		m.withdraw()
	case n < 82:
		m.release()
	case n < 90:
		m.now = m.now.Add(time.Duration(m.r.IntN(90)-20) * time.Minute)
	case n < 91:
		m.now = m.now.Add(time.Duration(m.r.IntN(8*24)) * time.Hour)
	case n < 97:
		m.sweep()
	case n < 99:
		m.log = append(m.log, "restart")
		m.open()
	default:
		if m.r.IntN(10) == 0 {
			id := fmt.Sprintf("batch-%d", m.r.IntN(2))
			m.want("revoke "+id, m.v.RevokeBatch(id, "model"), nil)
			if b, _ := m.v.Batch(id); b.State == stock.BatchRevoked {
				m.revoked[id] = true
			}
		}
	}
}

// Random histories against the model.
func TestModel(t *testing.T) {
	t.Parallel()
	for i := range uint64(150) {
		m := &model{t: t, r: rand.New(rand.NewPCG(*modelSeed, i)), d: newDisk(), key: &seal.Key{}, now: time.Now(),
			batches: map[string][]tupleState{}, revoked: map[string]bool{}, held: map[string]*held{}}
		m.log = append(m.log, fmt.Sprintf("history %d of seed %d", i, *modelSeed))
		m.open()
		stocked(t, m.v, 40, 40)
		for _, id := range []string{"batch-0", "batch-1"} {
			m.batches[id] = make([]tupleState, 40)
		}
		for range 120 {
			m.step()
			m.agree()
		}
	}
}
