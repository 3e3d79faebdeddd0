package vault

import (
	"bytes"
	"errors"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A budget counts each client's messages under each key. Messages that exceed the budget are
// rejected and not counted.
func TestBudgets(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	a, b := [32]byte{1}, [32]byte{2}
	spend := func(client string, n, most, want uint64, keys ...[32]byte) {
		t.Helper()
		got, err := v.SpendBudget(client, keys, n, most)
		if want == 0 {
			var e *ledger.BudgetError
			if !errors.As(err, &e) || e.FromABackup || !errors.Is(err, vaulterr.ErrSpent) {
				t.Errorf("%d of %d for %s: %d, %v", n, most, client, got, err)
			}
			return
		}
		if err != nil || got != want {
			t.Errorf("%d of %d for %s: %d, %v; want %d", n, most, client, got, err, want)
		}
	}
	spend("alice", 6, 10, 6, a)
	spend("bob", 10, 10, 10, a)
	spend("alice", 5, 10, 0, a)
	spend("alice", 2, 10, 8, a, b) // the larger of two totals
	spend("alice", 3, 10, 0, b, a) // both or none
	spend("alice", 8, 10, 10, b)
	spend("alice", 11, 10, 0, [32]byte{3})
	spend("alice", 1<<63, 10, 0, a)
	spend("alice", 2, 10, 10, a)
	spend("alice", 1, 10, 0, a)
	spend("alice", 1, 11, 11, a) // a rule with a larger total goes on
	must(t, v.Close())
	v = d.open(t, k)
	spend("alice", 1, 11, 0, a) // after a restart
	for _, c := range []struct {
		client string
		n      uint64
		keys   [][32]byte
	}{{"", 1, [][32]byte{a}}, {"alice\xff", 1, [][32]byte{a}}, {"alice", 0, [][32]byte{a}}, {"alice", 1, nil}} {
		if _, err := v.SpendBudget(c.client, c.keys, c.n, 100); !errors.Is(err, vaulterr.ErrRange) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	all, err := v.Budgets()
	if must(t, err); len(all) != 3 {
		t.Errorf("%+v", all)
	}
	noFindings(t, v)
}

// A store from a backup has spent the budgets of all its keys, also under new shares of these keys.
func TestBudgetsAreClosedByRestore(t *testing.T) {
	t.Parallel()
	for _, keep := range []bool{true, false} {
		d, k := newDisk(), &seal.Key{}
		v := d.open(t, k)
		e := thresholdEpoch(1)
		e.Digest = [32]byte{5}
		must(t, storeEpoch(v, e))
		must(t, v.ActivateEpoch(1))
		own, err := v.MultikeyKey(addMultikey(t, v, "make"))
		must(t, err)
		for _, key := range [][32]byte{e.Digest, own.Key, {9}} {
			_, err = v.SpendBudget("alice", [][32]byte{key}, 1, 10)
			must(t, err)
		}
		r := newDisk()
		_, err = Restore(&memory{disk: r}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: keep})
		must(t, err)
		v = r.open(t, k)
		must(t, v.LeaveQuarantine())
		for _, key := range [][32]byte{e.Digest, own.Key} {
			for _, client := range []string{"alice", "bob"} { // who had spent nothing when the backup was taken
				var spent *ledger.BudgetError
				if _, err := v.SpendBudget(client, [][32]byte{key}, 1, 10); !errors.As(err, &spent) || !spent.FromABackup {
					t.Errorf("%s under %.2x: %v", client, key, err)
				}
			}
		}
		if n, err := v.SpendBudget("alice", [][32]byte{{10}}, 1, 10); err != nil || n != 1 {
			t.Errorf("under keys made since: %d, %v", n, err)
		}
		sharesOf(t, v, 2, 1, 1)
		if _, err := v.SpendBudget("alice", [][32]byte{{5}}, 1, 10); !errors.Is(err, vaulterr.ErrSpent) {
			t.Errorf("under new shares: %v", err)
		}
		noFindings(t, v)
	}
}
