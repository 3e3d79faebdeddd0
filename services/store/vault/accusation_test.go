package vault

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault/conduct"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// accuse records evidence against a culprit, and gives the accusation's id.
func accuse(v *Vault, culprit string, file []byte, room conduct.EvidenceRoom) (id string, fresh bool, err error) {
	e, err := v.NewEvidence()
	if err != nil {
		return "", false, err
	}
	defer e.Abort()
	if _, err = e.Write(file); err == nil {
		err = e.Commit()
	}
	if err != nil {
		return "", false, err
	}
	a := conduct.Accusation{Roster: [32]byte{1}, Culprit: culprit, Key: "key of " + culprit, Check: "popk-equation", Reason: "test"}
	fresh, err = v.Accuse(a, e, room)
	return e.ID(), fresh, err
}

func unnamedOfCheck(roster byte, check string, suspects ...string) conduct.Unnamed {
	return conduct.Unnamed{Roster: [32]byte{roster}, Job: "j-1", Check: check, Reason: "test", Suspects: suspects}
}

var lax = conduct.EvidenceRoom{Bytes: 1 << 20, PerCulprit: 10}

func evidenceIn(t *testing.T, v *Vault, id string) []byte {
	t.Helper()
	r, err := v.OpenEvidence(id)
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return b
}

// Accusations, pardons and failures survive restarts, in every store.
func TestConductIsDurable(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]func(testing.TB) func() (store.Store, error){
		"directory": func(t testing.TB) func() (store.Store, error) {
			dir := filepath.Join(t.TempDir(), "vault")
			return func() (store.Store, error) { return store.OpenDir(dir) }
		},
		"postgres": func(t testing.TB) func() (store.Store, error) {
			dsn, _ := storetest.Postgres(t)
			return func() (store.Store, error) { return store.OpenPostgres(context.Background(), dsn) }
		},
	} {
		t.Run(name, func(t *testing.T) { conductIn(t, fresh(t)) })
	}
}

func conductIn(t *testing.T, open func() (store.Store, error)) {
	k := newKey(t)
	with := func(f func(v *Vault)) {
		t.Helper()
		s, err := open()
		must(t, err)
		v, err := OpenIn(s, k)
		must(t, err)
		f(v)
		noFindings(t, v)
		must(t, v.Close())
	}
	evidence := bytes.Repeat([]byte("evidence"), 20_000) // of more than one chunk
	var id string
	with(func(v *Vault) {
		var isNew bool
		var err error
		id, isNew, err = accuse(v, "p1", evidence, lax)
		must(t, err)
		_, again, err := accuse(v, "p1", evidence, lax)
		must(t, err)
		if !isNew || again || objects(t, v) != 1 {
			t.Errorf("new at first: %v, and then: %v", isNew, again)
		}
	})
	with(func(v *Vault) {
		if !bytes.Equal(evidenceIn(t, v, id), evidence) {
			t.Error("other evidence")
		}
		must(t, v.ToldOf(id, "p2"))
		must(t, v.ToldOf(id, "p2"))
		_, err := v.Pardon(id, conduct.Act{By: "op", Reason: "replaced"})
		must(t, err)
		_, err = v.Pardon(id, conduct.Act{By: "op", Reason: "again"})
		must(t, err)
		_, err = v.Pardon("b", conduct.Act{})
		refused(t, err, vaulterr.ErrNotFound)
	})
	few := conduct.Tolerance{Most: 2, Within: time.Hour}
	for i, check := range []string{"mac", "sacrifice", "mac"} {
		with(func(v *Vault) {
			c, _, err := v.NoteUnnamed(unnamedOfCheck(1, check, "p2", "p1"), few)
			must(t, err)
			if stopped := c.Stopped != nil; stopped != (i > 0) || c.Last != uint64(i+1) {
				t.Errorf("after failure %d: %+v", i+1, c)
			}
		})
	}
	with(func(v *Vault) {
		a, err := v.Accusation(id)
		must(t, err)
		if a.Pardon == nil || a.Pardon.Reason != "replaced" || !slices.Equal(a.Told, []string{"p2"}) || a.Size != uint64(len(evidence)) {
			t.Errorf("%+v", a)
		}
		other, err := v.Conduct([32]byte{2})
		must(t, err)
		c, err := v.Conduct([32]byte{1})
		must(t, err)
		if other.Stopped != nil || c.Stopped == nil || strings.Join(c.Stopped.Suspects, " ") != "p1 p2" || strings.Join(c.Stopped.Checks, " ") != "mac sacrifice" {
			t.Errorf("%+v of one roster, %+v of another", c.Stopped, other.Stopped)
		}
		_, err = v.ClearUnnamed([32]byte{1}, 2, conduct.Act{})
		refused(t, err, vaulterr.ErrState)
		n, err := v.ClearUnnamed([32]byte{1}, 3, conduct.Act{By: "op", Reason: "found"})
		must(t, err)
		if n != 3 {
			t.Errorf("%d cleared", n)
		}
	})
	with(func(v *Vault) {
		c, err := v.Conduct([32]byte{1})
		must(t, err)
		all, err := v.UnnamedFailures([32]byte{1})
		must(t, err)
		if c.Stopped != nil || c.Cleared != 3 || c.Act.Reason != "found" || len(all) != 3 || !all[0].Cleared {
			t.Errorf("%+v with %+v", c, all)
		}
		c, _, err = v.NoteUnnamed(unnamedOfCheck(1, "mac"), few)
		must(t, err)
		if c.Stopped != nil {
			t.Error("cleared failures count")
		}
	})
}

