package vault

import (
	"errors"
	"fmt"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// provedEpoch makes the keys of epoch 1 proved ones.
func provedEpoch(t *testing.T, v *Vault) {
	t.Helper()
	must(t, v.Update(func(tx store.Tx) error {
		e, err := seal.Get[keys.Epoch](v.Store, tx, keys.EpochKey(1))
		if err == nil {
			e.KeygenSecurity = keys.ProvedKeys
			err = seal.Put(v.Store, tx, keys.EpochKey(1), e)
		}
		return err
	}))
}

// check runs a check of mac-1 that ends like this.
func check(t *testing.T, v *Vault, session string, result keys.CheckResult) keys.MACKey {
	t.Helper()
	must(t, v.BeginCheck("mac-1", session))
	k, err := v.EndCheck("mac-1", session, result)
	must(t, err)
	return k
}

// Too many failures retire a MAC key under proved keys: no batch is added under it, and released
// tuples stay valid.
func TestFailedChecksRetireAMACKey(t *testing.T) {
	for name, c := range map[string]struct {
		results func(i int) keys.CheckResult
		after   int // the number of checks that do not pass
	}{
		"three in a row":  {func(int) keys.CheckResult { return keys.CheckFailed }, keys.MaxFailedInARow},
		"some do not end": {func(int) keys.CheckResult { return keys.CheckUnfinished }, keys.MaxFailedChecks},
		"many in all": {func(i int) keys.CheckResult {
			if i%3 == 2 {
				return keys.CheckPassed
			}
			return keys.CheckFailed
		}, keys.MaxFailedChecks},
	} {
		t.Run(name, func(t *testing.T) {
			v := inMemory(t)
			stocked(t, v, 5)
			provedEpoch(t, v)
			reserve(t, v, "before", in(0, 0, 2))
			failed := 0
			for i := 0; failed < c.after; i++ {
				if k, err := v.MACKey("mac-1"); err != nil || k.State != keys.MACActive || k.Failed != failed {
					t.Fatalf("after %d failures: %+v, %v", failed, k, err)
				}
				result := c.results(i)
				if result != keys.CheckPassed {
					failed++
				}
				check(t, v, fmt.Sprint(i), result)
			}
			if k, err := v.MACKey("mac-1"); err != nil || k.State != keys.MACRetired || k.Reason == "" || len(k.Checks) > 0 {
				t.Fatalf("%+v, %v", k, err)
			}
			_, err := v.FindMACKey(1, "p128", "demo")
			refused(t, err, vaulterr.ErrNotFound)
			refused(t, v.BeginCheck("mac-1", "next"), vaulterr.ErrState)
			refused(t, storeBatch(v, batchOf("new", 5), nil), vaulterr.ErrState)
			got, err := fetch(v, "before", "alice")
			wantShares(t, got, err, in(0, 0, 2))
			reserve(t, v, "after", in(0, 2, 2))
			got, err = fetch(v, "after", "alice")
			wantShares(t, got, err, in(0, 2, 2))
			key, err := v.OpenMACKey("mac-1") // for clients, which check what they open
			must(t, err)
			must(t, key.Close())
		})
	}
}

// A running check delays no other, and a failed one takes nothing away under proved keys.
func TestTuplesAreGivenDuringAndAfterACheckThatFails(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 5)
	provedEpoch(t, v)
	must(t, v.BeginCheck("mac-1", "s"))
	reserve(t, v, "r", in(0, 0, 2))
	got, err := fetch(v, "r", "alice")
	wantShares(t, got, err, in(0, 0, 2))
	must(t, storeBatch(v, batchOf("another", 5), nil))
	k, err := v.EndCheck("mac-1", "s", keys.CheckFailed)
	if must(t, err); k.State != keys.MACActive || k.Failed != 1 || k.InARow != 1 {
		t.Errorf("%+v", k)
	}
	if k = check(t, v, "t", keys.CheckPassed); k.Failed != 1 || k.InARow != 0 {
		t.Errorf("%+v", k)
	}
	// A session that has no check under way changes nothing.
	if k, err = v.EndCheck("mac-1", "t", keys.CheckFailed); err != nil || k.Failed != 1 {
		t.Errorf("%+v, %v", k, err)
	}
	refused(t, v.BeginCheck("none", "s"), vaulterr.ErrNotFound)
	_, err = v.EndCheck("none", "s", keys.CheckFailed)
	refused(t, err, vaulterr.ErrNotFound)
}

// Under keys that are not proved, a check that fails or does not end burns the MAC key with
// everything under it.
func TestFailedChecksUnderUnprovedKeysBurn(t *testing.T) {
	for _, result := range []keys.CheckResult{keys.CheckFailed, keys.CheckUnfinished} {
		v := inMemory(t)
		stocked(t, v, 5)
		before := objects(t, v)
		if k := check(t, v, "s", keys.CheckPassed); k.State != keys.MACActive {
			t.Fatalf("%+v", k)
		}
		if k := check(t, v, "s", result); k.State != keys.MACBurnt {
			t.Errorf("%+v", k)
		}
		if b, err := v.Batch("batch-0"); err != nil || b.State != stock.BatchRevoked {
			t.Errorf("%+v, %v", b, err)
		}
		if n := objects(t, v); n != before-3 { // the key, and the two of the batch
			t.Errorf("%d objects of %d left", n, before)
		}
	}
}

