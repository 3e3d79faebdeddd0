package vault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// findings returns the findings of a check, with a mark before those that a start repairs.
func findings(t *testing.T, v *Vault, deep bool) (all []string) {
	t.Helper()
	done, err := v.Check(deep, func(done, total int) {
		if done > total {
			t.Errorf("%d of %d", done, total)
		}
	}, func(f upkeep.Finding) {
		mark := ""
		if f.Mended {
			mark = "~"
		}
		all = append(all, mark+f.Where+": "+f.What)
	})
	must(t, err)
	bad := 0
	for _, f := range all {
		if !strings.HasPrefix(f, "~") {
			bad++
		}
	}
	if done.Findings != bad {
		t.Errorf("%d findings, and %d counted", bad, done.Findings)
	}
	return all
}

func TestCheckOfSoundVaults(t *testing.T) {
	_, _, v := furnished(t)
	done := noFindings(t, v)
	if done.Segments != 2+1 || done.Blobs != objects(t, v) || done.Records < 20 {
		t.Errorf("%+v", done)
	}
	if done := noFindings(t, inMemory(t)); done.Records != 2 {
		t.Errorf("%+v", done)
	}
}

// Every contradiction is found, by its name.
func TestCheckFinds(t *testing.T) {
	for want, damage := range map[string]func(*disk, *Vault, store.Tx) error{
		"reservation/reserved: vault: stored data does not authenticate": func(d *disk, _ *Vault, tx store.Tx) error {
			return tx.Put(stock.ReservationPrefix+"reserved", []byte("nonsense of more than some forty bytes in length"))
		},
		"batch/other: vault: stored data does not authenticate: another record than its key says": func(_ *disk, v *Vault, tx store.Tx) error {
			b := batchOf("batch-0", 1)
			return seal.Put(v.Store, tx, stock.BatchPrefix+"other", &b)
		},
		"nobody/knows: vault: stored data does not authenticate: no record has such a key": func(_ *disk, _ *Vault, tx store.Tx) error {
			return tx.Put("nobody/knows", nil)
		},
		"identity: is missing":                               func(_ *disk, _ *Vault, tx store.Tx) error { return tx.Delete(seal.IdentityKey) },
		"batch/batch-0: tuples are gone that nobody took":    changeBatch(func(b *stock.Batch) { b.Gone = b.Gone.With(stock.Span{First: 900, Count: 1}) }),
		"batch/batch-0: tuples are erased that are not gone": changeBatch(func(b *stock.Batch) { b.Wiped = b.Wiped.With(stock.Span{First: 0, Count: 1}) }),
		"~batch/batch-0: 10 tuples are yet to be erased":     changeBatch(func(b *stock.Batch) { b.Gone = b.Gone.With(stock.Span{First: 0, Count: 10}) }),
		"batch/batch-0: 5 tuples are taken, and no reservation holds them": changeBatch(func(b *stock.Batch) {
			b.Taken = b.Taken.With(stock.Span{First: 900, Count: 5})
		}),
		"batch/batch-0: its spans are not in order or not of its 1000 tuples": changeBatch(func(b *stock.Batch) {
			b.Taken = append(b.Taken, stock.Span{First: 995, Count: 6})
		}),
		"reservation/reserved: it holds tuples of batch batch-0, from 100 on, that are not marked as taken": changeBatch(func(b *stock.Batch) {
			b.Taken = b.Taken.Without(stock.Span{First: 199, Count: 1})
		}),
		"reservation/discarded: it is erased, and tuples of batch batch-0, from 300 on, are not gone": changeBatch(func(b *stock.Batch) {
			b.Gone = b.Gone.Without(stock.Span{First: 300, Count: 1})
		}),
		"reservation/second: it holds tuples of batch batch-0, from 150 on, that another holds": func(_ *disk, v *Vault, tx store.Tx) error {
			r := reservation(v, "second", in(0, 150, 10))
			r.State = stock.Reserved
			return v.PutReservation(tx, &r, time.Now())
		},
		"reservation/reserved: it has no due time, so it never ends": func(_ *disk, _ *Vault, tx store.Tx) error {
			return tx.ScanAfter(stock.DuePrefix, "", func(key string, _ []byte) (bool, error) {
				if strings.HasSuffix(key, "/reserved") {
					return false, tx.Delete(key)
				}
				return true, nil
			})
		},
		"batch/locked: is locked under MAC key mac-1, which is burnt": func(_ *disk, v *Vault, tx store.Tx) error {
			k, err := v.MACKeyIn(tx, "mac-1")
			if err == nil {
				k.State = keys.MACBurnt
				err = seal.Put(v.Store, tx, keys.MACPrefix+k.ID, k)
			}
			return err
		},
		"batch/batch-0: is available, and its epoch 1 is not active": func(_ *disk, v *Vault, tx store.Tx) error {
			return tx.Delete(keys.EpochKey(1))
		},
		"batch/batch-0: its MAC key mac-1 is not recorded": func(_ *disk, v *Vault, tx store.Tx) error {
			return tx.Delete(keys.MACPrefix + "mac-1")
		},
	} {
		d, k, v := furnished(t)
		must(t, v.Update(func(tx store.Tx) error { return damage(d, v, tx) }))
		v, err := Examine(&memory{disk: d}, k)
		must(t, err)
		if got := findings(t, v, false); !contains(got, want) {
			t.Errorf("%s is not found, but\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func contains(all []string, want string) bool {
	for _, x := range all {
		if x == want {
			return true
		}
	}
	return false
}

func changeBatch(f func(*stock.Batch)) func(*disk, *Vault, store.Tx) error {
	return func(_ *disk, v *Vault, tx store.Tx) error {
		b, err := v.BatchIn(tx, "batch-0")
		if err != nil {
			return err
		}
		f(b)
		return seal.Put(v.Store, tx, stock.BatchPrefix+b.ID, b)
	}
}

// Blobs that are missing, nobody's, or damaged: the last only when it looks deep.
func TestCheckOfBlobs(t *testing.T) {
	d, k, v := furnished(t)
	b, err := v.Batch("batch-0")
	must(t, err)
	e, err := v.Epoch(1)
	must(t, err)
	flip := func(name string, at int) {
		c := append([]byte(nil), d.blobs[name]...)
		c[at] ^= 1
		d.blobs[name] = c
	}
	flip(b.DataBlob(), int(stock.SealedSize(682*tupleLen))+10) // of the second segment; the first was moved
	flip(e.PublicObject(), seal.HeaderBlock)
	flip(seal.ObjectName("epoch-secret", "2"), 30)
	d.blobs["nobodys"] = []byte("x")
	delete(d.blobs, seal.ObjectName("tuples", "locked"))
	v, err = Examine(&memory{disk: d}, k)
	must(t, err)
	shallow := []string{
		"batch/locked: its blob " + seal.ObjectName("tuples", "locked") + " is missing",
		"~nobodys: no record names it",
	}
	deep := append([]string{
		"batch/batch-0: segment 1, tuples from 682 on: vault: stored data does not authenticate: segment 1",
		e.PublicObject() + ": vault: stored data does not authenticate",
		seal.ObjectName("epoch-secret", "2") + ": vault: stored data does not authenticate",
		seal.ObjectName("keys", "locked") + ": vault: erased: its data is erased or missing",
	}, shallow...)
	for i, want := range [][]string{shallow, deep} {
		got := findings(t, v, i == 1)
		if len(got) != len(want) {
			t.Errorf("%d findings:\n%s", len(got), strings.Join(got, "\n"))
		}
		for _, w := range want {
			if !contains(got, w) {
				t.Errorf("%s is not found, but\n%s", w, strings.Join(got, "\n"))
			}
		}
	}
}

// Shares that should be erased are found when they are still there, and so is a slot that is erased
// too early.
func TestCheckOfErasure(t *testing.T) {
	d, k, v := furnished(t)
	b, err := v.Batch("batch-0")
	must(t, err)
	must(t, v.Update(func(tx store.Tx) error {
		return changeBatch(func(b *stock.Batch) {
			b.Gone, b.Wiped = b.Gone.With(stock.Span{First: 0, Count: 9}), b.Wiped.With(stock.Span{First: 0, Count: 9})
		})(d, v, tx)
	}))
	clear(d.blobs[b.KeyBlob()][stock.SlotAt(1):])
	v, err = Examine(&memory{disk: d}, k)
	must(t, err)
	got := findings(t, v, true)
	for _, want := range []string{
		"batch/batch-0: segment 0: the shares of tuples from 0 on are erased, and still there",
		"batch/batch-0: segment 1, tuples from 682 on: vault: erased: segment 1",
	} {
		if !contains(got, want) {
			t.Errorf("%s is not found, but\n%s", want, strings.Join(got, "\n"))
		}
	}
}

// Examine changes nothing, whatever it finds.
func TestExamineLeavesAlone(t *testing.T) {
	d, k, v := furnished(t)
	d.blobs["nobodys"] = []byte("x")
	must(t, v.BeginCheck("mac-1", "s"))
	d.writes = 0
	e, err := Examine(&memory{disk: d}, k)
	must(t, err)
	findings(t, e, true)
	_, err = e.Stats()
	must(t, err)
	backupOf(t, e)
	if d.writes != 0 {
		t.Errorf("%d writes", d.writes)
	}
	_, err = Examine(&memory{disk: newDisk()}, k)
	refused(t, err, vaulterr.ErrNotFound)
	_, err = Examine(&memory{disk: d}, newKey(t))
	refused(t, err, vaulterr.ErrWrongKey)
}

func TestStats(t *testing.T) {
	_, _, v := furnished(t)
	s, err := v.Stats()
	must(t, err)
	if len(s.Classes) != 1 {
		t.Fatalf("%+v", s.Classes)
	}
	c := s.Classes[0]
	if c.Locked != 7 || c.Free != 600 || c.Reserved != 300 || c.Consumed != 0 || c.Lost != 115 || c.Dropped != 0 || c.Bytes != 907*tupleLen {
		t.Errorf("%+v", c)
	}
	if c.Kind != "scalar" || c.Tenant != "demo" {
		t.Errorf("%+v", c.Class)
	}
	_, err = v.Release("delivered", true)
	must(t, err)
	must(t, v.RevokeBatch("locked", "test"))
	must(t, v.Quarantine("test", 0))
	if s, err = v.Stats(); err != nil {
		t.Fatal(err)
	}
	c = s.Classes[0]
	if c.Locked != 0 || c.Free != 0 || c.Reserved != 200 || c.Consumed != 100 || c.Lost != 715 || c.Dropped != 7 || c.Bytes != 0 {
		t.Errorf("%+v", c)
	}
	if fmt.Sprint(s.MACKeys, s.Batches, s.Reservations) != "map[burnt:1] map[consumed:1 revoked:3] map[erased:3 reserved:1 withdrawn:1]" {
		t.Error(s.MACKeys, s.Batches, s.Reservations)
	}
	if len(s.Epochs) != 4 || s.Decryptions != 2 || s.Peers != 1 || s.Blobs != 0 || s.BlobBytes != 0 || s.Quarantine != "test" {
		t.Errorf("%+v", s)
	}
	if s, err = inMemory(t).Stats(); err != nil || len(s.Classes) != 0 || s.Generation != 1 {
		t.Errorf("%+v, %v", s, err)
	}
}
