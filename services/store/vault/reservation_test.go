package vault

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// No two reservations get the same tuples, for any overlap.
func TestOverlap(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20, 20)
	held := reserve(t, v, "held", in(0, 5, 10), in(1, 0, 1))
	for name, ranges := range map[string][]stock.Range{
		"the same":            {in(0, 5, 10)},
		"the first":           {in(0, 5, 1)},
		"the last":            {in(0, 14, 1)},
		"across the start":    {in(0, 4, 2)},
		"across the end":      {in(0, 14, 2)},
		"within":              {in(0, 7, 2)},
		"around":              {in(0, 0, 20)},
		"after a free one":    {in(0, 0, 5), in(0, 15, 5), in(0, 9, 1)},
		"in another batch":    {in(1, 5, 5), in(1, 0, 1)},
		"twice in itself":     {in(1, 5, 5), in(1, 5, 5)},
		"once in itself":      {in(1, 5, 5), in(1, 9, 1)},
		"backwards in itself": {in(1, 9, 2), in(1, 5, 5)},
	} {
		_, err := v.Reserve(reservation(v, "other", ranges...))
		if !errors.Is(err, vaulterr.ErrTaken) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, c := range map[string]struct {
		r    []stock.Range
		want error
	}{
		"none":             {nil, vaulterr.ErrRange},
		"empty":            {[]stock.Range{in(1, 5, 0)}, vaulterr.ErrRange},
		"after the end":    {[]stock.Range{in(1, 20, 1)}, vaulterr.ErrRange},
		"across the end":   {[]stock.Range{in(1, 19, 2)}, vaulterr.ErrRange},
		"around the world": {[]stock.Range{in(1, 19, ^uint64(0))}, vaulterr.ErrRange},
		"far away":         {[]stock.Range{in(1, ^uint64(0), 1)}, vaulterr.ErrRange},
		"unknown":          {[]stock.Range{in(2, 0, 1)}, vaulterr.ErrNotFound},
		"too many":         {make([]stock.Range, stock.MaxRanges+1), vaulterr.ErrRange},
	} {
		_, err := v.Reserve(reservation(v, "other", c.r...))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// None of that left anything.
	_, err := v.Reservation("other")
	refused(t, err, vaulterr.ErrNotFound)
	reserve(t, v, "other", in(0, 0, 5), in(0, 15, 5), in(1, 1, 19))
	got, err := fetch(v, "held", "alice")
	wantShares(t, got, err, held.Ranges...)
	got, err = fetch(v, "other", "bob")
	wantShares(t, got, err, in(0, 0, 5), in(0, 15, 5), in(1, 1, 19))
}

func TestReservationOfAnotherKind(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20)
	for name, change := range map[string]func(*stock.Reservation){
		"tenant": func(r *stock.Reservation) { r.Class.Tenant = "x" },
		"kind":   func(r *stock.Reservation) { r.Class.Kind = "x" },
		"params": func(r *stock.Reservation) { r.Class.Params = "x" },
		"field":  func(r *stock.Reservation) { r.Class.Field = "x" },
		"shape":  func(r *stock.Reservation) { r.Class.Inner = 1 },
		"party":  func(r *stock.Reservation) { r.Class.InputParty = 1 },
		"epoch":  func(r *stock.Reservation) { r.Epoch = 2 },
		"no id":  func(r *stock.Reservation) { r.ID = "" },
		"long":   func(r *stock.Reservation) { r.ID = strings.Repeat("x", 65) },
		"path":   func(r *stock.Reservation) { r.ID = "a/b" },
		"zero":   func(r *stock.Reservation) { r.ID = "a\x00" },
		"owner":  func(r *stock.Reservation) { r.Owner = "\xff" },
		"client": func(r *stock.Reservation) { r.Clients = []string{"ok", "\xff"} },
		"many":   func(r *stock.Reservation) { r.Clients = make([]string, seal.MaxClients+1) },
		"lease":  func(r *stock.Reservation) { r.Lease = v.Clock().Add(stock.MaxLease + stock.ClockSlack + time.Minute) },
	} {
		r := reservation(v, "r", in(0, 0, 1))
		change(&r)
		if _, err := v.Reserve(r); !errors.Is(err, vaulterr.ErrRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	r := reservation(v, "r", in(0, 0, 1))
	r.Lease = v.Clock()
	_, err := v.Reserve(r)
	refused(t, err, vaulterr.ErrExpired)
	r = reservation(v, "r", in(0, 0, 1))
	r.MACKey = "x"
	_, err = v.Reserve(r)
	refused(t, err, vaulterr.ErrNotFound)
}

// No tuple is reserved of a batch that is not active everywhere yet, that is under another MAC key,
// or that is erased.
func TestReservationOfWhatIsNotInStock(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20)
	addBatch(t, v, "batch-1", 20, nil)
	_, err := v.Reserve(reservation(v, "locked", in(1, 0, 1)))
	refused(t, err, vaulterr.ErrState)
	must(t, v.ActivateBatch("batch-1"))
	reserve(t, v, "active", in(1, 0, 1))
	other := batchOf("batch-2", 20)
	other.MACKey = "mac-2"
	must(t, storeBatch(v, other, macKey("mac-2")))
	must(t, v.ActivateBatch("batch-2"))
	_, err = v.Reserve(reservation(v, "other", in(2, 0, 1)))
	refused(t, err, vaulterr.ErrRange)
	_, err = v.Reserve(reservation(v, "both", in(1, 1, 1), in(2, 0, 1)))
	refused(t, err, vaulterr.ErrRange)
	must(t, v.RevokeBatch("batch-1", "test"))
	_, err = v.Reserve(reservation(v, "revoked", in(1, 1, 1)))
	refused(t, err, vaulterr.ErrErased)
}

// Tuples whose shares were erased, because their segment was damaged, do not return to the stock.
func TestReleaseOfWhatIsGone(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20)
	reserve(t, v, "r", in(0, 0, 5))
	_, err := v.Withdraw("r")
	must(t, err)
	must(t, v.Update(func(tx store.Tx) error {
		b, err := v.BatchIn(tx, "batch-0")
		if err != nil {
			return err
		}
		b.Gone = b.Gone.With(stock.Span{First: 1, Count: 2})
		b.Wiped = b.Gone
		return seal.Put(v.Store, tx, stock.BatchPrefix+b.ID, b)
	}))
	_, err = v.Release("r", false)
	must(t, err)
	for first, want := range map[uint64]error{0: nil, 1: vaulterr.ErrTaken, 2: vaulterr.ErrTaken, 3: nil, 4: nil} {
		if _, err := v.Reserve(reservation(v, fmt.Sprint("again-", first), in(0, first, 1))); !errors.Is(err, want) {
			t.Errorf("tuple %d: %v, want %v", first, err, want)
		}
	}
}

