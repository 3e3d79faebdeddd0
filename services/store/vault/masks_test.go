package vault

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
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

// masksOf describes masks of a quorum, of which a segment has 1008.
func masksOf(id string, count uint64, quorum ...uint32) stock.Batch {
	return stock.Batch{ID: id, Epoch: 1, Params: "params", Kind: stock.KindMasks, Count: count, TupleBytes: 65, Quorum: quorum, Form: stock.MasksExact}
}

// storeMasks stores masks, locked.
func storeMasks(v *Vault, b stock.Batch) error { return storeBatch(v, b, nil) }

// masked is a vault with epoch 1 and available masks of the quorum 0 and 1: "m0", "m1" and so on.
func masked(t testing.TB, v *Vault, counts ...uint64) {
	t.Helper()
	addThreshold(t, v, 1)
	for i, n := range counts {
		id := fmt.Sprintf("m%d", i)
		must(t, storeMasks(v, masksOf(id, n, 0, 1)))
		must(t, v.ActivateBatch(id))
	}
}

// clockOf has a vault's clock be ahead.
func clockOf(v *Vault, ahead time.Duration) {
	v.Clock = func() time.Time { return time.Now().Add(ahead) }
}

func span(first, count uint64) stock.Span { return stock.Span{First: first, Count: count} }

// spends: those masks are given.
func spends(t testing.TB, v *Vault, batch string, x stock.Span) {
	t.Helper()
	got, err := v.SpendMasks(batch, x)
	must(t, err)
	if !bytes.Equal(got, shares(batch, x, 65)) {
		t.Fatalf("%d bytes, which are not the masks of %s from %d on", len(got), batch, x.First)
	}
}

// Masks are given once, and rejected calls mark no masks.
func TestSpendMasks(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 3000)
	stored := masksOf("locked", 10, 0, 1)
	must(t, storeMasks(v, stored))
	spends(t, v, "m0", span(0, 10))
	spends(t, v, "m0", span(990, 1020)) // of three segments
	before := mustBatch(t, v, "m0")
	for what, c := range map[string]struct {
		batch string
		span  stock.Span
		want  error
	}{
		"the same again":    {"m0", span(0, 10), vaulterr.ErrTaken},
		"the end of it":     {"m0", span(9, 5), vaulterr.ErrTaken},
		"around it":         {"m0", span(980, 1100), vaulterr.ErrTaken},
		"none":              {"m0", span(20, 0), vaulterr.ErrRange},
		"more than it has":  {"m0", span(2990, 11), vaulterr.ErrRange},
		"from its end":      {"m0", span(3000, 1), vaulterr.ErrRange},
		"beyond all number": {"m0", span(10, ^uint64(0)), vaulterr.ErrRange},
		"locked":            {"locked", span(0, 1), vaulterr.ErrState},
		"nobody's":          {"none", span(0, 1), vaulterr.ErrNotFound},
	} {
		if _, err := v.SpendMasks(c.batch, c.span); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	b := mustBatch(t, v, "m0")
	if !slices.Equal(b.Taken, before.Taken) || !slices.Equal(b.Gone, b.Taken) || b.Taken.Count() != 1030 || b.Free().Count() != 1970 {
		t.Errorf("taken %v, gone %v", b.Taken, b.Gone)
	}
	must(t, v.RevokeBatch("m0", "test"))
	_, err := v.SpendMasks("m0", span(500, 1))
	refused(t, err, vaulterr.ErrErased)
	must(t, v.Quarantine("test", 0))
	_, err = v.SpendMasks("m0", span(500, 1))
	refused(t, err, vaulterr.ErrQuarantine)
	noFindings(t, v)
}

func mustBatch(t testing.TB, v *Vault, id string) stock.Batch {
	t.Helper()
	b, err := v.Batch(id)
	must(t, err)
	return b
}

