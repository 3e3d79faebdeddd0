package vault

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Every fault at every write: the acknowledged answer is the one that is given.
func TestLedgerCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	n := playLedger(t, "no fault", -1, works)
	for f, name := range map[fault]string{
		fails: "fails", doubtful: "takes place in doubt", unwritten: "does not take place, in doubt", before: "crash before",
		after: "crash after", half: "crash within",
	} {
		for at := range n {
			playLedger(t, fmt.Sprintf("write %d %s", at, name), at, f)
		}
	}
}

func playLedger(t *testing.T, name string, at int, f fault) (writes int) {
	d, k := newDisk(), &seal.Key{}
	h := newHistory(t, name)
	given := map[string]string{} // to clients
	answer := func(what string, b []byte) {
		if was, ok := given[what]; ok && was != string(b) {
			h.fail("%s was answered with %x, and now with %x", what, was, b)
		}
		given[what] = string(b)
	}
	flood := byte(0)
	run := func(id byte, first, count int) func(*Vault) error {
		return func(v *Vault) error {
			r := runOf(id, first, count)
			if err := v.RecordThreshold(r); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			held, err := v.ThresholdAnswers(1, r.Quorum, r.Messages)
			for i, list := range held {
				a := theOne(t, list)
				if a.Run != r.Run {
					h.fail("%d is answered by run %x, and not %x", first+i, a.Run, r.Run)
				}
				answer(fmt.Sprintf("%d of %d", first+i, id), a.Bytes)
			}
			return err
		}
	}
	steps := []func(*Vault) error{
		func(v *Vault) error {
			if err := storeEpoch(v, thresholdEpoch(1)); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateEpoch(1)
		},
		run(1, 0, 500), run(2, 1000, 1), run(3, 400, 200),
		func(v *Vault) error {
			flood++ // another run, because an unrecorded run counts as another
			held, _, err := flooded(v, floodRun(flood, digestOf(1), []uint32{0, 1}, "alice"), time.Now().AppendFormat(nil, time.RFC3339Nano))
			if err == nil {
				answer("flooding", held)
			}
			return err
		},
		func(v *Vault) error { return v.Sweep() },
		func(v *Vault) error {
			_, err := v.RetireEpoch(1, "test")
			return err
		},
	}
	d.fault = func(n int, _ string) fault {
		if n == at {
			return f
		}
		return works
	}
	var v *Vault
	for i, step := range steps {
		for try := 0; ; try++ {
			for v == nil {
				v, _ = OpenIn(&memory{disk: d}, k)
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
		if _, err := v.Check(true, func(int, int) {}, func(f upkeep.Finding) {
			if !f.Mended {
				h.fail("step %d: %+v", i, f)
			}
		}); err != nil && !errors.Is(err, errCrash) {
			h.fail("%v", err)
		}
	}
	d.fault = nil
	v, err := OpenIn(&memory{disk: d}, k)
	must(t, err)
	noFindings(t, v)
	if n, err := v.ThresholdCount(1); err != nil || n != 601 || objects(t, v) != 0 {
		h.fail("%d answered, %d objects, %v", n, objects(t, v), err)
	}
	return d.writes
}
