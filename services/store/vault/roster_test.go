package vault

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// rosterOf is a roster of keys, whose digest is as its name.
func rosterOf(name byte, signers ...string) keys.Roster {
	r := keys.Roster{Hash: [32]byte{name}}
	for _, k := range signers {
		r.Keys = append(r.Keys, []byte(k))
	}
	return r
}

// Permissions for an epoch under its roster, under another roster of the same parties, and under a
// roster of others.
func TestStanding(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	must(t, v.Pin(keys.Roster{Keys: rosterOf(0, "a", "b").Keys})) // whose digest is that of the epochs of tests
	stocked(t, v, 20)
	addEpoch(t, v, 2, "decryption")
	must(t, v.ActivateEpoch(2))
	held := 0
	for _, c := range []struct {
		roster              keys.Roster
		standing            keys.Standing
		works, gives, reads error
	}{
		{keys.Roster{Keys: rosterOf(0, "a", "b").Keys}, keys.SameRoster, nil, nil, nil},
		{rosterOf(1, "a", "b"), keys.SameParties, vaulterr.ErrRoster, nil, nil},
		{rosterOf(2, "b", "a"), keys.OtherParties, vaulterr.ErrRoster, vaulterr.ErrRoster, nil},
		{rosterOf(3, "a", "b", "c"), keys.OtherParties, vaulterr.ErrRoster, vaulterr.ErrRoster, nil},
		{rosterOf(4, "a", "other"), keys.OtherParties, vaulterr.ErrRoster, vaulterr.ErrRoster, nil},
		{keys.Roster{Keys: rosterOf(0, "a", "b").Keys}, keys.SameRoster, nil, nil, nil},
	} {
		must(t, v.Pin(c.roster))
		e, err := v.Epoch(1)
		must(t, err)
		if s := v.Standing(&e); s != c.standing {
			t.Errorf("roster %d: standing %d, want %d", c.roster.Hash[0], s, c.standing)
		}
		check := func(what string, err, want error) {
			t.Helper()
			if want == nil && err != nil || want != nil && !errors.Is(err, want) {
				t.Errorf("roster %d: %s: %v, want %v", c.roster.Hash[0], what, err, want)
			}
		}
		in1, err := v.OpenEpochSecret(1)
		check("the secret", err, c.works)
		closeAll(in1)
		check("a session", v.SpendDecryptions(2, 0), c.works)
		_, _, err = v.RecordDecryption(ledger.LedgerKey{Epoch: 2, Digest: [32]byte{9}}, "alice", []byte("x"))
		check("a decryption", err, c.works)
		if c.works != nil {
			check("a batch", storeBatch(v, batchOf("late", 5), nil), c.works)
		}
		mac, err := v.OpenMACKey("mac-1")
		check("the MAC key", err, c.gives)
		closeAll(mac)
		id := string(rune('a' + held))
		_, err = v.Reserve(reservation(v, id, in(0, uint64(held), 1)))
		check("a reservation", err, c.gives)
		if err == nil {
			_, err = fetch(v, id, "alice")
			check("a delivery", err, nil)
			held++
		}
		_, err = fetch(v, "a", "alice") // which was made under the first
		check("a delivery of before", err, c.gives)
		_, err = v.Batches()
		check("the records", err, c.reads)
	}
	noFindings(t, v)
	if _, err := v.RetireEpoch(1, "test"); err != nil {
		t.Error(err)
	}
}

// Epochs of before holders were recorded have those of their roster from when it is pinned, and not
// those of another.
func TestHoldersOfBefore(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	addEpoch(t, v, 1, "triples") // nothing is pinned: it has none
	must(t, v.Close())
	v = d.open(t, k)
	must(t, v.Pin(keys.Roster{Keys: rosterOf(0, "a").Keys}))
	must(t, v.Pin(rosterOf(1, "a")))
	e, err := v.Epoch(1)
	if must(t, err); v.Standing(&e) != keys.SameParties {
		t.Errorf("%+v", e)
	}

	v = inMemory(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.Pin(rosterOf(1, "a")))
	if e, err = v.Epoch(1); err != nil || v.Standing(&e) != keys.OtherParties || e.Holders != [32]byte{} {
		t.Errorf("%+v, %v", e, err)
	}
	addEpoch(t, v, 2, "triples") // of a roster that is not the present one
	if e, err = v.Epoch(2); err != nil || e.Holders != [32]byte{} {
		t.Errorf("%+v, %v", e, err)
	}
}

// The record of a peer follows its signing key, also while the peer is absent, and a new key at its
// index inherits it.
func TestPeersFollowTheirKeys(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	must(t, v.Pin(rosterOf(1, "self", "b", "c")))
	at := func(id byte, generation uint64) peers.Version {
		return peers.Version{ID: bytes.Repeat([]byte{id}, seal.IDLen), Incarnation: bytes.Repeat([]byte{id, byte(generation)}, seal.IDLen/2), First: generation, Generation: generation}
	}
	for peer, id := range map[int]byte{1: 'b', 2: 'c'} {
		_, err := v.Acknowledge(peer, at(id, 10))
		must(t, err)
		must(t, v.AcknowledgedBy(peer))
	}
	remembers := func(peer int, id byte, yes bool) {
		t.Helper()
		seen, err := v.Acknowledge(peer, at(id, 5))
		if yes != errors.Is(err, vaulterr.ErrRolledBack) {
			t.Errorf("peer %d, which is %c: %v, %+v", peer, id, err, seen)
		}
	}
	open := func(r keys.Roster) {
		t.Helper()
		must(t, v.Close())
		v = d.open(t, k)
		must(t, v.Pin(r))
	}
	open(rosterOf(2, "self", "c")) // b has gone, and c has its number
	remembers(1, 'c', true)
	if n := len(mustIdentity(t, v).Peers); n != 1 {
		t.Errorf("%d peers are known to have acknowledged this store", n)
	}
	open(rosterOf(3, "c", "new", "self", "b")) // b is back
	remembers(0, 'c', true)
	remembers(3, 'b', true)
	remembers(1, 'n', false)
	open(rosterOf(4, "c", "new", "self", "b again")) // with another key
	remembers(3, 'b', true)
	open(rosterOf(4, "c", "new", "self", "b again"))
	remembers(0, 'c', true)
	noFindings(t, v)
}

func closeAll(in io.Closer) {
	if in != nil {
		in.Close()
	}
}

func mustIdentity(t *testing.T, v *Vault) seal.Identity {
	t.Helper()
	id, err := v.IdentityNow()
	must(t, err)
	return id
}