// The peers remember that masks were spent.
func TestMasksMakeAGeneration(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 20)
	before := version(t, v)
	spends(t, v, "m0", span(0, 1))
	if now := version(t, v); now.Generation != before.Generation+1 {
		t.Errorf("generation %d, and %d before", now.Generation, before.Generation)
	}
}

// Masks that are too many to be held in memory are refused.
func TestSpendingIsBounded(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	addThreshold(t, v, 1)
	b := masksOf("large", 5, 0, 1)
	b.TupleBytes = stock.MaxSpend / 4
	w, err := v.NewBatch(b)
	must(t, err)
	for range 5 {
		_, err = w.Write(make([]byte, b.TupleBytes))
		must(t, err)
	}
	must(t, w.Commit(nil))
	must(t, v.ActivateBatch("large"))
	_, err = v.SpendMasks("large", span(0, 5))
	refused(t, err, vaulterr.ErrRange)
	_, err = v.SpendMasks("large", span(0, 4))
	must(t, err)
}

// Clients cannot have masks, and sessions cannot spend tuples.
func TestMasksAreForNobody(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	must(t, storeEpoch(v, keys.Epoch{ID: 1, Purpose: keys.PurposeTriples}))
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "batch-0", 10, macKey("mac-1"))
	must(t, v.ActivateBatch("batch-0"))
	addThreshold(t, v, 2)
	b := masksOf("m", 10, 0, 1)
	b.Epoch = 2
	must(t, storeMasks(v, b))
	must(t, v.ActivateBatch("m"))
	_, err := v.Reserve(reservation(v, "r", in(0, 0, 1), stock.Range{Batch: "m", Span: span(0, 1)}))
	refused(t, err, vaulterr.ErrMasks)
	r := reservation(v, "r", stock.Range{Batch: "m", Span: span(0, 1)})
	r.Class, r.Epoch, r.MACKey = b.Class(), 2, ""
	_, err = v.Reserve(r)
	refused(t, err, vaulterr.ErrMasks)
	_, err = v.SpendMasks("batch-0", span(0, 1))
	refused(t, err, vaulterr.ErrMasks)
	if mustBatch(t, v, "m").Taken.Count()+mustBatch(t, v, "batch-0").Taken.Count() > 0 {
		t.Error("something is taken")
	}
	noFindings(t, v)
}

// Masks lie under a threshold epoch that is active, for a quorum of its members.
func TestMasksOfAQuorum(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 5)
	must(t, storeEpoch(v, thresholdEpoch(4)))
	for what, c := range map[string]struct {
		change func(*stock.Batch)
		want   error
	}{
		"one":               {func(b *stock.Batch) { b.Quorum = []uint32{0} }, vaulterr.ErrRange},
		"three":             {func(b *stock.Batch) { b.Quorum = []uint32{0, 1, 2} }, vaulterr.ErrRange},
		"descending":        {func(b *stock.Batch) { b.Quorum = []uint32{1, 0} }, vaulterr.ErrRange},
		"one twice":         {func(b *stock.Batch) { b.Quorum = []uint32{1, 1} }, vaulterr.ErrRange},
		"no member":         {func(b *stock.Batch) { b.Quorum = []uint32{0, 3} }, vaulterr.ErrRange},
		"form":              {func(b *stock.Batch) { b.Form = "other" }, vaulterr.ErrRange},
		"a MAC key":         {func(b *stock.Batch) { b.MACKey = "mac-1" }, vaulterr.ErrRange},
		"a locked epoch":    {func(b *stock.Batch) { b.Epoch = 4 }, vaulterr.ErrState},
		"no epoch":          {func(b *stock.Batch) { b.Epoch = 5 }, vaulterr.ErrState},
		"quorum of scalars": {func(b *stock.Batch) { b.Kind, b.Form = "scalar", "" }, vaulterr.ErrRange},
		"form of scalars":   {func(b *stock.Batch) { b.Kind, b.Quorum = "scalar", nil }, vaulterr.ErrRange},
	} {
		b := masksOf("new", 5, 0, 1)
		c.change(&b)
		if err := storeMasks(v, b); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", what, err, c.want)
		}
	}
	refused(t, storeBatch(v, masksOf("new", 5, 0, 1), macKey("")), vaulterr.ErrRange)
	must(t, v.Pin(keys.Roster{Keys: membersOf("c", "b"), Self: 0}))
	refused(t, storeMasks(v, masksOf("new", 5, 0, 1)), vaulterr.ErrRange) // c is not of it
	must(t, storeMasks(v, masksOf("new", 5, 1, 2)))
	must(t, v.DrainEpoch(1, 0))
	refused(t, storeMasks(v, masksOf("late", 5, 1, 2)), vaulterr.ErrState)
	must(t, v.ActivateBatch("new"))
	spends(t, v, "new", span(0, 5)) // what is there is used up
	must(t, v.Sweep())
	noFindings(t, v)
}

