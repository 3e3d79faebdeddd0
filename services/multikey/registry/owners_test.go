package registry

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	service "github.com/lodge-mpc/lodge/services/multikey"
)

// colliding returns two signing keys with the same OwnerNumber. They are the first such pair among
// the seeds 0, 1, 2, ..., found by a search over 80,369 keys. A collision with the key of a given
// victim takes 2^32.
func colliding(t *testing.T) (victim, attacker ed25519.PrivateKey) {
	t.Helper()
	key := func(n uint64) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(append(binary.LittleEndian.AppendUint64(nil, n), make([]byte, 24)...))
	}
	return key(16094), key(80368)
}

// claims returns a world of three parties. Party 1 makes keys. Party 2, whose signing key has the
// same OwnerNumber, signs that they are its own and serves them.
func claims(t *testing.T, weak bool) (*world, *multikey.Keys) {
	t.Helper()
	victim, attacker := colliding(t)
	a, b := service.OwnerNumber(victim.Public().(ed25519.PublicKey)), service.OwnerNumber(attacker.Public().(ed25519.PublicKey))
	if a != b || victim.Equal(attacker) {
		t.Fatalf("the numbers are %d and %d", a, b)
	}
	w := newWorldOf(t, []ed25519.PrivateKey{signer(0), victim, attacker}, nil)
	w.own[1].weak, w.own[2].weak = weak, weak
	keys := w.own[1].make(1)
	w.own[2].blobs = w.own[1].blobs
	w.own[2].records = [][]byte{w.own[2].record(keys.ID(), 1, false)}
	return w, keys
}

// No other party can become the owner of keys whose seed names their owner, whatever the 32 bits of
// its signing key. For keys of older versions another party can: no party computes with such keys
// until their owners have made others.
func TestCollidingOwners(t *testing.T) {
	w, keys := claims(t, false)
	r := w.registries[0]
	w.sync(t, 1)
	w.sync(t, 2)
	w.sync(t, 0)
	if err := r.fetch(t.Context(), r.book.current(2)); !errors.Is(err, multikey.ErrOwner) {
		t.Errorf("the attacker's claim: %v", err)
	}
	if r.here(r.book.current(2)) {
		t.Error("the attacker is accepted as the owner")
	}
	if _, err := r.Load(t.Context(), keys.ID()); err != nil {
		t.Error(err)
	}
	if rec, known := r.Owner(keys.ID()); !known || !bytes.Equal(rec.Signer[:], w.own[1].key.Public().(ed25519.PublicKey)) || rec.Weak() {
		t.Errorf("the owner is %+v", rec)
	}

	w, keys = claims(t, true)
	r = w.registries[0]
	for _, i := range []int{1, 2, 0} {
		w.sync(t, i)
	}
	w.sync(t, 0)
	for owner := 1; owner <= 2; owner++ { // fetching checked only this
		if err := r.book.current(owner).CheckHeader(w.c, keys.Header()); err != nil {
			t.Errorf("32 bits distinguish the attacker from the owner: %v", err)
		}
	}
	for _, i := range []int{0, 1} {
		if err := w.registries[i].Usable(keys.ID()); code(err) != rpc.Conflict {
			t.Errorf("keys with two owners, at party %d: %v", i, err)
		}
	}
	if rec, known := w.registries[1].Owner(keys.ID()); !known || !bytes.Equal(rec.Signer[:], w.own[1].key.Public().(ed25519.PublicKey)) {
		t.Errorf("the owner does not recognise its own keys: %+v", rec)
	}
	// Its next keys are distinguishable, and replace these.
	w.own[1].weak = false
	next := w.own[1].make(2)
	w.own[2].weak = false
	w.own[2].blobs, w.own[2].records = w.own[1].blobs, append(w.own[2].records, w.own[2].record(next.ID(), 2, false))
	w.sync(t, 1)
	w.sync(t, 2)
	w.sync(t, 0)
	if _, err := r.Load(t.Context(), next.ID()); err != nil {
		t.Error(err)
	}
	list, err := r.ListPublished(t.Context(), &multikeyv1.ListPublishedRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range list.GetKeys() {
		if old := k.GetVersion() == 1; k.GetWeakOwner() != old || k.GetPresent() != (k.GetOwner() == 1 && !old) || (k.GetState() == "current") == old {
			t.Errorf("%+v", k)
		}
	}
}

// A record of the old form cannot claim keys of the new form, even if the number of its signing key
// is the one in their header.
func TestWeakRecordsClaimNoBoundKeys(t *testing.T) {
	w, keys := claims(t, false)
	header := keys.Header()
	weak := service.Record{Signer: [32]byte(w.own[2].key.Public().(ed25519.PublicKey))}
	if err := weak.CheckHeader(w.c, header); !errors.Is(err, multikey.ErrOwner) {
		t.Errorf("claimed by a record without a salt: %v", err)
	}
	// Finding a signing key with the number OwnerInSeed takes 2^32 tries. The check depends only on
	// the number.
	if err := service.CheckWeakOwner(service.OwnerInSeed); !errors.Is(err, multikey.ErrOwner) {
		t.Errorf("claimed by a signing key with the number %d: %v", service.OwnerInSeed, err)
	}
	if err := service.CheckWeakOwner(weak.Owner()); err != nil {
		t.Error(err)
	}
}

// Records of an older version are read, and stored in the new form of the file together with
// others.
func TestRecordsOfAnOlderVersion(t *testing.T) {
	w := newWorld(t, 2, nil)
	o := w.own[1]
	o.weak = true
	old := o.record(multikey.KeyID{1}, 1, false)
	if len(old) != service.WeakRecordSize {
		t.Fatalf("%d bytes", len(old))
	}
	r := w.registries[0]
	file := filepath.Join(r.Dir, weakRecordsFile)
	if err := os.WriteFile(file, bytes.Join([][]byte{old, o.record(multikey.KeyID{2}, 2, false)}, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	again, err := New(r.Config)
	if err != nil {
		t.Fatal(err)
	}
	if e := again.book.current(1); e == nil || e.Version != 2 || !e.Weak() {
		t.Fatalf("%+v", e)
	}
	o.weak = false
	if err := again.accept([][]byte{o.record(multikey.KeyID{3}, 3, false)}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old file: %v", err)
	}
	if again, err = New(r.Config); err != nil {
		t.Fatal(err)
	}
	if list := again.book.owners[1]; len(list) != 3 || !list[0].Weak() || list[2].Weak() || list[1].State() != "superseded" {
		t.Errorf("%+v", list)
	}
	for name, b := range map[string][]byte{"half a length": {1}, "cut": {249, 0, 1, 2}, "another size": append([]byte{3, 0}, 1, 2, 3)} {
		if err := os.WriteFile(filepath.Join(r.Dir, recordsFile), b, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := New(r.Config); err == nil {
			t.Errorf("%s is accepted as records", name)
		}
	}
}
