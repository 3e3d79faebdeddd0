package vault

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

// heap samples the heap in use until the function that it gives is called, which says the most in
// MiB.
func heap() (most func() float64) {
	runtime.GC()
	var top atomic.Uint64
	stop := make(chan struct{})
	var done sync.WaitGroup
	done.Add(1)
	go func() {
		defer done.Done()
		var m runtime.MemStats
		for {
			runtime.ReadMemStats(&m)
			top.Store(max(top.Load(), m.HeapInuse))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	return func() float64 {
		close(stop)
		done.Wait()
		return float64(top.Load()) / (1 << 20)
	}
}

// BenchmarkTuples writes and commits a batch of ten million scalar tuples of 96 bytes, 960 MB, in
// the embedded store, and reads them under one reservation.
func BenchmarkTuples(b *testing.B) {
	const count, size = 10_000_000, 96
	v := mustOpen(b, filepath.Join(b.TempDir(), "vault"), newKey(b))
	defer v.Close()
	stocked(b, v, 1)
	chunk := make([]byte, 1<<20/size*size)
	for i := range chunk {
		chunk[i] = byte(i * 7)
	}
	b.ResetTimer()
	for n := range b.N {
		id := fmt.Sprintf("batch-%d", n+1)
		most, start := heap(), time.Now()
		w, err := v.NewBatch(batchOf(id, count))
		must(b, err)
		for left := count * size; left > 0; {
			k, err := w.Write(chunk[:min(left, len(chunk))])
			must(b, err)
			left -= k
		}
		must(b, w.Commit(nil))
		b.ReportMetric(count*size/1e6/time.Since(start).Seconds(), "write-MB/s")
		b.ReportMetric(most(), "write-heap-MiB")
		must(b, v.ActivateBatch(id))
		most, start = heap(), time.Now()
		reserve(b, v, fmt.Sprintf("r%d", n), stock.Range{Batch: id, Span: stock.Span{First: 0, Count: count}})
		r, _, err := v.Deliver(fmt.Sprintf("r%d", n), "alice", 0)
		must(b, err)
		in, _, err := v.Shares(&r, 0)
		must(b, err)
		got, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, struct{ io.Reader }{in}, make([]byte, 64<<10))
		must(b, err)
		must(b, in.Close())
		if got != count*size {
			b.Fatalf("%d bytes", got)
		}
		b.ReportMetric(count*size/1e6/time.Since(start).Seconds(), "read-MB/s")
		b.ReportMetric(most(), "read-heap-MiB")
		start = time.Now()
		_, err = v.Release(fmt.Sprintf("r%d", n), true)
		must(b, err)
		b.ReportMetric(float64(time.Since(start).Milliseconds()), "erase-ms")
	}
}

// BenchmarkReserve is an open loop of reservations of ten tuples, each delivered at once, at a
// vault that remembers many.
func BenchmarkReserve(b *testing.B) {
	for _, remembered := range []int{0, 100_000} {
		b.Run(fmt.Sprintf("remembered=%d", remembered), func(b *testing.B) { benchReserve(b, remembered, 500) })
	}
}

func benchReserve(b *testing.B, remembered, rate int) {
	v := mustOpen(b, filepath.Join(b.TempDir(), "vault"), newKey(b))
	defer v.Close()
	const size, tuples = 10, 2_000_000
	counts := []uint64{tuples}
	for range 50 {
		counts = append(counts, 20)
	}
	stocked(b, v, counts...)
	var wg sync.WaitGroup
	var next atomic.Uint64
	one := func(id string) (time.Duration, error) {
		first := (next.Add(1) - 1) * size
		start := time.Now()
		_, err := v.Reserve(reservation(v, id, in(0, first, size)))
		if err == nil {
			_, _, err = v.Deliver(id, "alice", 0)
		}
		return time.Since(start), err
	}
	for w := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := w; i < remembered; i += 100 {
				if _, err := one(fmt.Sprintf("old-%d", i)); err != nil {
					b.Error(err)
				}
			}
		}()
	}
	wg.Wait()
	b.ResetTimer()
	took := make([]time.Duration, b.N)
	begin := time.Now()
	for i := range b.N {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(rate))))
		wg.Add(1)
		go func() {
			defer wg.Done()
			var err error
			if took[i], err = one(fmt.Sprintf("new-%d", i)); err != nil {
				b.Error(err)
			}
		}()
	}
	wg.Wait()
	b.StopTimer()
	slices.Sort(took)
	for _, p := range []int{50, 99} {
		b.ReportMetric(float64(took[min(len(took)-1, len(took)*p/100)].Microseconds())/1000, fmt.Sprintf("p%d-ms", p))
	}
	b.ReportMetric(float64(b.N)/time.Since(begin).Seconds(), "reservations/s")
}

