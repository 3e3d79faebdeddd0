package triples

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	"github.com/lodge-mpc/lodge/services/rpc"
	"github.com/lodge-mpc/lodge/services/runner"
	"github.com/lodge-mpc/lodge/services/session"
	"github.com/lodge-mpc/lodge/services/vault"
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
	must(t, vault.WriteNewKey(path))
	k, err := vault.LoadKey(path)
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
	w, err := v.NewEpoch(vault.Epoch{ID: 1, Purpose: "triples", Limit: 3})
	must(t, err)
	must(t, w.Commit())
	must(t, v.ActivateEpoch(1))
	return v
}

// addBatch stores a batch, locked; with fresh its MAC key comes into being with it.
func addBatch(v *vault.Vault, id, key string, fresh bool) error {
	w, err := v.NewBatch(vault.Batch{ID: id, Epoch: 1, MACKey: key, Field: "p128", Tenant: "dev", Count: 1, TupleBytes: 1})
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write([]byte{0}); err != nil {
		return err
	}
	if fresh {
		return w.Commit(&vault.NewMACKey{MACKey: vault.MACKey{ID: key, Epoch: 1, Field: "p128", Tenant: "dev"}, Secret: []byte("alpha")})
	}
	return w.Commit(nil)
}

func busy(err error) bool { return errors.Is(err, &rpc.Error{Code: rpc.Busy}) }

// Who may enter a slot beside whom, while its MAC key is missing, made, locked, active and burnt.
func TestClaims(t *testing.T) {
	v := testVault(t)
	c := newClaims(v)
	s := slot{1, "p128", "dev"}
	enter := func() *claim {
		t.Helper()
		x, err := c.enter(s)
		must(t, err)
		return x
	}
	refused := func(when string) {
		t.Helper()
		if _, err := c.enter(s); !busy(err) {
			t.Errorf("%s: %v", when, err)
		}
	}
	maker := enter()
	if !maker.maker {
		t.Fatal("there is no key, and nobody makes one")
	}
	refused("while the key is made")
	for _, other := range []slot{{2, "p128", "dev"}, {1, "p256", "dev"}, {1, "p128", "rival"}} {
		x, err := c.enter(other)
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
		t.Fatal("a key is made beside the active one")
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

// exposedRuns are two sessions under one active MAC key that have both opened their parts of its check.
func exposedRuns(t *testing.T) (v *vault.Vault, c *claims, a, b *run) {
	v = testVault(t)
	must(t, addBatch(v, "b-0", "mac-1", true))
	must(t, v.ActivateBatch("b-0"))
	s := &Service{vault: v, claims: newClaims(v)}
	spec := &jobv1.SessionSpec{Epoch: 1, Field: "p128", Tenant: "dev"}
	a, b = &run{Service: s, spec: spec, macID: "mac-1", id: [32]byte{1}}, &run{Service: s, spec: spec, macID: "mac-1", id: [32]byte{2}}
	must(t, a.expose())
	must(t, b.expose())
	return v, s.claims, a, b
}

// soon ends what should not wait: it fails instead of hanging.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// settling runs settle until ended has been called, which must be what it waits for.
func settling(t *testing.T, r *run, end func()) error {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- r.settle(soon(t)) }()
	select {
	case err := <-done:
		t.Fatalf("a result before the other check has a verdict: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	end()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("it waits on")
		return nil
	}
}

func burntRefusal(err error) bool {
	var f *runner.Failure
	return errors.As(err, &f) && f.Outcome == session.Refused && f.Check == string(rpc.Burnt)
}

// A check that passes while another session may have told the key to a cheating peer proves nothing until that one has
// a verdict.
func TestAPassedCheckWaitsForTheOthers(t *testing.T) {
	v, c, a, b := exposedRuns(t)
	must(t, settling(t, b, func() { must(t, a.settle(soon(t))) })) // a has nobody to wait for: b has its verdict
	must(t, addBatch(v, "b-2", "mac-1", false))
	if len(c.exposed) != 0 {
		t.Errorf("%v are left", c.exposed)
	}
	if k, err := v.MACKey("mac-1"); err != nil || k.State != vault.MACActive || len(k.Exposed) != 0 {
		t.Errorf("%+v, %v", k, err)
	}
}

// When the other check fails, or ends without a verdict, nothing of this session is stored, however it ran.
func TestAKeyIsBurntWhileAnotherSessionUsesIt(t *testing.T) {
	noVerdict := &runner.Failure{Outcome: runner.Timeout}
	t.Run("after its check", func(t *testing.T) {
		v, _, a, b := exposedRuns(t)
		if err := settling(t, b, func() { a.burn(noVerdict) }); !burntRefusal(err) {
			t.Errorf("it accepts: %v", err)
		}
		err := addBatch(v, "b-2", "mac-1", false)
		if err == nil || !burntRefusal(b.unlessBurnt(err)) {
			t.Errorf("a batch under the burnt key: %v", err)
		}
	})
	t.Run("before its verdict", func(t *testing.T) {
		_, _, a, b := exposedRuns(t)
		a.burn(noVerdict)
		if err := b.settle(soon(t)); !burntRefusal(err) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("before its check", func(t *testing.T) {
		_, c, a, b := exposedRuns(t)
		late := &run{Service: a.Service, spec: a.spec, macID: a.macID, id: [32]byte{3}}
		a.burn(noVerdict)
		err := late.expose()
		if !burntRefusal(err) {
			t.Errorf("got %v", err)
		}
		late.burn(err)
		b.burn(noVerdict)
		if len(c.exposed) != 0 {
			t.Errorf("%v are left", c.exposed)
		}
	})
	t.Run("after it is stored, and after it is active", func(t *testing.T) {
		v, _, a, b := exposedRuns(t)
		must(t, settling(t, b, func() { must(t, a.settle(soon(t))) }))
		must(t, addBatch(v, "b-2", "mac-1", false))
		must(t, addBatch(v, "b-3", "mac-1", false))
		must(t, v.ActivateBatch("b-3"))
		must(t, a.expose())
		a.burn(noVerdict)
		if err := v.ActivateBatch("b-2"); !errors.Is(err, vault.ErrErased) {
			t.Errorf("activated under the burnt key: %v", err)
		}
		_, err := v.Reserve(vault.Reservation{ID: "r", Class: vault.Class{Tenant: "dev", Field: "p128"}, Epoch: 1, MACKey: "mac-1", Owner: "client",
			Ranges: []vault.Range{{Batch: "b-3", Span: vault.Span{Count: 1}}}, Lease: time.Now().Add(time.Hour)})
		if !errors.Is(err, vault.ErrErased) {
			t.Errorf("reserved under the burnt key: %v", err)
		}
	})
}

// Whoever waits for another's verdict ends with its own session.
func TestWaitingForAVerdictEnds(t *testing.T) {
	_, _, _, b := exposedRuns(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.settle(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
