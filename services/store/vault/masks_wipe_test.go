package vault

import (
	"bytes"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// Whole segments are erased by the next sweep, and parts of segments together, some time later.
func TestSweepOfMasks(t *testing.T) {
	t.Parallel()
	d := newDisk()
	v := d.open(t, &seal.Key{})
	masked(t, v, 2500)
	c := setClock(v)
	writes := 0
	d.fault = func(_ int, where string) fault {
		if where == "write" {
			writes++
		}
		return works
	}
	for i := range uint64(100) {
		spends(t, v, "m0", span(i*3, 3))
		c.pass(stock.Settle / 200)
		must(t, v.Sweep())
	}
	if writes != 0 {
		t.Errorf("%d writes for a part of a segment", writes)
	}
	spends(t, v, "m0", span(300, 1716))
	must(t, v.Sweep())
	if b := mustBatch(t, v, "m0"); writes != 1 || b.Wiped.Count() != 2016 {
		t.Errorf("%d writes for two whole segments, and %d erased", writes, b.Wiped.Count())
	}
	spends(t, v, "m0", span(2100, 1))
	c.pass(stock.Settle)
	for range 3 {
		must(t, v.Sweep())
	}
	if b := mustBatch(t, v, "m0"); writes != 3 || b.Wiped.Count() != 2017 { // its data and its slot, once
		t.Errorf("%d writes, and %d erased", writes, b.Wiped.Count())
	}
	noFindings(t, v)
	spends(t, v, "m0", span(2016, 84))
	spends(t, v, "m0", span(2101, 399))
	must(t, v.Sweep())
	if b := mustBatch(t, v, "m0"); b.State != stock.BatchConsumed || b.Lost != 0 {
		t.Errorf("%+v", b)
	}
	noFindings(t, v)
}

// An erasure that fails is tried again.
func TestSweepOfMasksFails(t *testing.T) {
	t.Parallel()
	d := newDisk()
	v := d.open(t, &seal.Key{})
	masked(t, v, 2000)
	spends(t, v, "m0", span(0, 1500))
	clockOf(v, 2*stock.Settle)
	for _, where := range []string{"write", "update"} {
		d.fault = func(_ int, at string) fault {
			if at == where {
				return fails
			}
			return works
		}
		refused(t, v.Sweep(), errFull)
	}
	d.fault = nil
	must(t, v.Sweep())
	noFindings(t, v)
	if b := mustBatch(t, v, "m0"); b.Wiped.Count() != 1500 {
		t.Errorf("%+v", b)
	}
}

// Masks that are being read are not erased, and are when they were read.
func TestSweepWhileReading(t *testing.T) {
	t.Parallel()
	v := inMemory(t)
	masked(t, v, 1500)
	end := v.Reading.Begin("m0", span(100, 50))
	spends(t, v, "m0", span(0, 100))
	spends(t, v, "m0", span(100, 50)) // and is not read to its end
	spends(t, v, "m0", span(150, 1350))
	clockOf(v, 2*stock.Settle)
	must(t, v.Sweep())
	b := mustBatch(t, v, "m0")
	if b.State != stock.BatchAvailable || b.Wiped.Count() != 1450 || b.Wiped.Within(span(100, 50)) != 0 {
		t.Errorf("%+v", b)
	}
	in, err := v.OpenShelf(&b)
	must(t, err)
	got := make([]byte, 50*65)
	r := in.ReadSpan(span(100, 50), func(stock.Span) error { return nil })
	if _, err := r.Read(got); err != nil || !bytes.Equal(got, shares("m0", span(100, 50), 65)) {
		t.Errorf("they are not there: %v", err)
	}
	r.Close()
	end()
	v.Owe("m0", time.Time{})
	must(t, v.Sweep())
	if b := mustBatch(t, v, "m0"); b.State != stock.BatchConsumed {
		t.Errorf("%+v", b)
	}
	noFindings(t, v)
}

// Many calls spend at once while spent masks are erased: each mask goes to one call.
func TestSpendAtOnce(t *testing.T) {
	t.Parallel()
	v, _ := newVaultIn(t)
	masked(t, v, 4000)
	clockOf(v, 0)
	var mu sync.Mutex
	got := map[uint64]int{}
	var wg sync.WaitGroup
	stop, swept := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for err == nil {
			select {
			case <-stop:
				swept <- nil
				return
			default:
				v.Unwiped.Range(func(id, _ any) bool { v.Unwiped.Store(id, &stock.Owed{}); return true }) // all of it now
				err = v.Sweep()
			}
		}
		swept <- err
	}()
	for w := range uint64(8) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range uint64(200) {
				x := span((i*8+w*7)*20%4000, 20)
				b, err := v.SpendMasks("m0", x)
				if errors.Is(err, vaulterr.ErrTaken) || errors.Is(err, vaulterr.ErrErased) {
					continue
				}
				if err != nil || !bytes.Equal(b, shares("m0", x, 65)) {
					t.Errorf("from %d on: %v", x.First, err)
					return
				}
				mu.Lock()
				got[x.First]++
				mu.Unlock()
			}
		}()
	}
	wg.Wait()
	close(stop)
	must(t, <-swept)
	for first, n := range got {
		if n != 1 {
			t.Errorf("masks from %d on were given %d times", first, n)
		}
	}
	b := mustBatch(t, v, "m0")
	if uint64(len(got))*20 != b.Gone.Count() {
		t.Errorf("%d masks were given, and %d are recorded as gone", len(got)*20, b.Gone.Count())
	}
}
