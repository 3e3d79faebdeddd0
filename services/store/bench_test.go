package store_test

import (
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
)

// BenchmarkUpdates sends 500 small updates a second, each when its time comes, and reports how long
// they take; and then as many as 64 callers can make.
func BenchmarkUpdates(b *testing.B) {
	each(b, func(b *testing.B, s store.Store) {
		b.Run("500", func(b *testing.B) { paced(b, s, 500) })
		b.Run("flood", func(b *testing.B) { flood(b, s, 64) })
	})
}

// each runs a benchmark on a new store of each implementation.
func each(b *testing.B, run func(*testing.B, store.Store)) {
	for name, fresh := range kinds {
		b.Run(name, func(b *testing.B) {
			s, err := open(fresh(b))
			if err != nil {
				b.Fatal(err)
			}
			run(b, s)
			if err := s.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// small is an update like those of a ledger: it reads a record, and writes two of 200 bytes.
func small(s store.Store, i int) error {
	return s.Update(func(tx store.Tx) error {
		if _, err := tx.Get(fmt.Sprintf("job/%d", i%1000)); err != nil {
			return err
		}
		if err := tx.Put(fmt.Sprintf("job/%d", i%1000), make([]byte, 200)); err != nil {
			return err
		}
		return tx.Put(fmt.Sprintf("ledger/%d", i), make([]byte, 200))
	})
}

func paced(b *testing.B, s store.Store, perSecond int) {
	took := make([]time.Duration, b.N)
	var wg sync.WaitGroup
	start := time.Now()
	for i := range b.N {
		time.Sleep(time.Until(start.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		wg.Go(func() {
			start := time.Now()
			if err := small(s, i); err != nil {
				b.Error(err)
			}
			took[i] = time.Since(start)
		})
	}
	wg.Wait()
	report(b, took)
}

func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	for _, q := range []int{50, 99} {
		b.ReportMetric(float64(took[len(took)*q/100].Microseconds())/1000, fmt.Sprintf("ms-p%d", q))
	}
}

func flood(b *testing.B, s store.Store, callers int) {
	took := make([]time.Duration, b.N)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := c; i < b.N; i += callers {
				start := time.Now()
				if err := small(s, i); err != nil {
					b.Error(err)
				}
				took[i] = time.Since(start)
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "updates/s")
	report(b, took)
}

// BenchmarkBlob writes and reads 100 MB in pieces of 64 KiB.
func BenchmarkBlob(b *testing.B) {
	const size, piece = 100_000_000, 64 << 10
	each(b, func(b *testing.B, s store.Store) {
		p := make([]byte, piece)
		var wrote, read time.Duration
		for i := 0; b.Loop(); i++ {
			name := fmt.Sprintf("blob-%d", i)
			start := time.Now()
			w, err := s.Create(name)
			for n := 0; n < size && err == nil; n += piece {
				_, err = w.Write(p)
			}
			if err == nil {
				err = w.Commit()
			}
			if err != nil {
				b.Fatal(err)
			}
			wrote += time.Since(start)
			start = time.Now()
			blob, err := s.Open(name)
			for off := int64(0); err == nil; off += piece {
				_, err = blob.ReadAt(p, off)
			}
			if err != io.EOF {
				b.Fatal(err)
			}
			read += time.Since(start)
			b.StopTimer()
			if err := s.Erase(name); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		b.ReportMetric(float64(b.N)*size/1e6/wrote.Seconds(), "write-MB/s")
		b.ReportMetric(float64(b.N)*size/1e6/read.Seconds(), "read-MB/s")
	})
}