// BenchmarkFragmented reserves and releases in a batch of which every other tuple is taken, a
// hundred thousand times.
func BenchmarkFragmented(b *testing.B) {
	v := inMemory(b)
	stocked(b, v, 1)
	addBatch(b, v, "batch-1", 400_000, nil)
	must(b, v.ActivateBatch("batch-1"))
	var taken stock.Spans
	for i := range uint64(100_000) {
		taken = append(taken, stock.Span{First: 2 * i, Count: 1})
	}
	must(b, v.Update(func(tx store.Tx) error {
		x, err := v.BatchIn(tx, "batch-1")
		if err != nil {
			return err
		}
		x.Taken, x.Gone, x.Wiped = taken, taken, taken
		return seal.Put(v.Store, tx, stock.BatchPrefix+x.ID, x)
	}))
	b.ResetTimer()
	for i := range b.N {
		reserve(b, v, fmt.Sprintf("r%d", i), in(1, 300_000+uint64(i), 1))
	}
}

// BenchmarkRanges measures a reservation with the largest number of ranges, of one tuple each, in a
// fragmented batch, and a sweep of as many ranges in 64 reservations.
func BenchmarkRanges(b *testing.B) {
	for _, fragments := range []int{1_100, 20_000, 100_000} {
		b.Run(fmt.Sprintf("fragments=%d", fragments), func(b *testing.B) { benchRanges(b, fragments) })
	}
}

func benchRanges(b *testing.B, fragments int) {
	v := inMemory(b)
	stocked(b, v, 1)
	var taken stock.Spans
	for i := range fragments {
		taken = append(taken, stock.Span{First: uint64(2 * i), Count: 1})
	}
	c := setClock(v)
	took := map[string]time.Duration{}
	timed := func(what string, f func()) {
		start := time.Now()
		f()
		took[what] += time.Since(start)
	}
	const sweeps = 64
	for i := range b.N {
		batch := fmt.Sprintf("batch-%d", i+1)
		addBatch(b, v, batch, uint64(2*fragments), nil)
		must(b, v.ActivateBatch(batch))
		must(b, v.Update(func(tx store.Tx) error {
			x, err := v.BatchIn(tx, batch)
			if err != nil {
				return err
			}
			x.Taken, x.Gone = taken, taken
			return seal.Put(v.Store, tx, stock.BatchPrefix+x.ID, x)
		}))
		var ranges []stock.Range
		for j := range stock.MaxRanges {
			ranges = append(ranges, stock.Range{Batch: batch, Span: stock.Span{First: uint64(j*(fragments/stock.MaxRanges)*2 + 1), Count: 1}})
		}
		must(b, v.Wipe(batch))
		id := func(what string) string { return fmt.Sprintf("%s-%d", what, i) }
		timed("reserve", func() { reserve(b, v, id("back"), ranges...) })
		_, err := v.Withdraw(id("back"))
		must(b, err)
		timed("restock", func() {
			_, err := v.Release(id("back"), false)
			must(b, err)
		})
		reserve(b, v, id("gone"), ranges[:stock.MaxRanges/2]...)
		timed("deliver-half", func() {
			_, _, err := v.Deliver(id("gone"), "alice", 0)
			must(b, err)
		})
		timed("fetch-half", func() {
			_, err := fetch(v, id("gone"), "alice")
			must(b, err)
		})
		timed("discard-half", func() {
			_, err := v.Release(id("gone"), true)
			must(b, err)
		})
		const per = stock.MaxRanges / 2 / sweeps
		for j := range sweeps {
			reserve(b, v, id(fmt.Sprint("due-", j)), ranges[stock.MaxRanges/2+j*per:][:per]...)
			_, _, err := v.Deliver(id(fmt.Sprint("due-", j)), "alice", 0)
			must(b, err)
		}
		c.pass(2 * time.Hour)
		timed("sweep-half", func() { must(b, v.Sweep()) })
		must(b, v.RevokeBatch(batch, "measured"))
	}
	for what, t := range took {
		b.ReportMetric(float64(t.Microseconds())/1000/float64(b.N), what+"-ms")
	}
}
