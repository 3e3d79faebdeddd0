package vault

import (
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/peers"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func version(t testing.TB, v *Vault) peers.Version {
	t.Helper()
	x, err := v.Version(1)
	must(t, err)
	return x
}

// copyOf is a disk as it is now.
func (d *disk) copyOf() *disk {
	c := &disk{records: maps.Clone(d.records), blobs: map[string][]byte{}, lineage: d.lineage}
	for name, b := range d.blobs {
		c.blobs[name] = append([]byte(nil), b...)
	}
	return c
}

// The generation grows with everything that must not be forgotten, and with nothing else. Above all
// it does not grow with a start, by which an old copy could catch up.
func TestGeneration(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 10, 10, 10)
	c := setClock(v)
	addEpoch(t, v, 2, "decryption")
	must(t, v.ActivateEpoch(2))
	addEpoch(t, v, 3, "triples")
	must(t, v.ActivateEpoch(3))
	reserve(t, v, "r", in(0, 0, 5))
	reserve(t, v, "s", in(0, 5, 1))
	reserve(t, v, "u", in(0, 6, 1))
	_, _, err := v.Deliver("u", "alice", 0)
	must(t, err)
	answer := ledger.LedgerKey{Epoch: 2, Digest: [32]byte{1}}
	addBatch(t, v, "locked", 3, nil)
	for _, c := range []struct {
		name  string
		grows bool
		do    func() error
	}{
		{"reserve", true, func() error { _, err := v.Reserve(reservation(v, "x", in(1, 0, 1))); return err }},
		{"reserve again", false, func() error { _, err := v.Reserve(reservation(v, "x", in(1, 0, 1))); return err }},
		{"refused", false, func() error {
			_, err := v.Reserve(reservation(v, "y", in(1, 0, 1)))
			refused(t, err, vaulterr.ErrTaken)
			return nil
		}},
		{"deliver", true, func() error { _, err := fetch(v, "r", "alice"); return err }},
		{"deliver again", false, func() error { _, err := fetch(v, "r", "alice"); return err }},
		{"withdraw", true, func() error { _, err := v.Withdraw("s"); return err }},
		{"withdraw again", false, func() error { _, err := v.Withdraw("s"); return err }},
		{"release", true, func() error { _, err := v.Release("s", false); return err }},
		{"discard", true, func() error { _, err := v.Release("r", true); return err }},
		{"discard again", false, func() error { _, err := v.Release("r", true); return err }},
		{"sweep of nothing", false, func() error { return v.Sweep() }},
		{"sweep", true, func() error { c.pass(time.Hour); return v.Sweep() }},
		{"activate", true, func() error { return v.ActivateBatch("locked") }},
		{"begin a check", true, func() error { return v.BeginCheck("mac-1", "s") }},
		{"pass a check", false, func() error { _, err := v.EndCheck("mac-1", "s", keys.CheckPassed); return err }},
		{"decrypt", true, func() error { _, _, err := v.RecordDecryption(answer, "alice", nil); return err }},
		{"decrypt again", false, func() error { _, _, err := v.RecordDecryption(answer, "alice", nil); return err }},
		{"spend", true, func() error { return v.SpendDecryptions(2, 1) }},
		{"revoke", true, func() error { return v.RevokeBatch("batch-1", "") }},
		{"start", false, func() error { v = d.open(t, k); return nil }},
		{"suspect keys", true, func() error {
			_, _, err := v.NoteUnnamed(conduct.Unnamed{Epoch: 1, Drains: "test"}, conduct.Tolerance{Most: 9})
			return err
		}},
		{"revoke an epoch", true, func() error { _, err := v.RevokeEpoch(3, 0, ""); return err }},
		{"burn", true, func() error { _, err := v.BurnMACKey("mac-1", ""); return err }},
		{"retire", true, func() error { _, err := v.RetireEpoch(1, ""); return err }},
		{"quarantine", true, func() error { return v.Quarantine("test", 0) }},
		{"leave", true, func() error { return v.LeaveQuarantine() }},
	} {
		before := version(t, v)
		must(t, c.do())
		if after := version(t, v); after.Generation > before.Generation != c.grows || after.Generation < before.Generation {
			t.Errorf("%s: from %d to %d", c.name, before.Generation, after.Generation)
		}
	}
}