// The longest lease that the coordinator grants is taken by a party whose clock is behind, and no
// longer one.
func TestLongestLease(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20)
	c := setClock(v)
	r := reservation(v, "r", in(0, 0, 1))
	r.Lease = c.Add(stock.MaxLease)
	c.pass(-stock.ClockSlack - 1)
	_, err := v.Reserve(r)
	refused(t, err, vaulterr.ErrRange)
	c.pass(1)
	_, err = v.Reserve(r)
	must(t, err)
}

// An invalid proposal of a reservation that is being forgotten is not recorded.
func TestInvalidProposalOfWhatIsForgotten(t *testing.T) {
	d := newDisk()
	s := &racing{memory: &memory{disk: d}}
	v, err := OpenIn(s, &seal.Key{})
	must(t, err)
	stocked(t, v, 20)
	r := reserve(t, v, "r", in(0, 0, 1))
	_, err = v.Release("r", true)
	must(t, err)
	late := r
	late.Lease, late.Ranges = r.Lease.Add(stock.MaxLease+stock.ClockSlack), []stock.Range{in(0, 1, 1)}
	s.before = func() { // another caller forgets it
		must(t, s.memory.Update(func(tx store.Tx) error { return tx.Delete(stock.ReservationPrefix + "r") }))
	}
	_, err = v.Reserve(late)
	refused(t, err, vaulterr.ErrRange)
	_, err = v.Reservation("r")
	refused(t, err, vaulterr.ErrNotFound)
}

