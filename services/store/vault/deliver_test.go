package vault

import (
	"bytes"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A reservation goes to one client, who gets the same bytes until the lease ends, before and after
// a restart.
func TestReplay(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 2000, 30)
	ranges := []stock.Range{in(0, 600, 1000), in(1, 0, 7), in(0, 0, 1), in(1, 29, 1)}
	r := reserve(t, v, "r", ranges...)
	if got, err := v.Reservation("r"); err != nil || got.Digest != r.Digest || r.Count() != 1009 {
		t.Fatalf("%+v, %v", got, err)
	}
	r, first, err := v.Deliver("r", "alice", 0)
	if err != nil || !first || r.Client != "alice" || r.State != stock.Consumed || r.Delivered.IsZero() {
		t.Fatalf("%+v, %v, %v", r, first, err)
	}
	for restart := range 2 {
		_, first, err := v.Deliver("r", "alice", 0)
		if err != nil || first {
			t.Fatalf("again: %v, %v", first, err)
		}
		got, err := fetch(v, "r", "alice")
		wantShares(t, got, err, ranges...)
		for _, from := range []uint64{1, 999, 1000, 1006, 1007, 1008, 1009} {
			got, err := readAll(v, &r, from)
			if err != nil || !bytes.Equal(got, expected(ranges)[from*tupleLen:]) {
				t.Errorf("from %d: %d bytes, %v", from, len(got), err)
			}
		}
		_, _, err = v.Shares(&r, 1010)
		refused(t, err, vaulterr.ErrRange)
		_, err = fetch(v, "r", "bob")
		refused(t, err, vaulterr.ErrDelivered)
		_, err = fetch(v, "r", "")
		refused(t, err, vaulterr.ErrState)
		if restart == 0 {
			v = d.open(t, k)
		}
	}
}

func TestNamedClients(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 100)
	next := uint64(0)
	for name, c := range map[string]struct {
		clients []string
		party   int
		client  string
		ok      bool
	}{
		"anybody":                  {nil, 1, "alice", true},
		"one for all":              {[]string{"alice"}, 2, "alice", true},
		"one for all, another":     {[]string{"alice"}, 0, "bob", false},
		"one each":                 {[]string{"alice", "bob"}, 1, "bob", true},
		"one each, of another":     {[]string{"alice", "bob"}, 1, "alice", false},
		"one each, no such party":  {[]string{"alice", "bob"}, 2, "alice", false},
		"one each, negative party": {[]string{"alice", "bob"}, -1, "alice", false},
	} {
		r := reservation(v, "r"+string(rune('0'+next)), in(0, next, 1))
		r.Clients = c.clients
		_, err := v.Reserve(r)
		must(t, err)
		next++
		_, _, err = v.Deliver(r.ID, c.client, c.party)
		if c.ok && err != nil || !c.ok && !errors.Is(err, vaulterr.ErrDelivered) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// No byte leaves after the lease, not even of a stream that began before.
func TestLeaseEnds(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 3000)
	c := setClock(v)
	reserve(t, v, "r", in(0, 0, 2000))
	reserve(t, v, "s", in(0, 2000, 1))
	r, _, err := v.Deliver("r", "alice", 0)
	must(t, err)
	in0, _, err := v.Shares(&r, 0)
	must(t, err)
	defer in0.Close()
	_, err = in0.Read(make([]byte, 100))
	must(t, err)
	c.pass(time.Hour - 1)
	_, err = in0.Read(make([]byte, 100))
	must(t, err)
	c.pass(1)
	_, err = in0.Read(make([]byte, 100))
	refused(t, err, vaulterr.ErrExpired)
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrExpired)
	_, err = fetch(v, "s", "alice")
	refused(t, err, vaulterr.ErrExpired)
	c.pass(-time.Minute) // put back: the same client gets the same again, nobody else does
	_, err = fetch(v, "r", "bob")
	refused(t, err, vaulterr.ErrDelivered)
	got, err := fetch(v, "r", "alice")
	wantShares(t, got, err, in(0, 0, 2000))
	c.pass(time.Hour)
	must(t, v.Sweep())
	c.pass(-time.Hour) // too late
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrExpired)
	_, err = readAll(v, &r, 0)
	refused(t, err, vaulterr.ErrErased)
	_, err = fetch(v, "s", "alice")
	refused(t, err, vaulterr.ErrWithdrawn)
}

// A reservation with tuples of an erased batch delivers no tuples, not even the rest.
func TestDeliverOfRevoked(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 10, 10)
	reserve(t, v, "r", in(0, 0, 5), in(1, 0, 5))
	r, _, err := v.Deliver("r", "alice", 0)
	must(t, err)
	in0, _, err := v.Shares(&r, 0)
	must(t, err)
	defer in0.Close()
	must(t, v.RevokeBatch("batch-1", "test"))
	got, err := io.ReadAll(in0)
	refused(t, err, vaulterr.ErrErased)
	if !bytes.HasPrefix(expected(r.Ranges), got) {
		t.Error("other bytes")
	}
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrErased)
}