// Failures that lie far apart stop nothing; a stopped roster does not start again with time.
func TestFailuresCountWithinATime(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	defer v.Close()
	now := setClock(v)
	few := conduct.Tolerance{Most: 2, Within: time.Hour}
	for range 3 {
		c, _, err := v.NoteUnnamed(unnamedOfCheck(1, "mac", "p1"), few)
		must(t, err)
		if c.Stopped != nil {
			t.Fatal("stopped by failures that lie an hour apart")
		}
		now.pass(time.Hour)
	}
	now.pass(-time.Second)
	c, _, err := v.NoteUnnamed(unnamedOfCheck(1, "mac", "p1"), few)
	must(t, err)
	now.pass(time.Second)
	next, _, err := v.NoteUnnamed(unnamedOfCheck(1, "mac", "p1"), few)
	must(t, err)
	if next.Stopped == nil || next.Stopped.Failures != 2 || !next.Stopped.When.Equal(c.Stopped.When) {
		t.Errorf("stopped again: %+v", next.Stopped)
	}
	now.pass(1000 * time.Hour)
	later, err := v.Conduct([32]byte{1})
	must(t, err)
	if c.Stopped == nil || later.Stopped == nil || c.Stopped.Failures != 2 {
		t.Errorf("%+v, and later %+v", c.Stopped, later.Stopped)
	}
}

// Failures are forgotten before accusations, which they cannot push out, and the first of a culprit
// always has a place.
func TestRoomForEvidence(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	defer v.Close()
	now := setClock(v)
	room := conduct.EvidenceRoom{Bytes: 100, PerCulprit: 2}
	names := map[string]string{}
	add := func(name, culprit string, size int) error {
		now.pass(time.Second)
		id, _, err := accuse(v, culprit, append([]byte(name), make([]byte, size-1)...), room)
		names[id] = name
		return err
	}
	must(t, add("a", "p1", 50))
	must(t, add("b", "p1", 40))
	refused(t, add("c", "p1", 1), vaulterr.ErrFull)  // of one culprit
	must(t, add("d", "p2", 30))                      // which b makes room for
	refused(t, add("e", "p2", 30), vaulterr.ErrFull) // in all
	must(t, add("f", "p3", 100))
	for range conduct.MaxUnnamed + 3 {
		_, _, err := v.NoteUnnamed(unnamedOfCheck(1, "mac", "p1"), conduct.Tolerance{Most: 1, Within: time.Hour})
		must(t, err)
	}
	kept, err := v.Accusations()
	must(t, err)
	var ids []string
	for _, a := range kept {
		ids = append(ids, names[a.ID])
		if n := len(evidenceIn(t, v, a.ID)); uint64(n) != a.Size {
			t.Errorf("%s has %d bytes, and not %d", a.ID, n, a.Size)
		}
	}
	all, err := v.UnnamedFailures([32]byte{1})
	must(t, err)
	slices.Sort(ids)
	if !slices.Equal(ids, []string{"a", "d", "f"}) || len(all) != conduct.MaxUnnamed || all[0].Seq != 4 {
		t.Errorf("kept are %s, and %d failures from %d on", ids, len(all), all[0].Seq)
	}
	if n := objects(t, v); n != 3 {
		t.Errorf("%d objects", n)
	}
	noFindings(t, v)
}