// A party and a peer, who sees the party's store.
func TestAcknowledge(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 100)
	peerDisk := newDisk()
	p := peerDisk.open(t, k)
	n := uint64(0)
	advance := func() {
		t.Helper()
		n++
		reserve(t, v, fmt.Sprintf("r%d", n), in(0, n, 1))
	}
	accepted := func(now peers.Version) {
		t.Helper()
		seen, err := p.Acknowledge(1, now)
		if err != nil || seen.Generation < now.Generation {
			t.Fatalf("%+v, %v", seen, err)
		}
	}
	putBack := func(now peers.Version) peers.Version {
		t.Helper()
		seen, err := p.Acknowledge(1, now)
		refused(t, err, vaulterr.ErrRolledBack)
		return seen
	}
	if p.Heard(1, version(t, v)) {
		t.Error("heard of a store that was never acknowledged")
	}
	first := version(t, v)
	accepted(first)
	accepted(first)
	must(t, v.AcknowledgedBy(1))
	must(t, v.AcknowledgedBy(1))
	backup := d.copyOf()
	advance()
	advance()
	if !p.Heard(1, version(t, v)) || !p.Heard(1, first) { // also out of order
		t.Error("not heard")
	}
	accepted(first) // a late repetition of the same start
	must(t, p.RememberPeers())
	must(t, p.RememberPeers())
	p = peerDisk.open(t, k) // the peer starts again, and still knows
	if p.Heard(1, version(t, v)) {
		t.Error("heard of before it was acknowledged by this start")
	}

	// The copy is put back, and stays behind however often it starts, and though it works after its
	// start.
	old := backup.copyOf().open(t, k)
	for i := range uint64(5) {
		reserve(t, old, fmt.Sprintf("z%d", i), in(0, 50+i, 1))
	}
	seen := putBack(version(t, old))
	if behind, err := old.Succeeds(1, seen); err != nil || !behind {
		t.Errorf("%v, %v: the peer's version proves nothing", behind, err)
	}
	crashing := backup.copyOf()
	var v2 *Vault
	for i := range uint64(20) { // it also grows while the peer is absent
		v2 = crashing.open(t, k)
		reserve(t, v2, fmt.Sprintf("y%d", i), in(0, 70+i, 1))
	}
	seen = putBack(version(t, v2))
	if behind, err := v2.Succeeds(1, seen); err != nil || !behind {
		t.Errorf("%v, %v", behind, err)
	}
	must(t, v2.Quarantine("put back", seen.Generation))
	accepted(version(t, v2)) // quarantined, it is further than any that was seen
	putBack(version(t, d.open(t, k)))

	// A new store replaces it, and the old one is not taken again, how far ever it is.
	fresh := newDisk().open(t, k)
	accepted(version(t, fresh))
	must(t, v2.Quarantine("again", 1000))
	seen = putBack(version(t, v2))
	if behind, err := v2.Succeeds(1, seen); err != nil || !behind {
		t.Errorf("an old store that was replaced: %v, %v", behind, err)
	}
	accepted(version(t, fresh))
}

