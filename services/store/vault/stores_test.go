package vault

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

func TestMain(m *testing.M) { storetest.Main(m) }

// The life of a vault in each store, started again after every step.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, fresh := range map[string]func(testing.TB) func() (store.Store, error){
		"memory": func(t testing.TB) func() (store.Store, error) {
			d := newDisk()
			return func() (store.Store, error) { return &memory{disk: d}, nil }
		},
		"directory": func(t testing.TB) func() (store.Store, error) {
			dir := filepath.Join(t.TempDir(), "vault")
			return func() (store.Store, error) { return store.OpenDir(dir) }
		},
		"postgres": func(t testing.TB) func() (store.Store, error) {
			dsn, _ := storetest.Postgres(t)
			return func() (store.Store, error) { return store.OpenPostgres(context.Background(), dsn) }
		},
	} {
		t.Run(name, func(t *testing.T) { lifeIn(t, fresh(t)) })
	}
}

func lifeIn(t *testing.T, open func() (store.Store, error)) {
	k := newKey(t)
	h := newHistory(t, t.Name())
	var late time.Duration
	start := func() *Vault {
		s, err := open()
		must(t, err)
		v, err := OpenIn(s, k)
		must(t, err)
		v.Clock = func() time.Time { return time.Now().Add(late) }
		return v
	}
	var ids []string
	for i, step := range steps(h, &late) {
		for range 2 { // and once more
			v := start()
			now := version(t, v)
			ids = append(ids, string(now.ID))
			if ids[0] != string(now.ID) || len(now.Incarnation) != seal.IDLen {
				t.Fatal("another store")
			}
			if err := step(v); err != nil && !errors.Is(err, vaulterr.ErrExpired) && !errors.Is(err, vaulterr.ErrErased) && !errors.Is(err, vaulterr.ErrWithdrawn) {
				t.Fatalf("step %d: %v", i, err)
			}
			h.healed(v)
			must(t, v.Close())
		}
	}
	v := start()
	defer v.Close()
	for id, want := range map[string]stock.BatchState{"batch-0": stock.BatchConsumed, "batch-1": stock.BatchRevoked} {
		if b, err := v.Batch(id); err != nil || b.State != want || b.Count == 1500 && b.Lost != 250 {
			t.Errorf("%s is %s, %d lost, %v", id, b.State, b.Lost, err)
		}
	}
	if n := objects(t, v); n != 0 {
		t.Errorf("%d objects are left", n)
	}
	if len(h.got) != 600+100+250+400+600 {
		t.Errorf("%d tuples went to clients", len(h.got))
	}
}
