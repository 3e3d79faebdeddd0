package vault

import "testing"

func TestBurn(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 5, 5)
	reserve(t, v, "r", in(0, 0, 2))
	_, err := fetch(v, "r", "alice")
	must(t, err)
	if n, err := v.BurnMACKey("mac-1", "check failed"); err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := v.BurnMACKey("mac-1", "again"); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	_, err = fetch(v, "r", "alice") // not even again
	refused(t, err, ErrErased)
	_, err = v.OpenMACKey("mac-1")
	refused(t, err, ErrErased)
	_, err = v.Reserve(reservation(v, "s", in(1, 0, 1)))
	refused(t, err, ErrErased)
	if k, err := v.MACKey("mac-1"); err != nil || k.Reason != "check failed" {
		t.Errorf("%+v, %v", k, err)
	}
	if n := objects(t, v); n != 2 {
		t.Fatalf("%d objects left", n)
	}
	_, err = v.BurnMACKey("none", "")
	refused(t, err, ErrNotFound)
}

// A MAC key whose check was under way when the process ended is burnt with everything under it; one whose checks have
// passed is not.
func TestMACKeysExposedByACrash(t *testing.T) {
	d, k := newDisk(), &Key{}
	v := d.open(t, k)
	stocked(t, v)
	reserveUnder := func(id string) {
		r := reservation(v, "r-"+id, Range{"batch-" + id, Span{First: 0, Count: 2}})
		r.MACKey = "mac-" + id
		_, err := v.Reserve(r)
		must(t, err)
	}
	for _, id := range []string{"1", "2"} {
		b := batchOf("batch-"+id, 5)
		b.MACKey = "mac-" + id
		must(t, storeBatch(v, b, macKey(b.MACKey)))
		refused(t, v.ExposeMACKey("mac-"+id, "s"), ErrState) // it is locked
		_, err := v.OpenMACKey("mac-" + id)
		refused(t, err, ErrState)
		must(t, v.ActivateBatch(b.ID))
		reserveUnder(id)
		must(t, v.ExposeMACKey("mac-"+id, "s"))
		must(t, v.ExposeMACKey("mac-"+id, "t"))
		must(t, v.SettleMACKey("mac-"+id, "s"))
		_, err = fetch(v, "r-"+id, "alice")
		refused(t, err, ErrExposed)
	}
	must(t, v.SettleMACKey("mac-2", "t"))
	refused(t, v.ExposeMACKey("mac-3", "s"), ErrNotFound)
	got, err := fetch(v, "r-2", "alice")
	wantShares(t, got, err, in(2, 0, 2))
	must(t, v.ExposeMACKey("mac-2", "u"))
	got, err = fetch(v, "r-2", "alice") // what has left may leave again
	wantShares(t, got, err, in(2, 0, 2))
	must(t, v.SettleMACKey("mac-2", "u"))
	v = d.open(t, k)
	_, err = v.OpenMACKey("mac-1")
	refused(t, err, ErrErased)
	_, err = fetch(v, "r-1", "alice")
	refused(t, err, ErrErased)
	for id, want := range map[string]BatchState{"batch-1": BatchRevoked, "batch-2": BatchAvailable} {
		if b, err := v.Batch(id); err != nil || b.State != want {
			t.Errorf("%s is %s, %v", id, b.State, err)
		}
	}
	in2, err := v.OpenMACKey("mac-2")
	must(t, err)
	must(t, in2.Close())
	got, err = fetch(v, "r-2", "alice")
	wantShares(t, got, err, in(2, 0, 2))
}
