// Package histories runs random histories of parties that keep tuples, a coordinator that reserves them and clients of
// two tenants that fetch them: with the services and vaults as they are, on a clock and a network that a seed commands.
// Parties crash at any write, clocks jump, the coordinator forgets or lies, keys are burnt, old copies of stores are put
// back. A model records every byte that leaves a party, and knows what must never be. See docs/testing.md.
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

var seedFlag = flag.Uint64("seed", 0, "run the history of this seed alone, and print it")

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // the heap is small, and what histories leave behind is large
	storetest.Main(m, store.OpenDir)
}

// TestMemory: stores in memory, where a history takes about 30 ms.
func TestMemory(t *testing.T) {
	run(t, plan{everyday: 200, all: 10000, each: 100}, func(*testing.T) [parties]backend {
		return [parties]backend{inMemory(), inMemory(), inMemory()}
	})
}

// TestEmbedded: the embedded store.
func TestEmbedded(t *testing.T) {
	run(t, plan{everyday: 6, all: 10000, each: 100}, func(t *testing.T) (where [parties]backend) {
		top := t.TempDir()
		for i := range where {
			where[i] = embedded(filepath.Join(top, partyName(i)))
		}
		return where
	})
}

// TestPostgres: stores on a PostgreSQL server.
func TestPostgres(t *testing.T) {
	run(t, plan{everyday: 3, all: 1000, each: 20}, func(t *testing.T) (where [parties]backend) {
		for i := range where {
			dsn, _ := storetest.Postgres(t)
			where[i].open = func() (s store.Store, err error) {
				for range 100 { // the server knows no bubble: a session that was closed takes it real time to forget
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

// embedded is a store in a directory. A copy of it is a copy of its files.
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

// plan says how many histories there are: those of every day, and all, in groups of so many.
type plan struct{ everyday, all, each int }

// run runs histories, each with stores of its own. Seeds count from 1.
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

// one runs one in a bubble of its own, where time passes when everybody waits.
func one(t *testing.T, seed uint64, where func(t *testing.T) [parties]backend) (lines, wrong string) {
	stores := where(t)
	synctest.Test(t, func(t *testing.T) { lines, wrong = history(t, seed, stores) })
	return lines, wrong
}