// racing is a store where something happens before the next update.
type racing struct {
	*memory
	before func()
}

func (s *racing) Update(f func(store.Tx) error) error {
	if b := s.before; b != nil {
		s.before = nil
		b()
	}
	return s.memory.Update(f)
}

// A repeated call returns the record, and any other reservation under the id is rejected, in every
// state.
func TestReserveAgain(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 20)
	c := setClock(v)
	body := reservation(v, "r", in(0, 0, 5))
	body.Clients = []string{"alice"}
	first, err := v.Reserve(body)
	must(t, err)
	changes := map[string]func(*stock.Reservation){
		"ranges": func(r *stock.Reservation) { r.Ranges = []stock.Range{in(0, 0, 6)} },
		"batch": func(r *stock.Reservation) {
			r.Ranges = []stock.Range{{Batch: "x", Span: stock.Span{First: 0, Count: 5}}}
		},
		"split":   func(r *stock.Reservation) { r.Ranges = []stock.Range{in(0, 0, 2), in(0, 2, 3)} },
		"owner":   func(r *stock.Reservation) { r.Owner = "x" },
		"clients": func(r *stock.Reservation) { r.Clients = nil },
		"client":  func(r *stock.Reservation) { r.Clients = []string{"bob"} },
		"lease":   func(r *stock.Reservation) { r.Lease = r.Lease.Add(1) },
		"class":   func(r *stock.Reservation) { r.Class.Tenant = "x" },
		"epoch":   func(r *stock.Reservation) { r.Epoch++ },
		"key":     func(r *stock.Reservation) { r.MACKey = "x" },
	}
	again := func(state stock.ReservationState) {
		t.Helper()
		got, err := v.Reserve(body)
		if err != nil || got.State != state || got.Digest != first.Digest {
			t.Fatalf("%s: %+v, %v", state, got, err)
		}
		for name, change := range changes {
			other := body
			change(&other)
			if _, err := v.Reserve(other); !errors.Is(err, vaulterr.ErrExists) {
				t.Errorf("%s, %s: %v", state, name, err)
			}
		}
	}
	again(stock.Reserved)
	_, err = fetch(v, "r", "alice")
	must(t, err)
	again(stock.Consumed)
	c.pass(2 * time.Hour)
	again(stock.Consumed)
	must(t, v.Sweep())
	again(stock.Erased)
}

