package vault

import (
	"context"
	"crypto/rand"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// BenchmarkThresholdLedger is what looking up and recording costs a ciphertext, in runs of so many,
// in each store.
func BenchmarkThresholdLedger(b *testing.B) {
	for name, open := range map[string]func(testing.TB) (store.Store, error){
		"directory": func(b testing.TB) (store.Store, error) { return store.OpenDir(filepath.Join(b.TempDir(), "vault")) },
		"postgres": func(b testing.TB) (store.Store, error) {
			dsn, _ := storetest.Postgres(b)
			return store.OpenPostgres(context.Background(), dsn)
		},
	} {
		for _, count := range []int{1, 100, 20_000} {
			b.Run(fmt.Sprintf("%s/%d", name, count), func(b *testing.B) {
				s, err := open(b)
				must(b, err)
				v, err := OpenIn(s, &seal.Key{})
				must(b, err)
				defer v.Close()
				addThreshold(b, v, 1)
				benchLedger(b, v, count)
			})
		}
	}
}

func benchLedger(b *testing.B, v *Vault, count int) {
	runs := make([]ledger.ThresholdRun, b.N)
	for i := range runs {
		runs[i] = runOf(1, 0, count)
		rand.Read(runs[i].Run[:])
		for k := range runs[i].Messages {
			rand.Read(runs[i].Messages[k].Ciphertext[:])
		}
	}
	timed := func(what string, f func(r *ledger.ThresholdRun) error) {
		start := time.Now()
		for i := range runs {
			must(b, f(&runs[i]))
		}
		b.ReportMetric(float64(time.Since(start).Nanoseconds())/1000/float64(b.N*count), what+"-us/ciphertext")
	}
	b.ResetTimer()
	timed("record", func(r *ledger.ThresholdRun) error { return v.RecordThreshold(*r) })
	timed("look-up", func(r *ledger.ThresholdRun) error {
		_, err := v.ThresholdAnswers(1, r.Quorum, r.Messages)
		return err
	})
}
