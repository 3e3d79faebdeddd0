package vault

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// maskHistory records the masks that decryptions saw, over all starts.
type maskHistory struct {
	*history
	given map[string]bool
}

func (h *maskHistory) spend(v *Vault, batch string, x stock.Span) error {
	got, err := v.SpendMasks(batch, x)
	if b, _ := v.Batch(batch); errors.Is(err, vaulterr.ErrTaken) || errors.Is(err, vaulterr.ErrErased) && b.State == stock.BatchConsumed {
		return nil // in doubt before, and lost
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(got, shares(batch, x, 65)) {
		h.fail("other masks than those of %s from %d on", batch, x.First)
	}
	for i := x.First; i < x.End(); i++ {
		name := fmt.Sprintf("%s/%d", batch, i)
		if h.given[name] {
			h.fail("mask %s is given twice", name)
		}
		h.given[name] = true
	}
	return nil
}

func (h *maskHistory) steps(late *time.Duration) []func(*Vault) error {
	spend := func(batch string, x stock.Span) func(*Vault) error {
		return func(v *Vault) error { return h.spend(v, batch, x) }
	}
	masks := func(id string, count uint64) func(*Vault) error {
		return func(v *Vault) error {
			if err := storeMasks(v, masksOf(id, count, 0, 1)); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateBatch(id)
		}
	}
	sweep := func(after time.Duration) func(*Vault) error {
		return func(v *Vault) error { *late = after; return v.Sweep() }
	}
	return []func(*Vault) error{
		func(v *Vault) error {
			if err := storeEpoch(v, thresholdEpoch(1)); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateEpoch(1)
		},
		masks("m0", 1500), masks("m1", 1200), masks("m2", 10),
		spend("m0", span(0, 400)), spend("m0", span(500, 100)), sweep(0),
		spend("m0", span(400, 100)), sweep(stock.Settle), spend("m0", span(600, 400)), sweep(stock.Settle),
		spend("m1", span(1000, 200)), spend("m1", span(0, 1000)), sweep(2 * stock.Settle),
		spend("m0", span(1200, 1)), sweep(4 * stock.Settle),
		func(v *Vault) error { return v.DrainEpoch(1, 0) },
		spend("m0", span(1201, 9)),
		func(v *Vault) error { return v.RevokeBatch("m2", "test") },
		func(v *Vault) error { _, err := v.RetireEpoch(1, "test"); return err },
	}
}

func playMasks(t *testing.T, name string, at int, f fault) (writes int) {
	d, k := newDisk(), &seal.Key{}
	h := &maskHistory{newHistory(t, name), map[string]bool{}}
	var late time.Duration
	open := func() *Vault {
		v, err := OpenIn(&memory{disk: d}, k)
		if err != nil {
			return nil
		}
		v.Clock = func() time.Time { return time.Now().Add(late) }
		return v
	}
	d.fault = func(n int, _ string) fault {
		if n == at {
			return f
		}
		return works
	}
	v := open()
	for i, step := range h.steps(&late) {
		for try := 0; ; try++ {
			if v == nil {
				if v = open(); v == nil {
					h.fail("step %d: it does not open again", i)
				}
				h.healed(v)
			}
			err := step(v)
			if err == nil {
				break
			}
			if try == 3 {
				h.fail("step %d: %v", i, err)
			}
			if errors.Is(err, errCrash) {
				v = nil
			}
		}
	}
	v = open()
	h.healed(v)
	for id, want := range map[string]stock.BatchState{"m0": stock.BatchRevoked, "m1": stock.BatchConsumed, "m2": stock.BatchRevoked} {
		if b := mustBatch(t, v, id); b.State != want {
			h.fail("%s is %s", id, b.State)
		}
	}
	if n := objects(t, v); n != 0 {
		h.fail("%d objects are left", n)
	}
	if at < 0 && len(h.given) != 1010+1200 {
		h.fail("%d masks were given", len(h.given))
	}
	return d.writes
}

// At every write, everything that can happen to it: no mask is given twice, and nothing of it
// stays.
func TestMasksCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	n := playMasks(t, "no fault", -1, works)
	if n < 30 {
		t.Fatalf("%d writes", n)
	}
	for f, name := range map[fault]string{
		fails: "fails", doubtful: "takes place in doubt", unwritten: "does not take place, in doubt", before: "crash before",
		after: "crash after", half: "crash within",
	} {
		for at := range n {
			playMasks(t, fmt.Sprintf("write %d %s", at, name), at, f)
		}
	}
}