// The digest covers all that parties must have in common, and the batches' own.
func TestReservationDigest(t *testing.T) {
	v := inMemory(t)
	base := reservation(v, "r", in(0, 1, 2), in(1, 3, 4))
	base.Clients = []string{"a", "b"}
	digests := [][32]byte{{1}, {2}}
	seen := map[[32]byte]string{base.ComputeDigest(digests): "base"}
	add := func(name string, d [32]byte) {
		if was, ok := seen[d]; ok {
			t.Errorf("%s has the digest of %s", name, was)
		}
		seen[d] = name
	}
	for i, change := range []func(*stock.Reservation){
		func(r *stock.Reservation) { r.ID = "s" },
		func(r *stock.Reservation) { r.Owner = "x" },
		func(r *stock.Reservation) { r.MACKey = "x" },
		func(r *stock.Reservation) { r.Epoch = 9 },
		func(r *stock.Reservation) { r.Lease = r.Lease.Add(1) },
		func(r *stock.Reservation) { r.Clients = []string{"ab"} },
		func(r *stock.Reservation) { r.Clients = []string{"ab", ""} },
		func(r *stock.Reservation) { r.Clients = nil },
		func(r *stock.Reservation) { r.Class.Rows = 1 },
		func(r *stock.Reservation) { r.Class.Inner = 1 },
		func(r *stock.Reservation) { r.Class.Columns = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.Channels = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.Height = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.Width = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.Outputs = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.KernelHeight = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.KernelWidth = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.StrideHeight = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.StrideWidth = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.PaddingHeight = 1 },
		func(r *stock.Reservation) { r.Class.Convolution.PaddingWidth = 1 },
		func(r *stock.Reservation) { r.Class.InputParty = 1 },
		func(r *stock.Reservation) { r.Class.Tenant += "x" },
		func(r *stock.Reservation) { r.Class.Kind += "x" },
		func(r *stock.Reservation) { r.Class.Field += "x" },
		func(r *stock.Reservation) { r.Class.Params += "x" },
		func(r *stock.Reservation) { r.Ranges = []stock.Range{in(0, 2, 2), in(1, 3, 4)} },
		func(r *stock.Reservation) { r.Ranges = []stock.Range{in(0, 1, 3), in(1, 3, 4)} },
		func(r *stock.Reservation) { r.Ranges = []stock.Range{in(1, 3, 4), in(0, 1, 2)} },
		func(r *stock.Reservation) { r.Ranges = []stock.Range{in(2, 1, 2), in(1, 3, 4)} },
		func(r *stock.Reservation) { r.Class.NoSacrifice = true },
	} {
		r := base
		change(&r)
		add(fmt.Sprint(i), r.ComputeDigest(digests))
	}
	add("batches", base.ComputeDigest([][32]byte{{2}, {1}}))
	here := base
	here.State, here.Client, here.Delivered = stock.Consumed, "alice", time.Now()
	if seen[here.ComputeDigest(digests)] != "base" {
		t.Error("the digest depends on values that are not common")
	}
}

// Of many who want the same tuples at once, one gets them.
func TestReserveAtOnce(t *testing.T) {
	for name, v := range map[string]*Vault{"memory": inMemory(t), "directory": first(newVaultIn(t))} {
		t.Run(name, func(t *testing.T) {
			stocked(t, v, 50, 50)
			var won, delivered atomic.Int64
			var wg sync.WaitGroup
			for i := range 32 {
				wg.Add(1)
				go func() {
					defer wg.Done()
					id := fmt.Sprintf("r%d", i)
					_, err := v.Reserve(reservation(v, id, in(1, uint64(i), 1), in(0, uint64(i%7), 10)))
					if err == nil {
						won.Add(1)
						for range 3 {
							if _, err := fetch(v, id, "alice"); err == nil {
								delivered.Add(1)
							}
						}
					} else if !errors.Is(err, vaulterr.ErrTaken) {
						t.Error(err)
					}
				}()
			}
			wg.Wait()
			b, err := v.Batch("batch-0")
			must(t, err)
			if won.Load() != 1 || delivered.Load() != 3 || b.Taken.Count() != 10 {
				t.Errorf("%d reservations hold the tuple; %d deliveries", won.Load(), delivered.Load())
			}
		})
	}
}

func first(v *Vault, _ string) *Vault { return v }

// Of many clients that come at once, one gets the reservation.
func TestDeliverAtOnce(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 10)
	reserve(t, v, "r", in(0, 0, 10))
	var firsts, won atomic.Int64
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			_, first, err := v.Deliver("r", fmt.Sprintf("client-%d", i/3), 0)
			if err == nil {
				won.Add(1)
			} else if !errors.Is(err, vaulterr.ErrDelivered) {
				t.Error(err)
			}
			if first {
				firsts.Add(1)
			}
		}()
	}
	wg.Wait()
	if won.Load() != 3 || firsts.Load() != 1 {
		t.Errorf("%d deliveries, %d of them the first", won.Load(), firsts.Load())
	}
}

