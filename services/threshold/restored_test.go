package threshold_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	client "github.com/lodge-mpc/lodge/clients/go/threshold"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
)

// A party whose store was restored from a backup counts its allowance for flooding as used up, and
// says so. Answers that are in the backup are repeated, and the other parties still decrypt without
// it.
func TestFloodingIsSpentByRestore(t *testing.T) {
	w := newWorld(t, 3, floods, bgvSet)
	u := w.user(w.bgvKeys(bgvSet, 1))
	want := u.values(5)
	ct := u.encrypt(want, true)
	before := u.flooded(want, ct, 0, 2)
	w.running[2]()
	restored := w.restored(2)
	w.start(2, func(i int, f *config.PartyFile) {
		floods(i, f)
		f.Vault.Dir = restored
	})
	after := u.flooded(want, ct, 0, 2)
	if !slices.EqualFunc(before.Answers.Parts, after.Answers.Parts, slices.Equal[[]byte]) {
		t.Error("different answers after the restore")
	}
	second := u.encrypt(want, true)
	_, err := w.vouched(u.key, &client.Request{BGV: []*rlwe.Ciphertext{second}, Flooding: true, Quorum: []int{0, 2}})
	refused(t, err, lodge.Burnt, "as many ciphertexts with flooding as they may")
	u.flooded(want, second, 0, 1)
}

// restored backs up a stopped party's store, restores it with the keys for decryption, and returns
// the new directory.
func (w *world) restored(i int) (dir string) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[i])
	if err != nil {
		w.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		w.Fatal(err)
	}
	old, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		w.Fatal(err)
	}
	var backup bytes.Buffer
	_, err = old.Backup(&backup)
	if err := errors.Join(err, old.Close()); err != nil {
		w.Fatal(err)
	}
	dir = filepath.Join(w.TempDir(), "restored")
	place, err := seal.Place{Dir: dir}.OpenStore(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	_, err = vault.Restore(place, &backup, key, upkeep.RestoreOptions{KeepDecryption: true})
	if err := errors.Join(err, place.Close()); err != nil {
		w.Fatal(err)
	}
	v, err := vault.Open(dir, key)
	if err != nil {
		w.Fatal(err)
	}
	if err := errors.Join(v.LeaveQuarantine(), v.Close()); err != nil {
		w.Fatal(err)
	}
	return dir
}
