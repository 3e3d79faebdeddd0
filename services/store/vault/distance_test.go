package vault

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

var alicesProducts = ledger.Distance{Asks: "spiffe://test/alice", Answers: "spiffe://test/bob", AsksName: "alice", AnswersName: "bob"}

func spend(v *Vault, d ledger.Distance, wanted, budget float64) error {
	_, err := v.SpendDistance(d, wanted, budget)
	return err
}

// A pair of clients spends its budget and no more, and another pair has its own.
func TestDistanceBudget(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	const budget = 0x1p-30
	for range 3 {
		must(t, v.MayDistance(alicesProducts, 0x1p-32, budget))
		must(t, spend(v, alicesProducts, 0x1p-32, budget))
	}
	var over *ledger.DistanceError
	for _, err := range []error{spend(v, alicesProducts, 0x1p-31, budget), v.MayDistance(alicesProducts, 0x1p-31, budget)} {
		if refused(t, err, vaulterr.ErrDistance); !errors.As(err, &over) || over.Lost || over.Budget != budget || over.Wanted != 0x1p-31 {
			t.Errorf("%+v", over)
		}
	}
	all, err := v.Distances()
	must(t, err)
	if len(all) != 1 || all[0].Products != 3 || all[0].AsksName != "alice" || all[0].Spent < 3*0x1p-32 || all[0].Spent > 3.001*0x1p-32 {
		t.Errorf("%+v", all)
	}
	must(t, spend(v, alicesProducts, 0x1p-32, 2*budget)) // a raised budget
	must(t, spend(v, ledger.Distance{Asks: alicesProducts.Answers, Answers: alicesProducts.Asks}, 0x1p-31, budget))
	must(t, spend(v, ledger.Distance{Asks: "spiffe://test/carol", Answers: alicesProducts.Answers}, 0x1p-31, budget))
	for _, d := range []ledger.Distance{{Asks: "x"}, {Answers: "x"}} {
		refused(t, spend(v, d, 1, 1), vaulterr.ErrRange)
	}
	for _, wanted := range []float64{0, -1, math.NaN()} {
		refused(t, spend(v, alicesProducts, wanted, budget), vaulterr.ErrRange)
	}
	noFindings(t, v)
}

// Distances that are too small to change a sum of floats still count.
func TestSmallDistancesAddUp(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	must(t, spend(v, alicesProducts, 0x1p-31, 0x1p-30))
	before, err := v.Distances()
	must(t, err)
	must(t, spend(v, alicesProducts, 0x1p-300, 0x1p-30))
	after, err := v.Distances()
	must(t, err)
	if !(after[0].Spent > before[0].Spent) {
		t.Errorf("%v after %v", after[0].Spent, before[0].Spent)
	}
}

// Neither a restart, nor other epochs and shares, nor another name of the same certificate begins
// another sum.
func TestDistanceBudgetAcrossRestartReshareAndNames(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	const budget = 0x1p-30
	must(t, spend(v, alicesProducts, 0x1p-31, budget))
	must(t, v.Close())
	v = d.open(t, k)
	refused(t, spend(v, alicesProducts, 0x1p-31, budget), vaulterr.ErrDistance)
	e := thresholdEpoch(1)
	must(t, storeEpoch(v, e))
	must(t, v.ActivateEpoch(1))
	sharesOf(t, v, 2, 1, 1)
	_, err := v.RetireEpoch(1, "test")
	must(t, err)
	refused(t, spend(v, alicesProducts, 0x1p-31, budget), vaulterr.ErrDistance)
	renamed := alicesProducts
	renamed.AsksName, renamed.AnswersName = "alice-2", "bob-2"
	refused(t, spend(v, renamed, 0x1p-31, budget), vaulterr.ErrDistance)
	noFindings(t, v)
}

// A crash in the middle of a product leaves its distance counted or not counted: in the second case
// no answer has left.
func TestDistanceIsDurableBeforeItIsSpent(t *testing.T) {
	t.Parallel()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	d.fault = func(int, string) fault { return fails }
	if spend(v, alicesProducts, 0x1p-31, 0x1p-30) == nil {
		t.Error("a distance that was not stored counts as spent")
	}
	d.fault = nil
	must(t, v.Close())
	v = d.open(t, k)
	if all, err := v.Distances(); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

// A store from a backup, or an old copy that was put back, counts every budget as used up: also
// those of clients that it does not know. Raising the budget allows as much again.
func TestDistanceAfterRestore(t *testing.T) {
	t.Parallel()
	const budget = 0x1p-29 // more than the default
	stranger := ledger.Distance{Asks: "spiffe://test/carol", Answers: "spiffe://test/bob"}
	for name, lose := range map[string]func(v *Vault, k *seal.Key) *Vault{
		"restore": func(v *Vault, k *seal.Key) *Vault {
			d := newDisk()
			_, err := Restore(&memory{disk: d}, bytes.NewReader(backupOf(t, v)), k, upkeep.RestoreOptions{KeepDecryption: true})
			must(t, err)
			return d.open(t, k)
		},
		"put back": func(v *Vault, _ *seal.Key) *Vault {
			must(t, v.Quarantine("an old copy", 1000))
			return v
		},
	} {
		k := newKey(t)
		v := newDisk().open(t, k)
		must(t, spend(v, alicesProducts, 0x1p-40, budget))
		for range 2 { // the second time nothing more is lost
			v = lose(v, k)
			refused(t, spend(v, alicesProducts, 0x1p-40, 1), vaulterr.ErrQuarantine)
			must(t, v.LeaveQuarantine())
			for _, d := range []ledger.Distance{alicesProducts, stranger} {
				var over *ledger.DistanceError
				if err := spend(v, d, 0x1p-40, budget); !errors.As(err, &over) || !over.Lost {
					t.Errorf("%s: %v", name, err)
				}
			}
			noFindings(t, v)
		}
		for _, d := range []ledger.Distance{alicesProducts, stranger} {
			must(t, spend(v, d, 0x1.ffp-30, 2*budget))
			refused(t, spend(v, d, budget, 2*budget), vaulterr.ErrDistance)
		}
	}
}
