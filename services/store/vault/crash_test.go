package vault

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// history records the results that clients saw of a vault, over all of its starts.
type history struct {
	t    *testing.T
	name string
	got  map[string]string          // "batch/tuple": the reservation and client that it went to
	gone map[string]map[uint64]bool // tuples that were acknowledged as erased
}

func newHistory(t *testing.T, name string) *history {
	return &history{t, name, map[string]string{}, map[string]map[uint64]bool{}}
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	h.t.Fatalf("%s: %s", h.name, fmt.Sprintf(format, args...))
}

// fetch records the tuples that a client receives, and checks them.
func (h *history) fetch(v *Vault, id, client string) error {
	h.t.Helper()
	r, _, err := v.Deliver(id, client, 0)
	if err != nil {
		return err
	}
	b, err := readAll(v, &r, 0)
	want := expected(r.Ranges)
	if !bytes.HasPrefix(want, b) || err == nil && len(b) != len(want) {
		h.fail("%s got %d bytes of %s, which are not its shares", client, len(b), id)
	}
	at := 0
	for _, x := range r.Ranges {
		for i := x.First; i < x.End() && at < len(b); i++ {
			tuple, to := fmt.Sprintf("%s/%d", x.Batch, i), id+" of "+client
			if was, ok := h.got[tuple]; ok && was != to {
				h.fail("tuple %s went to %s and to %s", tuple, was, to)
			}
			if h.gone[x.Batch][i] {
				h.fail("tuple %s was erased and went to %s", tuple, to)
			}
			h.got[tuple] = to
			at += tupleLen
		}
	}
	return err
}

// erased notes that a reservation's tuples are erased.
func (h *history) erased(r stock.Reservation) {
	for _, x := range r.Ranges {
		if h.gone[x.Batch] == nil {
			h.gone[x.Batch] = map[uint64]bool{}
		}
		for i := x.First; i < x.End(); i++ {
			h.gone[x.Batch][i] = true
		}
	}
}

// tooLate is a batch of an epoch that drains.
func (h *history) tooLate(v *Vault) error {
	h.t.Helper()
	err := storeBatch(v, batchOf("late", 10), nil)
	if err == nil {
		h.fail("a batch was stored under an epoch that drains")
	}
	if spent := v.SpendDecryptions(1, 1); spent == nil {
		h.fail("a session began under an epoch that drains")
	}
	if errors.Is(err, vaulterr.ErrState) {
		return nil
	}
	return err
}

// steps are a life of a vault. Each may be repeated after any error, as its callers do.
func steps(h *history, late *time.Duration) []func(*Vault) error {
	reserve := func(id string, ranges ...stock.Range) func(*Vault) error {
		lease := time.Now().Add(time.Hour).UTC()
		return func(v *Vault) error {
			r := reservation(v, id, ranges...)
			r.Lease = lease
			_, err := v.Reserve(r)
			return err
		}
	}
	fetch := func(id, client string) func(*Vault) error {
		return func(v *Vault) error { return h.fetch(v, id, client) }
	}
	release := func(id string, discard bool) func(*Vault) error {
		return func(v *Vault) error {
			r, err := v.Release(id, discard)
			if err == nil && r.State == stock.Erased {
				h.erased(r)
			}
			return err
		}
	}
	batch := func(id string, count uint64, fresh bool) func(*Vault) error {
		return func(v *Vault) error {
			var key *keys.NewMACKey
			if fresh {
				key = macKey("mac-1")
			}
			if err := storeBatch(v, batchOf(id, count), key); err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateBatch(id)
		}
	}
	return []func(*Vault) error{
		func(v *Vault) error {
			w, err := v.NewEpoch(keys.Epoch{ID: 1, Purpose: "triples"})
			if err == nil {
				err = w.Commit()
			}
			if err != nil && !errors.Is(err, vaulterr.ErrExists) {
				return err
			}
			return v.ActivateEpoch(1)
		},
		batch("batch-0", 1500, true),
		batch("batch-1", 800, false),
		batch("batch-2", 10, false),
		func(v *Vault) error { return v.DrainEpoch(1, 0) },
		h.tooLate,
		reserve("a", in(0, 0, 600), in(1, 0, 100)),
		reserve("b", in(0, 600, 500)),
		fetch("a", "alice"),
		reserve("c", in(0, 1100, 400), in(1, 100, 600)),
		func(v *Vault) error { _, err := v.Withdraw("b"); return err },
		release("a", true),
		release("b", false),
		reserve("d", in(0, 600, 250)),
		reserve("e", in(0, 850, 250)),
		fetch("d", "bob"),
		fetch("c", "carol"),
		release("d", true),
		release("e", true),
		func(v *Vault) error { *late = 2 * time.Hour; return v.Sweep() },
		func(v *Vault) error { return v.RevokeBatch("batch-1", "test") },
		func(v *Vault) error { *late = 10 * 24 * time.Hour; return v.Sweep() },
		func(v *Vault) error { return v.Sweep() },
		h.tooLate,
		func(v *Vault) error { _, err := v.RevokeEpoch(1, 0, "test"); return err },
		func(v *Vault) error { _, err := v.RetireEpoch(1, "test"); return err },
	}
}