func TestSucceeds(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 10)
	said := version(t, v)
	ask := func(v *Vault, said peers.Version, want bool) {
		t.Helper()
		if got, err := v.Succeeds(1, said); err != nil || got != want {
			t.Errorf("%v, %v", got, err)
		}
	}
	must(t, v.AcknowledgedBy(1))
	ask(v, said, false) // this start itself
	reserve(t, v, "r", in(0, 0, 1))
	ask(v, version(t, v), false)
	said = version(t, v)
	backup := d.copyOf()
	v = d.open(t, k)
	ask(v, said, false) // an earlier start, which ended there
	reserve(t, v, "s", in(0, 1, 1))
	ask(v, said, false)
	later := version(t, v)
	v = backup.open(t, k)
	ask(v, said, false)
	ask(v, later, true) // this store was further once
	reserve(t, v, "s", in(0, 2, 1))
	reserve(t, v, "t", in(0, 3, 1))
	ask(v, later, true) // which work since the start does not change
	other := version(t, newDisk().open(t, k))
	ask(v, other, true) // a later store of the party
	other.Started = other.Started.Add(-time.Hour)
	ask(v, other, false) // an earlier one
}

func TestVersionsThatAreMalformed(t *testing.T) {
	v := inMemory(t)
	good := version(t, inMemory(t))
	for name, change := range map[string]func(*peers.Version){
		"no id":     func(v *peers.Version) { v.ID = nil },
		"short id":  func(v *peers.Version) { v.ID = v.ID[:15] },
		"no start":  func(v *peers.Version) { v.Incarnation = nil },
		"before it": func(v *peers.Version) { v.First = v.Generation + 1 },
	} {
		bad := good
		change(&bad)
		if _, err := v.Acknowledge(1, bad); !errors.Is(err, vaulterr.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := v.RememberPeers(); err != nil {
		t.Error(err)
	}
}

// Peers are told apart, and everything at once leaves the highest.
func TestAcknowledgeAtOnce(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	now := version(t, inMemory(t))
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			x := now
			x.Generation += uint64(i)
			if i%4 == 0 {
				if _, err := v.Acknowledge(1, x); err != nil {
					t.Error(err)
				}
			}
			v.Heard(1, x)
			if err := v.RememberPeers(); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	top := now
	top.Generation += 64
	if _, err := v.Acknowledge(1, top); err != nil {
		t.Error(err)
	}
	if !v.Heard(1, top) || v.Heard(2, top) {
		t.Error("another peer")
	}
	v = d.open(t, k)
	top.Incarnation = make([]byte, seal.IDLen)
	top.First = top.Generation - 1
	_, err := v.Acknowledge(1, top)
	refused(t, err, vaulterr.ErrRolledBack)
	top.First = top.Generation
	_, err = v.Acknowledge(1, top)
	must(t, err)
}

// checkQuarantine: nothing of tuples or for decryption is left, and nothing begins.
func checkQuarantine(t *testing.T, v *Vault) {
	t.Helper()
	if why, err := v.Quarantined(); err != nil || why == "" {
		t.Fatalf("not in quarantine: %v", err)
	}
	batches, err := v.Batches()
	must(t, err)
	for _, b := range batches {
		if b.State != stock.BatchRevoked && b.State != stock.BatchConsumed {
			t.Errorf("batch %s is %s", b.ID, b.State)
		}
	}
	macKeys, err := v.MACKeys()
	must(t, err)
	for _, key := range macKeys {
		if key.State != keys.MACBurnt {
			t.Errorf("MAC key %s is %s", key.ID, key.State)
		}
	}
	for id := range uint64(2) { // neither can say how many ciphertexts were decrypted under it
		if e, err := v.Epoch(id + 1); err != nil || e.State != keys.EpochRetired {
			t.Errorf("epoch %d is %s, %v", e.ID, e.State, err)
		}
	}
	if n := objects(t, v); n != 0 {
		t.Errorf("%d objects", n)
	}
	for _, id := range []string{"r", "s"} {
		_, err = fetch(v, id, "alice")
		refused(t, err, vaulterr.ErrQuarantine)
	}
	_, err = v.Reserve(reservation(v, "t", in(0, 8, 1)))
	refused(t, err, vaulterr.ErrQuarantine)
	b := batchOf("new", 1)
	b.MACKey = "mac-2"
	refused(t, storeBatch(v, b, macKey("mac-2")), vaulterr.ErrQuarantine)
	refused(t, v.SpendDecryptions(2, 1), vaulterr.ErrQuarantine)
	_, _, err = v.RecordDecryption(ledger.LedgerKey{Epoch: 2}, "alice", nil)
	refused(t, err, vaulterr.ErrQuarantine)
}

func quarantineable(t *testing.T, v *Vault) {
	t.Helper()
	stocked(t, v, 10)
	addBatch(t, v, "locked", 5, nil)
	addEpoch(t, v, 2, "decryption")
	must(t, v.ActivateEpoch(2))
	_, _, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 2}, "alice", canary)
	must(t, err)
	reserve(t, v, "r", in(0, 0, 5))
	reserve(t, v, "s", in(0, 5, 1))
	_, err = fetch(v, "r", "alice")
	must(t, err)
}