// Masks are found by their quorum and form, the oldest first, while there are free ones.
func TestFreeMasks(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	c := setClock(v)
	addThreshold(t, v, 1)
	add := func(id, form string, quorum ...uint32) {
		t.Helper()
		c.pass(time.Second)
		b := masksOf(id, 10, quorum...)
		b.Form = form
		must(t, storeMasks(v, b))
		must(t, v.ActivateBatch(id))
	}
	for _, id := range []string{"z", "y", "x", "w"} {
		add(id, stock.MasksExact, 0, 2)
	}
	add("paper", stock.MasksPaper, 0, 2)
	add("other", stock.MasksExact, 0, 1)
	must(t, storeMasks(v, masksOf("locked", 10, 0, 2)))
	want := func(ids ...string) {
		t.Helper()
		free, err := v.FreeMasks(1, []uint32{0, 2}, stock.MasksExact)
		must(t, err)
		var got []string
		for _, b := range free {
			got = append(got, b.ID)
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("%v, want %v", got, ids)
		}
	}
	want("z", "y", "x", "w")
	spends(t, v, "y", span(0, 10))
	spends(t, v, "x", span(3, 4))
	want("z", "x", "w")
	free, err := v.FreeMasks(1, []uint32{0, 2}, stock.MasksExact)
	if must(t, err); !slices.Equal(free[1].Free(), stock.Spans{span(0, 3), span(7, 3)}) {
		t.Errorf("%v", free[1].Free())
	}
	must(t, v.RevokeBatch("z", "test"))
	want("x", "w")
	spoil(t, v, stock.BatchPrefix+"x") // which keeps nobody from the others
	want("w")
	if free, err := v.FreeMasks(1, []uint32{0, 2}, stock.MasksPaper); err != nil || len(free) != 1 || free[0].ID != "paper" {
		t.Errorf("%v, %v", free, err)
	}
	if free, err := v.FreeMasks(2, []uint32{0, 2}, stock.MasksExact); err != nil || len(free) != 0 {
		t.Errorf("%v, %v", free, err)
	}
	if _, err := v.RetireEpoch(1, "test"); !errors.Is(err, vaulterr.ErrCorrupt) { // of x
		t.Error(err)
	}
}

// A backup has no masks, and a restored store none either.
func TestBackupOfMasks(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	masked(t, v, 1500, 10)
	spends(t, v, "m0", span(0, 10))
	stream := backupOf(t, v)
	b := mustBatch(t, v, "m0")
	for _, keep := range []bool{false, true} {
		disk := newDisk()
		_, err := Restore(&memory{disk: disk}, bytes.NewReader(stream), k, upkeep.RestoreOptions{KeepDecryption: keep})
		must(t, err)
		r := disk.open(t, k)
		noFindings(t, r)
		must(t, r.LeaveQuarantine())
		e, err := r.Epoch(1)
		must(t, err)
		if want := map[bool]keys.EpochState{true: keys.EpochDraining, false: keys.EpochRetired}[keep]; e.State != want || len(e.Members) != 3 {
			t.Errorf("%+v", e)
		}
		for _, x := range []stock.Span{span(0, 10), span(10, 10)} {
			_, err = r.SpendMasks("m0", x)
			refused(t, err, vaulterr.ErrErased)
		}
		if free, err := r.FreeMasks(1, []uint32{0, 1}, stock.MasksExact); err != nil || len(free) != 0 {
			t.Errorf("%v, %v", free, err)
		}
		if disk.blobs[b.DataBlob()] != nil || disk.blobs[b.KeyBlob()] != nil {
			t.Error("masks came back")
		}
	}
	if bytes.Contains(opensTo(t, stream, k), []byte(b.DataBlob())) {
		t.Error("masks are in the backup")
	}
}

