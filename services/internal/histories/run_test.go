// Package histories runs random histories of parties that store tuples, a coordinator that reserves
// them, and clients of two tenants that fetch them. It uses the real services and vaults, with a
// clock and a network that a seed controls. Parties crash at any write, clocks jump, the
// coordinator loses its records or lies, keys are burnt, and old copies of stores are restored. A
// model observes every byte that leaves a party and checks the invariants. See
// docs/internals/testing.md.
package histories

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lodge-mpc/lodge/engine/longtest"
	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

var seedFlag = flag.Uint64("seed", 0, "run and print only the history of this seed")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the heap is small, but histories leave much garbage
	storetest.Main(m)
}

// TestMemory runs histories with stores in memory, at about 30 ms each.
func TestMemory(t *testing.T) {
	run(t, plan{everyday: 200, all: 10000, each: 100}, func(*testing.T) [parties]backend {
		return [parties]backend{inMemory(), inMemory(), inMemory()}
	})
}

// TestEmbedded runs histories with the embedded store.
func TestEmbedded(t *testing.T) {
	run(t, plan{everyday: 6, all: 10000, each: 100}, func(t *testing.T) (where [parties]backend) {
		top := t.TempDir()
		for i := range where {
			where[i] = embedded(filepath.Join(top, partyName(i)))
		}
		return where
	})
}

// TestPostgres runs histories with stores on a PostgreSQL server.
func TestPostgres(t *testing.T) {
	run(t, plan{everyday: 3, all: 1000, each: 20}, func(t *testing.T) (where [parties]backend) {
		for i := range where {
			dsn, _ := storetest.Postgres(t)
			where[i].open = func() (s store.Store, err error) {
				for range 100 { // the server is outside the bubble: it needs real time to release a closed session
					if s, err = store.OpenPostgres(context.Background(), dsn); !errors.Is(err, store.ErrInUse) {
						break
					}
				}
				return s, err
			}
		}
		return where
	})
}

// embedded returns a store in a directory. A copy of the store is a copy of its files.
func embedded(dir string) backend {
	return backend{
		open: func() (store.Store, error) { return store.OpenDir(dir) },
		copy: func() (func(), error) {
			old := dir + ".copy"
			err := os.CopyFS(old, os.DirFS(dir))
			return func() {
				if err := os.RemoveAll(dir); err != nil {
					panic(err)
				}
				if err := os.Rename(old, dir); err != nil {
					panic(err)
				}
			}, err
		},
	}
}

// plan gives the number of histories in ordinary and in long tests, and the size of a group.
type plan struct{ everyday, all, each int }

// run runs histories, each with separate stores. Seeds count from 1.
func run(t *testing.T, p plan, where func(t *testing.T) [parties]backend) {
	if *seedFlag != 0 {
		lines, wrong := one(t, *seedFlag, where)
		if t.Log(lines); wrong != "" {
			t.Error(wrong)
		}
		return
	}
	several := func(from, to int) func(t *testing.T) {
		return func(t *testing.T) {
			start := time.Now()
			for seed := from; seed <= to; seed++ {
				if lines, wrong := one(t, uint64(seed), where); wrong != "" {
					t.Fatalf("%s\n\nseed %d:\n%s", lines, seed, wrong)
				}
			}
			t.Logf("%d histories, %.0f a second", to-from+1, float64(to-from+1)/time.Since(start).Seconds())
		}
	}
	cases := []longtest.Case{{Name: "everyday", Everyday: true, Run: several(1, p.everyday)}}
	for from := p.everyday + 1; from <= p.all; from += p.each {
		to := min(from+p.each-1, p.all)
		cases = append(cases, longtest.Case{Name: fmt.Sprintf("%d-%d", from, to), Run: several(from, to)})
	}
	longtest.Run(t, cases)
}

// one runs a history in its own bubble, where time advances when all goroutines wait.
func one(t *testing.T, seed uint64, where func(t *testing.T) [parties]backend) (lines, wrong string) {
	stores := where(t)
	synctest.Test(t, func(t *testing.T) { lines, wrong = history(t, seed, stores) })
	return lines, wrong
}
