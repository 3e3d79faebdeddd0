package vault

import (
	"bytes"
	"io"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// addMultikey stores keys and gives their version.
func addMultikey(t testing.TB, v *Vault, request string) uint64 {
	t.Helper()
	w, err := v.NewMultikey(0)
	must(t, err)
	defer w.Abort()
	_, err = w.Secret.Write(canary)
	must(t, err)
	_, err = io.WriteString(w.Public, "public")
	must(t, err)
	must(t, w.Commit(keys.MultikeyKey{
		Version: 99, State: keys.MultikeyRetired, Params: "M11-4", Key: [32]byte{1}, Client: "operator", Request: []byte(request),
		Record: []byte("signed"), Revocation: []byte("not yet"), Reason: "none",
	}))
	return w.Version()
}

func TestMultikeyKeys(t *testing.T) {
	v := inMemory(t)
	if a, b := addMultikey(t, v, "a"), addMultikey(t, v, "b"); a != 1 || b != 2 || objects(t, v) != 4 {
		t.Fatalf("versions %d and %d, %d objects", a, b, objects(t, v))
	}
	r, err := v.OpenMultikeySecret(1)
	if got := content(t, r, err); got != string(canary) {
		t.Errorf("got %q", got)
	}
	r, err = v.OpenMultikeyPublic(2)
	if got := content(t, r, err); got != "public" {
		t.Errorf("got %q", got)
	}
	noFindings(t, v)
	k, err := v.MultikeyKey(1)
	must(t, err)
	if k.State != keys.MultikeyActive || k.Revocation != nil || k.Reason != "" || string(k.Record) != "signed" {
		t.Errorf("%+v", k)
	}

	must(t, v.RetireMultikey(1, "leaked", []byte("revoked")))
	must(t, v.RetireMultikey(1, "again", nil))
	if k, err = v.MultikeyKey(1); err != nil || k.State != keys.MultikeyRetired || k.Reason != "leaked" || string(k.Revocation) != "revoked" || k.Retired.IsZero() {
		t.Errorf("%+v, %v", k, err)
	}
	_, err = v.OpenMultikeySecret(1)
	refused(t, err, vaulterr.ErrErased)
	_, err = v.OpenMultikeyPublic(1)
	refused(t, err, vaulterr.ErrErased)
	_, err = v.OpenMultikeySecret(3)
	refused(t, err, vaulterr.ErrNotFound)
	refused(t, v.RetireMultikey(3, "", nil), vaulterr.ErrNotFound)
	if n := objects(t, v); n != 2 {
		t.Errorf("%d objects are left", n)
	}
	must(t, v.RetireMultikey(2, "", nil))
	if version := addMultikey(t, v, "c"); version != 3 {
		t.Errorf("version %d after 2 that are retired", version)
	}
	noFindings(t, v)
}

// Of two callers that make keys at the same time one is rejected, and uncommitted keys leave no
// trace.
func TestMultikeyKeysAreMadeOneAfterTheOther(t *testing.T) {
	v := inMemory(t)
	w, err := v.NewMultikey(0)
	must(t, err)
	_, err = v.NewMultikey(0)
	refused(t, err, vaulterr.ErrExists)
	w.Abort()
	w.Abort()
	if all, err := v.MultikeyKeys(); err != nil || len(all) != 0 || objects(t, v) != 0 {
		t.Fatalf("%v, %v, %d objects", all, err, objects(t, v))
	}
	if version := addMultikey(t, v, "a"); version != 1 {
		t.Errorf("version %d", version)
	}
}

// Whatever becomes of any write while keys are made or retired, the next start has all of them or
// nothing.
func TestMultikeyKeysSurviveCrashes(t *testing.T) {
	for f := fails; f <= half; f++ {
		for at := 0; makesMultikey(t, f, at); at++ {
		}
		for at := 0; retiresMultikey(t, f, at); at++ {
		}
	}
}

// faulty has a write go wrong in what f does, and opens the vault anew; met says that there was
// such a write.
func faulty(t *testing.T, d *disk, v *Vault, at int, as fault, f func() error) (next *Vault, met bool, err error) {
	t.Helper()
	d.writes, d.fault = 0, func(n int, _ string) fault {
		if n == at {
			met = true
			return as
		}
		return works
	}
	err = f()
	d.fault = nil
	next = d.open(t, &seal.Key{})
	noFindings(t, next)
	return next, met, err
}

func makesMultikey(t *testing.T, as fault, at int) bool {
	t.Helper()
	d := newDisk()
	v := d.open(t, &seal.Key{})
	v, met, err := faulty(t, d, v, at, as, func() error { return makeOne(v) })
	all, listed := v.MultikeyKeys()
	must(t, listed)
	if err == nil && len(all) != 1 || objects(t, v) != 2*len(all) {
		t.Errorf("fault %d at write %d: %d keys, %d objects, %v", as, at, len(all), objects(t, v), err)
	}
	for range all {
		r, err := v.OpenMultikeySecret(1)
		if got := content(t, r, err); got != string(canary) {
			t.Errorf("fault %d at write %d: got %q", as, at, got)
		}
	}
	return met
}

func retiresMultikey(t *testing.T, as fault, at int) bool {
	t.Helper()
	d := newDisk()
	v := d.open(t, &seal.Key{})
	addMultikey(t, v, "a")
	v, met, err := faulty(t, d, v, at, as, func() error { return v.RetireMultikey(1, "test", nil) })
	k, found := v.MultikeyKey(1)
	must(t, found)
	if err == nil && k.State != keys.MultikeyRetired || (k.State == keys.MultikeyRetired) != (objects(t, v) == 0) {
		t.Errorf("fault %d at write %d: %s with %d objects, %v", as, at, k.State, objects(t, v), err)
	}
	return met
}

func makeOne(v *Vault) error {
	w, err := v.NewMultikey(0)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Secret.Write(canary); err != nil {
		return err
	}
	return w.Commit(keys.MultikeyKey{Params: "M11-4"})
}

// The keys come back from a backup, as nobody else has them, and serve once the operator has
// looked.
func TestMultikeyKeysAreBackedUp(t *testing.T) {
	v, k := inMemory(t), &seal.Key{}
	addMultikey(t, v, "a")
	addMultikey(t, v, "b")
	must(t, v.RetireMultikey(1, "test", nil))
	d := newDisk()
	_, err := Restore(&memory{disk: d}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{})
	must(t, err)
	r := d.open(t, k)
	_, err = r.OpenMultikeySecret(2)
	refused(t, err, vaulterr.ErrQuarantine)
	_, err = r.NewMultikey(0)
	refused(t, err, vaulterr.ErrQuarantine)
	must(t, r.LeaveQuarantine())
	in, err := r.OpenMultikeySecret(2)
	if got := content(t, in, err); got != string(canary) {
		t.Errorf("got %q", got)
	}
	_, err = r.OpenMultikeySecret(1)
	refused(t, err, vaulterr.ErrErased)
	noFindings(t, r)
}