// play runs the steps with one fault, and goes on after it, as a party that is started again.
func playSteps(t *testing.T, name string, at int, f fault) (writes int) {
	d, k := newDisk(), &seal.Key{}
	h := newHistory(t, name)
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
	for i, step := range steps(h, &late) {
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
	batches, err := v.Batches()
	must(t, err)
	for _, b := range batches {
		want := map[string]stock.BatchState{"batch-0": stock.BatchConsumed, "batch-1": stock.BatchRevoked, "batch-2": stock.BatchRevoked}[b.ID]
		if b.State != want || b.ID == "batch-0" && b.Lost != 250 && at < 0 {
			h.fail("batch %s is %s, %d lost", b.ID, b.State, b.Lost)
		}
	}
	if n := objects(t, v); n != 0 {
		h.fail("%d objects are left", n)
	}
	d.fault = nil
	noFindings(t, v)
	return d.writes
}

// healed: tuples that are recorded as gone are erased, and all stored data is recorded.
func (h *history) healed(v *Vault) {
	h.t.Helper()
	if _, err := v.Check(true, func(int, int) {}, func(f upkeep.Finding) { h.fail("%+v", f) }); err != nil {
		h.fail("%v", err)
	}
	batches, err := v.Batches()
	must(h.t, err)
	for _, b := range batches {
		if b.State == stock.BatchAvailable && b.Gone.Count() != b.Wiped.Count() {
			h.fail("batch %s has %d tuples to wipe after a start", b.ID, b.Gone.Count()-b.Wiped.Count())
		}
		all := stock.Reservation{Ranges: []stock.Range{{Batch: b.ID, Span: stock.Span{First: 0, Count: b.Count}}}, Lease: v.Clock().Add(time.Hour)}
		for _, gone := range b.Gone {
			all.Ranges[0].Span = stock.Span{First: gone.First, Count: 1}
			if _, err := readAll(v, &all, 0); !errors.Is(err, vaulterr.ErrErased) {
				h.fail("tuple %d of %s is erased, and can be read: %v", gone.First, b.ID, err)
			}
		}
	}
}

// At every write, everything that can happen to it.
func TestCrashAtEveryWrite(t *testing.T) {
	t.Parallel()
	n := playSteps(t, "no fault", -1, works)
	if n < 50 {
		t.Fatalf("%d writes", n)
	}
	for f, name := range map[fault]string{
		fails: "fails", doubtful: "takes place in doubt", unwritten: "does not take place, in doubt", before: "crash before",
		after: "crash after", half: "crash within",
	} {
		for at := range n {
			playSteps(t, fmt.Sprintf("write %d %s", at, name), at, f)
		}
	}
}
