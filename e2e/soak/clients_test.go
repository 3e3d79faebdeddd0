//go:build soak

package soak

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"sync"
	"time"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/e2e/outside"
	"github.com/lodge-mpc/lodge/engine/params"
)

// drawing has one client per party. The clients reserve and draw tuples and remember them.
type drawing struct {
	c       *cluster
	clients []*lodge.Client
	p       *big.Int

	mu       sync.Mutex
	seen     map[[16]byte]string // reservation of every tuple, by the digest of its share at party 0
	drawn    int                 // tuples
	refused  int                 // reservations
	problems []string
}

func newDrawing(c *cluster) *drawing {
	c.T.Helper()
	d := &drawing{c: c, seen: map[[16]byte]string{}}
	s, err := params.Lookup(*set)
	outside.Must(c.T, err)
	f, err := s.Field("p128")
	outside.Must(c.T, err)
	d.p = f.P()
	for i := range c.net.Parties {
		config, err := lodge.Load(c.net.Clients[i])
		outside.Must(c.T, err)
		client, err := lodge.Dial(config)
		outside.Must(c.T, err)
		c.T.Cleanup(func() { client.Close() })
		d.clients = append(d.clients, client)
	}
	return d
}

func (d *drawing) problem(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.problems) < 20 {
		d.problems = append(d.problems, fmt.Sprintf(format, args...))
	}
}

// run reserves and draws tuples until ctx is done.
func (d *drawing) run(ctx context.Context, count uint64) {
	for ctx.Err() == nil {
		wait := *pause
		if err := d.once(ctx, count); err != nil && ctx.Err() == nil {
			d.mu.Lock()
			d.refused++
			d.mu.Unlock()
			wait = max(wait, time.Second)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		}
	}
}

// report periodically logs the progress.
func (d *drawing) report(ctx context.Context) {
	for every := time.NewTicker(max(time.Minute, *span/12)); ; {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		d.mu.Lock()
		d.c.T.Logf("%d tuples drawn, %d reservations failed, %d problems", d.drawn, d.refused, len(d.problems))
		d.mu.Unlock()
	}
}

// leased is the maximum time for drawing a reservation, during which processes may be down.
const leased = 3 * time.Minute

// once draws one reservation from every party.
func (d *drawing) once(ctx context.Context, count uint64) error {
	call, cancel := context.WithTimeout(ctx, leased)
	defer cancel()
	r, err := d.clients[0].Reserve(call, lodge.Class{Kind: "scalar", Field: "p128"}, count, lodge.Lease(leased))
	if err != nil {
		return err
	}
	shares := make([][]lodge.Triple, len(d.clients))
	errs := make([]error, len(d.clients))
	var wg sync.WaitGroup
	for i, client := range d.clients {
		wg.Go(func() {
			for {
				if shares[i], errs[i] = fetch(call, client, r.ID); errs[i] == nil || call.Err() != nil {
					return
				}
				time.Sleep(200 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	d.check(r, shares)
	return nil
}

func fetch(ctx context.Context, client *lodge.Client, id string) (list []lodge.Triple, err error) {
	s, err := client.Fetch(ctx, id)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	for t := range s.Triples() {
		list = append(list, t)
	}
	return list, s.Err()
}

// check reconstructs the tuples from their shares and asserts that no tuple appears twice.
func (d *drawing) check(r *lodge.Reservation, shares [][]lodge.Triple) {
	sum := func(at int, of func(lodge.Triple) lodge.Element) *big.Int {
		s := new(big.Int)
		for i := range shares {
			s.Add(s, of(shares[i][at]).Int())
		}
		return s.Mod(s, d.p)
	}
	for i := range shares {
		if uint64(len(shares[i])) != r.Count {
			d.problem("%s: party %d gave %d of %d tuples", r.ID, i, len(shares[i]), r.Count)
			return
		}
	}
	for at := range shares[0] {
		a, b, c := sum(at, func(t lodge.Triple) lodge.Element { return t.A }), sum(at, func(t lodge.Triple) lodge.Element { return t.B }),
			sum(at, func(t lodge.Triple) lodge.Element { return t.C })
		if a.Mul(a, b).Mod(a, d.p); a.Cmp(c) != 0 {
			d.problem("%s: tuple %d is not a triple", r.ID, at)
			return
		}
		t := shares[0][at]
		h := sha256.Sum256(append(append(append([]byte(nil), t.A...), t.B...), t.C...))
		d.mu.Lock()
		before, twice := d.seen[[16]byte(h[:16])]
		d.seen[[16]byte(h[:16])] = r.ID
		d.drawn++
		d.mu.Unlock()
		if twice {
			d.problem("%s: tuple %d was drawn before, as %s", r.ID, at, before)
			return
		}
	}
}
