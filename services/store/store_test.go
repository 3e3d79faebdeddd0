package store_test

import (
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, open) }

func open(address string) (store.Store, error) { return store.OpenDir(address) }

func TestDir(t *testing.T) {
	storetest.Run(t, storetest.Kind{
		Fresh: func(t testing.TB) string { return t.TempDir() + "/vault" },
		Open:  open,
	})
}