// A restore brings back accusations of peers.
func TestRestoreKeepsAccusations(t *testing.T) {
	t.Parallel()
	_, k, v := furnished(t)
	id, _, err := accuse(v, "p1", []byte("evidence"), lax)
	must(t, err)
	_, _, err = v.NoteUnnamed(unnamedOfCheck(1, "mac", "p1"), conduct.Tolerance{Most: 1, Within: time.Hour})
	must(t, err)
	stream := backupOf(t, v)
	s := &memory{disk: newDisk()}
	_, err = Restore(s, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
	must(t, err)
	r, err := OpenIn(s, k)
	must(t, err)
	defer r.Close()
	c, err := r.Conduct([32]byte{1})
	must(t, err)
	if c.Stopped == nil || string(evidenceIn(t, r, id)) != "evidence" {
		t.Errorf("restored: %+v", c)
	}
	noFindings(t, r)
}

// A failure that makes an epoch's keys suspect drains the epoch in the same write and records why,
// also if the epoch drains already: a crash leaves both or neither.
func TestSuspectEpoch(t *testing.T) {
	t.Parallel()
	suspicious := func(epoch uint64) conduct.Unnamed {
		u := unnamedOfCheck(1, "sacrifice", "p1")
		u.Epoch, u.Drains = epoch, "a sacrifice failed"
		return u
	}
	lax := conduct.Tolerance{Most: 100, Within: time.Hour}
	note := func(v *Vault, epoch uint64, want bool) {
		t.Helper()
		_, fresh, err := v.NoteUnnamed(suspicious(epoch), lax)
		if must(t, err); fresh != want {
			t.Errorf("epoch %d: news %v", epoch, fresh)
		}
	}
	v := inMemory(t)
	stocked(t, v, 10)
	addEpoch(t, v, 2, "triples")
	addEpoch(t, v, 3, "triples")
	must(t, v.ActivateEpoch(3))
	must(t, v.DrainEpoch(3, 1))
	generation := version(t, v).Generation
	note(v, 1, true)
	if now := version(t, v).Generation; now == generation {
		t.Error("a store that was put back would forget it")
	}
	note(v, 1, false)
	note(v, 2, false) // nothing was made under it
	note(v, 3, true)
	note(v, 99, false)
	for id, want := range map[uint64]keys.Epoch{1: {State: keys.EpochDraining}, 2: {State: keys.EpochLocked}, 3: {State: keys.EpochDraining, Successor: 1}} {
		e, err := v.Epoch(id)
		must(t, err)
		if e.State != want.State || e.Successor != want.Successor || (e.Reason != "") != (e.State == keys.EpochDraining) {
			t.Errorf("%+v", e)
		}
	}
	must(t, v.DrainEpoch(1, 3)) // by a rotation, later
	if e, err := v.Epoch(1); err != nil || e.Successor != 3 || e.Reason != "a sacrifice failed" {
		t.Errorf("%+v, %v", e, err)
	}
	_, err := v.RetireEpoch(1, "test")
	must(t, err)
	note(v, 1, false)
	all, err := v.UnnamedFailures([32]byte{1})
	if must(t, err); len(all) != 6 {
		t.Errorf("%d failures", len(all))
	}

	for f, name := range map[fault]string{fails: "fails", unwritten: "in doubt", doubtful: "takes place in doubt", before: "crash before", after: "crash after"} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		stocked(t, v, 10)
		at := d.writes
		d.fault = func(n int, _ string) fault {
			if n == at {
				return f
			}
			return works
		}
		if _, _, err := v.NoteUnnamed(suspicious(1), lax); err == nil {
			t.Errorf("%s: it is not said", name)
		}
		d.fault = nil
		v = d.open(t, k)
		e, err := v.Epoch(1)
		must(t, err)
		all, err := v.UnnamedFailures([32]byte{1})
		if must(t, err); len(all) > 0 != (e.State == keys.EpochDraining) {
			t.Errorf("%s: %d failures, and the epoch is %s", name, len(all), e.State)
		}
	}
}
