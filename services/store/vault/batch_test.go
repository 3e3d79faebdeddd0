package vault

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestBatchUnderWrongMACKey(t *testing.T) {
	v := inMemory(t)
	addEpoch(t, v, 1, "triples")
	base := batchOf("a", 3)
	refused(t, storeBatch(v, base, macKey("mac-1")), vaulterr.ErrState) // epoch locked
	must(t, v.ActivateEpoch(1))
	refused(t, storeBatch(v, base, nil), vaulterr.ErrNotFound)
	refused(t, storeBatch(v, base, macKey("mac-2")), vaulterr.ErrState) // not the batch's
	must(t, storeBatch(v, base, macKey("mac-1")))
	other := base
	other.ID = "b"
	refused(t, storeBatch(v, other, nil), vaulterr.ErrState) // MAC key locked
	must(t, v.ActivateBatch("a"))
	must(t, storeBatch(v, other, nil))
	other.ID = "c"
	refused(t, storeBatch(v, other, macKey("mac-1")), vaulterr.ErrExists)
	other.Tenant = "else"
	refused(t, storeBatch(v, other, nil), vaulterr.ErrState)
	other.Tenant, other.Field = base.Tenant, "p64"
	refused(t, storeBatch(v, other, nil), vaulterr.ErrState)
	addEpoch(t, v, 2, "triples")
	must(t, v.ActivateEpoch(2))
	other.Field, other.Epoch = base.Field, 2
	refused(t, storeBatch(v, other, nil), vaulterr.ErrState)
	if n := objects(t, v); n != 2*2+1+4 {
		t.Fatalf("%d objects; refused ones were left", n)
	}
	// A locked batch that is dropped takes the key that was made for it along.
	third := base
	third.ID, third.MACKey = "d", "mac-2"
	must(t, storeBatch(v, third, macKey("mac-2")))
	must(t, v.RevokeBatch("d", "cancelled"))
	if k, err := v.MACKey("mac-2"); err != nil || k.State != keys.MACBurnt {
		t.Fatalf("%v, %v", k, err)
	}
}

func TestBatchLife(t *testing.T) {
	v := inMemory(t)
	stocked(t, v)
	addBatch(t, v, "batch-0", 10, macKey("mac-1"))
	_, err := v.Reserve(reservation(v, "r", in(0, 0, 5)))
	refused(t, err, vaulterr.ErrState)
	_, err = v.OpenMACKey("mac-1")
	refused(t, err, vaulterr.ErrState)
	_, err = v.FindMACKey(1, "p128", "demo")
	refused(t, err, vaulterr.ErrNotFound)
	must(t, v.ActivateBatch("batch-0"))
	must(t, v.ActivateBatch("batch-0"))
	if k, err := v.FindMACKey(1, "p128", "demo"); err != nil || k.ID != "mac-1" {
		t.Fatalf("%v, %v", k, err)
	}
	reserve(t, v, "r", in(0, 0, 5))
	reserve(t, v, "s", in(0, 8, 1))
	if _, err := v.Release("s", true); err != nil {
		t.Fatal(err)
	}
	must(t, v.RevokeBatch("batch-0", "over"))
	must(t, v.RevokeBatch("batch-0", "again"))
	_, err = fetch(v, "r", "alice")
	refused(t, err, vaulterr.ErrErased)
	refused(t, v.ActivateBatch("batch-0"), vaulterr.ErrErased)
	if _, err := v.NewBatch(batchOf("batch-0", 1)); !errors.Is(err, vaulterr.ErrExists) {
		t.Fatalf("a tombstone's id was used again: %v", err)
	}
	// Four were free, one discarded; five are lost when their reservation ends.
	b, err := v.Batch("batch-0")
	if err != nil || b.Reason != "over" || b.State != stock.BatchRevoked || b.Lost != 5 {
		t.Fatalf("%+v, %v", b, err)
	}
	_, err = v.Withdraw("r")
	must(t, err)
	_, err = v.Release("r", false)
	must(t, err)
	if b, err := v.Batch("batch-0"); err != nil || b.Lost != 10 {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := v.OpenMACKey("mac-1"); err != nil {
		t.Fatalf("the MAC key went with its batch: %v", err)
	}
	refused(t, v.RevokeBatch("none", ""), vaulterr.ErrNotFound)
}

// A batch has shares for its count of tuples.
func TestBatchOfAnotherSize(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 1)
	for _, n := range []int{0, 1, 3*tupleLen - 1, 3*tupleLen + 1, 200_000} {
		w, err := v.NewBatch(batchOf("b", 3))
		must(t, err)
		_, err = w.Write(make([]byte, n))
		must(t, err)
		refused(t, w.Commit(nil), vaulterr.ErrState)
	}
	_, err := v.NewBatch(batchOf("b", 0))
	refused(t, err, vaulterr.ErrState)
	if n := objects(t, v); n != 2+1+2 {
		t.Errorf("%d objects", n)
	}
}

// Of two writers of one batch, one commits.
func TestTwoWritersOfABatch(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 1)
	var ws [2]*stock.BatchWriter
	for i := range ws {
		var err error
		ws[i], err = v.NewBatch(batchOf("batch-1", 5))
		must(t, err)
		_, err = ws[i].Write(shares("batch-1", stock.Span{First: 0, Count: 5}, tupleLen))
		must(t, err)
	}
	must(t, ws[1].Commit(nil))
	refused(t, ws[0].Commit(nil), vaulterr.ErrExists)
	must(t, v.ActivateBatch("batch-1"))
	reserve(t, v, "r", in(1, 0, 5))
	got, err := fetch(v, "r", "alice")
	wantShares(t, got, err, in(1, 0, 5))
}

// Products without a sacrifice are in a separate class. So are products from before the sacrifice
// was introduced, whose records do not mention it.
func TestBatchesWithoutSacrifice(t *testing.T) {
	v := newDisk().open(t, &seal.Key{})
	stocked(t, v, 10)
	plain := batchOf("batch-1", 10)
	plain.NoSacrifice = true
	must(t, storeBatch(v, plain, nil))
	must(t, v.ActivateBatch("batch-1"))
	_, err := v.Reserve(reservation(v, "r", in(1, 0, 10)))
	refused(t, err, vaulterr.ErrRange)
	own := reservation(v, "r", in(1, 0, 10))
	own.Class.NoSacrifice = true
	r, err := v.Reserve(own)
	must(t, err)
	with := own
	with.Class.NoSacrifice = false
	if digest := [][32]byte{{}}; r.Digest == ([32]byte{}) || own.ComputeDigest(digest) == with.ComputeDigest(digest) {
		t.Error("parties that differ about the sacrifice agree on a reservation")
	}

	for record, want := range map[string]bool{
		`{"kind":"scalar"}`: true, `{"kind":"matrix"}`: true, `{"kind":"random"}`: false, `{"kind":"input"}`: false,
		`{"kind":"scalar","no_sacrifice":false}`: false, `{"kind":"scalar","no_sacrifice":true}`: true,
	} {
		var b stock.Batch
		must(t, json.Unmarshal([]byte(record), &b))
		if b.Class().NoSacrifice != want {
			t.Errorf("%s: no sacrifice: %v", record, !want)
		}
		written, err := json.Marshal(b)
		must(t, err)
		var again stock.Batch
		must(t, json.Unmarshal(written, &again))
		if again.NoSacrifice != b.NoSacrifice {
			t.Errorf("%s becomes %s", record, written)
		}
	}
}