// Every operation in every state of a reservation.
func TestReservationStates(t *testing.T) {
	type outcome struct {
		state stock.ReservationState
		err   error
	}
	deliver := func(client string) func(*Vault) error {
		return func(v *Vault) error { _, err := fetch(v, "r", client); return err }
	}
	withdraw := func(v *Vault) error { _, err := v.Withdraw("r"); return err }
	release := func(v *Vault) error { _, err := v.Release("r", false); return err }
	discard := func(v *Vault) error { _, err := v.Release("r", true); return err }
	into := map[stock.ReservationState][]func(*Vault) error{
		stock.Reserved: nil, stock.Consumed: {deliver("alice")}, stock.Withdrawn: {withdraw}, stock.Released: {withdraw, release}, stock.Erased: {discard},
	}
	for from, want := range map[stock.ReservationState][5]outcome{ // alice, bob, withdraw, release, discard
		stock.Reserved:  {{stock.Consumed, nil}, {stock.Consumed, nil}, {stock.Withdrawn, nil}, {stock.Reserved, vaulterr.ErrState}, {stock.Erased, nil}},
		stock.Consumed:  {{stock.Consumed, nil}, {stock.Consumed, vaulterr.ErrDelivered}, {stock.Consumed, nil}, {stock.Consumed, vaulterr.ErrDelivered}, {stock.Erased, nil}},
		stock.Withdrawn: {{stock.Withdrawn, vaulterr.ErrWithdrawn}, {stock.Withdrawn, vaulterr.ErrWithdrawn}, {stock.Withdrawn, nil}, {stock.Released, nil}, {stock.Erased, nil}},
		stock.Released:  {{stock.Released, vaulterr.ErrWithdrawn}, {stock.Released, vaulterr.ErrWithdrawn}, {stock.Released, nil}, {stock.Released, nil}, {stock.Released, nil}},
		stock.Erased:    {{stock.Erased, vaulterr.ErrExpired}, {stock.Erased, vaulterr.ErrExpired}, {stock.Erased, nil}, {stock.Erased, nil}, {stock.Erased, nil}},
	} {
		for i, op := range []func(*Vault) error{deliver("alice"), deliver("bob"), withdraw, release, discard} {
			v := inMemory(t)
			stocked(t, v, 10)
			reserve(t, v, "r", in(0, 2, 5))
			for _, step := range into[from] {
				must(t, step(v))
			}
			err := op(v)
			r, more := v.Reservation("r")
			must(t, more)
			if !errors.Is(err, want[i].err) || r.State != want[i].state {
				t.Errorf("%s, operation %d: %s, %v", from, i, r.State, err)
			}
			// Only released tuples may be taken again.
			_, err = v.Reserve(reservation(v, "s", in(0, 2, 5)))
			if r.State == stock.Released && err != nil || r.State != stock.Released && !errors.Is(err, vaulterr.ErrTaken) {
				t.Errorf("%s, operation %d: taken again: %v", from, i, err)
			}
			b, err := v.Batch("batch-0")
			must(t, err)
			lost := uint64(0)
			if r.State == stock.Erased && from != stock.Consumed {
				lost = 5
			}
			if b.Lost != lost {
				t.Errorf("%s, operation %d: %d lost", from, i, b.Lost)
			}
		}
	}
	v := inMemory(t)
	stocked(t, v, 1)
	for _, op := range []func(*Vault) error{deliver("alice"), withdraw, release, discard} {
		refused(t, op(v), vaulterr.ErrNotFound)
	}
}

// Reservations lists in order, from any id, until the callback stops it.
func TestReservationsList(t *testing.T) {
	v := inMemory(t)
	stocked(t, v, 100)
	for i := range uint64(10) {
		reserve(t, v, fmt.Sprintf("r%d", 9-i), in(0, i, 1))
	}
	list := func(after string, most int) (ids string) {
		must(t, v.Reservations(after, func(r *stock.Reservation) bool {
			ids += r.ID
			return len(ids) < 2*most
		}))
		return ids
	}
	if got := list("", 100); got != "r0r1r2r3r4r5r6r7r8r9" {
		t.Error(got)
	}
	if got := list("r3", 3); got != "r4r5r6" {
		t.Error(got)
	}
	if got := list("r9", 3); got != "" {
		t.Error(got)
	}
}
