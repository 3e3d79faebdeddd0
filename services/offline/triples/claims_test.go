package triples

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func emptyVault(t *testing.T) *vault.Vault {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	must(t, seal.WriteNewKey(path))
	k, err := seal.LoadKey(path)
	must(t, err)
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"), k)
	must(t, err)
	t.Cleanup(func() { v.Close() })
	return v
}

// testVault has an active epoch 1 and nothing else.
func testVault(t *testing.T) *vault.Vault {
	t.Helper()
	v := emptyVault(t)
	w, err := v.NewEpoch(keys.Epoch{ID: 1, Purpose: "triples", Limit: 3})
	must(t, err)
	must(t, w.Commit())
	must(t, v.ActivateEpoch(1))
	return v
}

// addBatch stores a batch, locked; with fresh its MAC key comes into being with it.
func addBatch(v *vault.Vault, id, key string, fresh bool) error {
	w, err := v.NewBatch(stock.Batch{ID: id, Epoch: 1, MACKey: key, Field: "p128", Tenant: "dev", Count: 1, TupleBytes: 1})
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write([]byte{0}); err != nil {
		return err
	}
	if fresh {
		return w.Commit(&keys.NewMACKey{MACKey: keys.MACKey{ID: key, Epoch: 1, Field: "p128", Tenant: "dev"}, Secret: []byte("alpha")})
	}
	return w.Commit(nil)
}

func busy(err error) bool { return errors.Is(err, &rpc.Error{Code: rpc.Busy}) }

// Which sessions may share a slot, while its MAC key is missing, made, locked, active and burnt.
func TestClaims(t *testing.T) {
	v := testVault(t)
	c := newClaims(v)
	s := slot{1, "p128", "dev"}
	enter := func() *claim {
		t.Helper()
		x, err := c.enter(s, false)
		must(t, err)
		return x
	}
	refused := func(when string) {
		t.Helper()
		if _, err := c.enter(s, false); !busy(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
	maker := enter()
	if !maker.maker {
		t.Fatal("there is no key, and nobody makes one")
	}
	refused("while the key is made")
	for _, other := range []slot{{2, "p128", "dev"}, {1, "p256", "dev"}, {1, "p128", "rival"}} {
		x, err := c.enter(other, false)
		must(t, err)
		x.leave()
	}
	maker.leave()
	maker = enter() // the first one failed
	must(t, maker.make())
	must(t, addBatch(v, "b-1", "mac-1", true))
	maker.leave()
	refused("while the key is locked")
	must(t, v.ActivateBatch("b-1"))
	first, second := enter(), enter()
	if first.maker || second.maker {
		t.Fatal("a key is made while another is active")
	}
	if err := first.make(); !busy(err) {
		t.Errorf("a key that another session uses is given up: %v", err)
	}
	second.leave()
	must(t, first.make())
	refused("while the key is replaced")
	_, err := v.BurnMACKey("mac-1", "test")
	must(t, err)
	first.leave()
	user := enter()
	if !user.maker {
		t.Error("a burnt key is used")
	}
	user.leave()
	if len(c.holders) != 0 {
		t.Errorf("%v are left", c.holders)
	}
	must(t, addBatch(v, "b-2", "mac-2", true))
	must(t, v.ActivateBatch("b-2"))
	user = enter()
	_, err = v.BurnMACKey("mac-2", "test")
	must(t, err)
	refused("while a session runs under a key that is burnt")
	user.leave()
	enter().leave()
}

// No other session uses a MAC key during an exclusive session.
func TestExclusiveClaims(t *testing.T) {
	v := testVault(t)
	must(t, addBatch(v, "b-1", "mac-1", true))
	must(t, v.ActivateBatch("b-1"))
	c, s := newClaims(v), slot{1, "p128", "dev"}
	first, err := c.enter(s, true)
	must(t, err)
	if _, err := c.enter(s, true); !busy(err) {
		t.Errorf("two sessions use a MAC key under keys that are not proved: %v", err)
	}
	first.leave()
	first, err = c.enter(s, true)
	must(t, err)
	must(t, first.make())
	first.leave()
	if len(c.holders) != 0 {
		t.Errorf("%v are left", c.holders)
	}
}

// soon bounds calls that should not wait, so that the test fails instead of hanging.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}
