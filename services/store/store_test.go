package store_test

import (
	"context"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

func open(address string) (store.Store, error) {
	if strings.HasPrefix(address, "host=") {
		return store.OpenPostgres(context.Background(), address)
	}
	return store.OpenDir(address)
}

var kinds = map[string]kind{
	"Dir": func(t testing.TB) string { return t.TempDir() + "/vault" },
	"Postgres": func(t testing.TB) string {
		dsn, _ := storetest.Postgres(t)
		return dsn
	},
}

func TestConformance(t *testing.T) {
	for name, fresh := range kinds {
		t.Run(name, func(t *testing.T) { conform(t, fresh) })
	}
}
