package keyring

import (
	"bytes"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/engine/gbfv"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/keygen"
	"github.com/lodge-mpc/lodge/engine/protocol/round"
	"github.com/lodge-mpc/lodge/engine/protocol/round/roundtest"
	"github.com/lodge-mpc/lodge/engine/sample"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

const set = "insecure-8"

// filled is a vault with active epochs 1 to n, all with the same keys.
func filled(t *testing.T, n int) (*vault.Vault, keygen.Result) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := seal.WriteNewKey(path); err != nil {
		t.Fatal(err)
	}
	key, err := seal.LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	v, err := vault.Open(filepath.Join(t.TempDir(), "vault"), key)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	p, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(p, p.Fields[0])
	if err != nil {
		t.Fatal(err)
	}
	out := roundtest.Lockstep(2, func(rs round.Session) (round.Transition[keygen.Result], error) {
		seed := round.Hash("keyring test", round.Uint(uint64(rs.Self)))
		return keygen.Start(keygen.Config{Session: rs, Scheme: s, Dim: 4, Security: keygen.Passive, Source: sample.NewSource(seed[:]), Workers: 2})
	}).OK(t)
	r := out.Results[0]
	for id := range uint64(n) {
		e := keys.Epoch{ID: id + 1, Params: set, Purpose: "triples", Dim: 4, Digest: r.Keys.Digest(s, 1), Limit: 1}
		w, err := Store(v, e, s, r)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := v.ActivateEpoch(e.ID); err != nil {
			t.Fatal(err)
		}
	}
	return v, r
}

func load(t *testing.T, r *Ring, id uint64) *Keys {
	t.Helper()
	k, err := r.Load(id, "triples")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func erased(k *Keys) bool {
	for _, row := range k.Secret.C {
		for _, x := range row {
			if x != 0 {
				return false
			}
		}
	}
	return true
}

// Keys that somebody uses are never erased under them; those that nobody uses are, but for the last
// ones.
func TestKeysAreErasedAfterTheirLastUse(t *testing.T) {
	v, _ := filled(t, 2)
	r := New(v, 2, true)
	one, again := load(t, r, 1), load(t, r, 1)
	if one != again {
		t.Error("the same keys are in memory twice")
	}
	two := load(t, r, 2)
	one.Release()
	if erased(one) {
		t.Fatal("erased under a user")
	}
	again.Release()
	if !erased(one) {
		t.Error("keys that nobody uses stay, though others are in their place")
	}
	two.Release()
	if erased(two) || load(t, r, 2) != two {
		t.Error("the last keys do not stay")
	}
	if _, err := v.RetireEpoch(2, ""); err != nil {
		t.Fatal(err)
	}
	r.Forget(2)
	if erased(two) {
		t.Fatal("retiring erases under a user")
	}
	if _, err := r.Load(2, "triples"); !errors.Is(err, &rpc.Error{Code: rpc.Burnt}) {
		t.Errorf("a retired epoch gives %v", err)
	}
	two.Release()
	if !erased(two) || len(r.loaded) != 0 {
		t.Error("keys of a retired epoch stay")
	}
}

// Keys that are not active everywhere yet serve nothing, and a share of a secret that would not be
// read back as it is is not stored.
func TestKeysThatAreNotReady(t *testing.T) {
	v, result := filled(t, 1)
	p, err := params.Lookup(set)
	if err != nil {
		t.Fatal(err)
	}
	s, err := gbfv.New(p, p.Fields[0])
	if err != nil {
		t.Fatal(err)
	}
	w, err := Store(v, keys.Epoch{ID: 2, Params: set, Purpose: "triples", Dim: 4, Limit: 1}, s, result)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Commit(); err != nil {
		t.Fatal(err)
	}
	r := New(v, 2, true)
	for name, err := range map[string]error{"record": second(r.Held(2, "triples")), "keys": second(r.Load(2, "triples"))} {
		if !errors.Is(err, &rpc.Error{Code: rpc.Conflict}) {
			t.Errorf("the %s of a locked epoch: %v", name, err)
		}
	}
	result.Secret[3] = 1 << 15
	if _, err := Store(v, keys.Epoch{ID: 3, Params: set, Purpose: "triples", Dim: 4, Limit: 1}, s, result); err == nil {
		t.Error("a secret was cut short")
	}
}

func second[T any](_ T, err error) error { return err }

func TestLoadingAtOnceLoadsOnce(t *testing.T) {
	v, _ := filled(t, 3)
	r := New(v, 1, true)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			k, err := r.Load(uint64(i%3+1), "triples")
			if err != nil {
				t.Error(err)
				return
			}
			if erased(k) || k.Epoch.ID != uint64(i%3+1) {
				t.Error("wrong or erased keys")
			}
			k.Release()
		})
	}
	wg.Wait()
	if len(r.loaded) != 1 {
		t.Errorf("%d epochs stay in memory", len(r.loaded))
	}
}

// Keys that are retired while they are loaded do not stay in memory, whoever is first: the load, or
// the word to forget them.
func TestKeysRetiredWhileTheyAreLoaded(t *testing.T) {
	v, _ := filled(t, 1)
	r := New(v, 2, true)
	held := load(t, r, 1)
	late := &loaded{ready: make(chan struct{}), users: 0}
	r.loaded[1] = late // as if it were on its way yet
	got := make(chan error)
	go func() { got <- second(r.Load(1, "triples")) }()
	for {
		r.mu.Lock()
		waiting := late.users > 0
		r.mu.Unlock()
		if waiting {
			break
		}
		time.Sleep(time.Millisecond)
	}
	if _, err := v.RetireEpoch(1, "test"); err != nil {
		t.Fatal(err)
	}
	r.Forget(1)
	late.keys = held
	close(late.ready)
	if e := rpc.FromError(<-got); e == nil || e.Code != rpc.Burnt {
		t.Errorf("%v", e)
	}
	if !erased(held) || len(r.loaded) != 0 || r.last != 0 {
		t.Errorf("%d epochs are in memory, the last is %d", len(r.loaded), r.last)
	}
}

func TestPublicFramesAreThoseOfTheKeys(t *testing.T) {
	v, result := filled(t, 1)
	r := New(v, 1, true)
	s, err := r.Scheme(set, "")
	if err != nil {
		t.Fatal(err)
	}
	seed, polynomial, err := r.PublicFrames(1)
	if err != nil || !bytes.Equal(seed, result.Keys.Frame(s, 0)) || !bytes.Equal(polynomial, result.Keys.Frame(s, 1)) {
		t.Errorf("other frames, %v", err)
	}
	e, err := r.Epoch(1, "triples")
	if err != nil {
		t.Fatal(err)
	}
	if _, hash, err := r.PublicKey(e); err != nil || hash != result.Keys.PublicHash(s) {
		t.Errorf("another public key, %v", err)
	}
	if len(r.loaded) != 0 {
		t.Error("reading the public key loads the secret one")
	}
	if _, _, err := r.PublicFrames(9); !errors.Is(err, &rpc.Error{Code: rpc.NotFound}) {
		t.Errorf("an epoch that is not there gives %v", err)
	}
}