// A check whose end the disk did not take may have failed. Under keys that are not proved it burns
// the MAC key before the next check, with every batch under it; a session consumes its check
// triples once.
func TestACheckWhoseEndWasNotRecorded(t *testing.T) {
	for _, proved := range []bool{true, false} {
		d := newDisk()
		v := d.open(t, &seal.Key{})
		stocked(t, v, 5)
		if proved {
			provedEpoch(t, v)
		}
		must(t, v.BeginCheck("mac-1", "s"))
		d.fault = func(int, string) fault { return fails }
		if _, err := v.EndCheck("mac-1", "s", keys.CheckFailed); err == nil {
			t.Fatal("the disk took the end")
		}
		d.fault = nil
		err := v.BeginCheck("mac-1", "s")
		refused(t, err, vaulterr.ErrState)
		if errors.Is(err, vaulterr.ErrCheckUnended) == proved {
			t.Errorf("proved %v: %v", proved, err)
		}
		k, found := v.MACKey("mac-1")
		must(t, found)
		if want := map[bool]keys.MACState{true: keys.MACActive, false: keys.MACBurnt}[proved]; k.State != want {
			t.Errorf("proved %v: %+v", proved, k)
		}
		if b, err := v.Batch("batch-0"); err != nil || (b.State == stock.BatchRevoked) == proved {
			t.Errorf("proved %v: %+v, %v", proved, b, err)
		}
		if err = v.BeginCheck("mac-1", "t"); (err == nil) != proved {
			t.Errorf("proved %v, the next check: %v", proved, err)
		}
	}
}

// A check that was running when the process ended counts as unfinished.
func TestChecksUnderWayWhenTheProcessEnds(t *testing.T) {
	for _, proved := range []bool{true, false} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		stocked(t, v, 5)
		if proved {
			provedEpoch(t, v)
		}
		check(t, v, "passed", keys.CheckPassed)
		must(t, v.BeginCheck("mac-1", "s"))
		if proved { // others use the key one at a time
			must(t, v.BeginCheck("mac-1", "t"))
			must(t, v.BeginCheck("mac-1", "passes"))
			_, err := v.EndCheck("mac-1", "passes", keys.CheckPassed)
			must(t, err)
		}
		v = d.open(t, k)
		key, err := v.MACKey("mac-1")
		must(t, err)
		want := keys.MACActive
		if !proved {
			want = keys.MACBurnt
		}
		if key.State != want || len(key.Checks) > 0 || proved && (key.Failed != 2 || key.InARow != 0) {
			t.Errorf("proved %v: %+v", proved, key)
		}
		v = d.open(t, k) // once
		if again, err := v.MACKey("mac-1"); err != nil || again.Failed != key.Failed || again.State != want {
			t.Errorf("proved %v: %+v, %v", proved, again, err)
		}
	}
}

// A MAC key that a check of protocol version 12 may have revealed is burnt with its batches when
// the store opens.
func TestExposedMACKeysAreBurnt(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 5)
	must(t, v.Advance(func(tx store.Tx) error {
		key, err := seal.Get[keys.MACKey](v.Store, tx, keys.MACPrefix+"mac-1")
		if err != nil {
			return err
		}
		key.Exposed = []string{"s"}
		return seal.Put(v.Store, tx, keys.MACPrefix+"mac-1", key)
	}))
	v = d.open(t, k)
	if key, err := v.MACKey("mac-1"); err != nil || key.State != keys.MACBurnt {
		t.Errorf("%+v, %v", key, err)
	}
	if b, err := v.Batch("batch-0"); err != nil || b.State != stock.BatchRevoked {
		t.Errorf("%+v, %v", b, err)
	}
}

// A key that other parties do not hold is retired, and no check retires it for another reason.
func TestRetireMACKey(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 5)
	must(t, v.RetireMACKey("mac-1", "not all parties hold it"))
	must(t, v.RetireMACKey("mac-1", "again"))
	if k, err := v.MACKey("mac-1"); err != nil || k.State != keys.MACRetired || k.Reason != "not all parties hold it" {
		t.Errorf("%+v, %v", k, err)
	}
	if n, err := v.BurnMACKey("mac-1", "a client reports a failed check"); err != nil || n != 1 {
		t.Errorf("%d, %v", n, err)
	}
	must(t, v.RetireMACKey("mac-1", "later"))
	if k, err := v.MACKey("mac-1"); err != nil || k.State != keys.MACBurnt {
		t.Errorf("%+v, %v", k, err)
	}
	refused(t, v.RetireMACKey("none", ""), vaulterr.ErrNotFound)
}