// A store that was put back has no masks to give.
func TestQuarantineOfMasks(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 20)
	must(t, v.Quarantine("test", 100))
	must(t, v.LeaveQuarantine())
	_, err := v.SpendMasks("m0", span(0, 1))
	refused(t, err, vaulterr.ErrErased)
	if e, err := v.Epoch(1); err != nil || e.State != keys.EpochRetired {
		t.Errorf("%+v, %v", e, err)
	}
	noFindings(t, v)
}

// A check finds damaged masks.
func TestCheckOfMasks(t *testing.T) {
	t.Parallel()
	for want, damage := range map[string]func(*stock.Batch){
		"batch/m0: its masks are not named among those of their class":                            func(b *stock.Batch) { b.Form = stock.MasksPaper },
		"batch/m0: 5 tuples are taken, and no reservation holds them":                             func(b *stock.Batch) { b.Taken = b.Taken.With(span(3, 5)) },
		"batch/m0: vault: out of range: masks of the form \"\"":                                   func(b *stock.Batch) { b.Form = "" },
		"batch/m0: vault: out of range: batch m0, of kind scalar, is of no quorum":                func(b *stock.Batch) { b.Kind = "scalar" },
		"~batch/m0: 4 tuples are yet to be erased":                                                func(b *stock.Batch) { b.Taken, b.Gone = stock.Spans{span(0, 4)}, stock.Spans{span(0, 4)} },
		"masks/00000000000000000001/" + stock.QuorumName([]uint32{0, 1}) + "/exact/" + "x: names": nil,
	} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		masked(t, v, 20)
		must(t, v.Update(func(tx store.Tx) error {
			if damage == nil {
				return tx.Put(stock.MaskClass(1, []uint32{0, 1}, stock.MasksExact)+"x", nil)
			}
			b, err := v.BatchIn(tx, "m0")
			if err == nil {
				damage(b)
				err = seal.Put(v.Store, tx, stock.BatchPrefix+"m0", b)
			}
			return err
		}))
		v, err := Examine(&memory{disk: d}, k)
		must(t, err)
		if got := findings(t, v, false); !slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, want) }) {
			t.Errorf("%s is not found, but\n%s", want, strings.Join(got, "\n"))
		}
	}
}

func TestStatsOfMasks(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 1000, 500)
	must(t, storeMasks(v, masksOf("locked", 7, 0, 1)))
	must(t, storeMasks(v, masksOf("other", 8, 0, 2)))
	spends(t, v, "m0", span(0, 1000))
	spends(t, v, "m1", span(0, 10))
	must(t, v.Sweep())
	s, err := v.Stats()
	must(t, err)
	if len(s.Classes) != 0 || len(s.Masks) != 2 {
		t.Fatalf("%+v", s)
	}
	for _, m := range s.Masks {
		want := upkeep.MaskStats{Epoch: 1, Quorum: []uint32{0, 1}, Form: stock.MasksExact, Locked: 7, Free: 490, Spent: 1010, Bytes: 507 * 65}
		if m.Quorum[1] == 2 {
			want = upkeep.MaskStats{Epoch: 1, Quorum: []uint32{0, 2}, Form: stock.MasksExact, Locked: 8, Bytes: 8 * 65}
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("%+v", m)
		}
	}
}