func TestQuarantine(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	quarantineable(t, v)
	before := version(t, v)
	must(t, v.Quarantine("test", before.Generation+100))
	if now := version(t, v); now.Generation != before.Generation+101 {
		t.Errorf("generation %d", now.Generation)
	}
	checkQuarantine(t, v)
	v = d.open(t, k)
	checkQuarantine(t, v)
	must(t, v.Quarantine("far", ^uint64(0)))
	if now := version(t, v); now.Generation != upkeep.MaxGeneration+1 {
		t.Errorf("generation %d", now.Generation)
	}
	must(t, v.LeaveQuarantine())
	refused(t, v.ActivateBatch("locked"), vaulterr.ErrErased)
	_, err := fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrErased)
	_, err = v.Reserve(reservation(v, "t", in(0, 8, 1)))
	refused(t, err, vaulterr.ErrErased)
	addEpoch(t, v, 9, "triples")
	must(t, v.ActivateEpoch(9))
	b := batchOf("new", 1)
	b.Epoch, b.MACKey = 9, "mac-2"
	key := macKey("mac-2")
	key.Epoch = 9
	must(t, storeBatch(v, b, key)) // life goes on
}

// A storage that was failed over or put back is quarantined when it is opened, wherever a crash
// falls.
func TestLineage(t *testing.T) {
	for crash := range 12 {
		d, k := newDisk(), &seal.Key{}
		d.lineage = "system/1"
		v := d.open(t, k)
		quarantineable(t, v)
		d.open(t, k)
		d.lineage = "system/2"
		d.writes = 0
		d.fault = func(n int, _ string) fault {
			if n == crash {
				return before
			}
			return works
		}
		if _, err := OpenIn(&memory{disk: d}, k); err != nil {
			refused(t, err, errCrash)
		}
		d.fault = nil
		checkQuarantine(t, d.open(t, k))
	}
}

// The header is not read with the storage's own transaction under way: a store may have but one.
func TestOpenUsesOneTransactionAtATime(t *testing.T) {
	s := &single{memory: &memory{disk: newDisk()}}
	v, err := OpenIn(s, &seal.Key{})
	must(t, err)
	stocked(t, v, 10)
	reserve(t, v, "r", in(0, 0, 5))
	_, err = v.Release("r", true)
	must(t, err)
	must(t, v.Sweep())
	v, err = OpenIn(s, &seal.Key{})
	must(t, err)
	must(t, v.Quarantine("test", 0))
	if s.broken {
		t.Error("a transaction used the store outside itself")
	}
}

// single notes calls from within a transaction.
type single struct {
	*memory
	in, broken bool
}

func (s *single) enter(f func(store.Tx) error) func(store.Tx) error {
	return func(tx store.Tx) error {
		s.broken = s.broken || s.in
		s.in = true
		defer func() { s.in = false }()
		return f(tx)
	}
}

func (s *single) View(f func(store.Tx) error) error { return s.memory.View(s.enter(f)) }

func (s *single) Update(f func(store.Tx) error) error { return s.memory.Update(s.enter(f)) }

func (s *single) Blobs() ([]string, error) {
	s.broken = s.broken || s.in
	return s.memory.Blobs()
}
