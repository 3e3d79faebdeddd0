package keys_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
)

// backup returns a backup of the store of a stopped party.
func (w *world) backup(i int) (b *bytes.Buffer, key *seal.Key) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[i])
	if err != nil {
		w.Fatal(err)
	}
	if key, err = seal.LoadKey(f.Vault.KeyFile); err != nil {
		w.Fatal(err)
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		w.Fatal(err)
	}
	b = new(bytes.Buffer)
	_, err = v.Backup(b)
	if err := errors.Join(err, v.Close()); err != nil {
		w.Fatal(err)
	}
	return b, key
}

// restore restores a backup to a new directory and returns it.
func (w *world) restore(b *bytes.Buffer, key *seal.Key) (dir string) {
	w.Helper()
	dir = filepath.Join(w.TempDir(), "restored")
	place, err := seal.Place{Dir: dir}.OpenStore(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	_, err = vault.Restore(place, b, key, upkeep.RestoreOptions{})
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

// published waits until another party's registry has the given number of versions of a party's
// keys, with the given number of revoked ones.
func (w *world) published(at, of, versions, revoked int) {
	w.Helper()
	f, err := lodge.Load(filepath.Join(w.net.Dir, "clients", devnet.ClientName(at)+".yaml"))
	if err != nil {
		w.Fatal(err)
	}
	conn, err := f.Connect(f.Parties[at])
	if err != nil {
		w.Fatal(err)
	}
	defer conn.Close()
	for {
		r, err := multikeyv1.NewRegistryServiceClient(conn).ListPublished(w.Context(), &multikeyv1.ListPublishedRequest{})
		if err != nil {
			w.Fatal(err)
		}
		all, gone := 0, 0
		for _, k := range r.GetKeys() {
			if int(k.GetOwner()) != of {
				continue
			}
			all++
			if len(k.GetRevocation()) > 0 {
				gone++
			}
		}
		if all == versions && gone == revoked {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// A party whose store was restored learns from the others which keys it has destroyed, and no
// longer uses them. It does not reuse a version number.
func TestKeysThatComeBack(t *testing.T) {
	w := newWorld(t, nil)
	c := w.owner(0)
	gone := c.make(first)
	w.stop[0]()
	b, key := w.backup(0)
	w.start(0, nil)
	if _, err := c.DestroyKeys(t.Context(), &multikeyv1.DestroyKeysRequest{Version: 1, Reason: "leaked"}, grpc.WaitForReady(true)); err != nil {
		t.Fatal(err)
	}
	c.make(second)
	w.published(1, 0, 2, 1)
	w.stop[0]()

	dir := w.restore(b, key)
	w.start(0, func(f *config.PartyFile) {
		f.Vault.Dir, f.Multikey.Dir = dir, filepath.Join(dir, "multikey")
	})
	if list := c.list(); len(list) != 1 || list[0].GetState() != "active" || !bytes.Equal(list[0].GetKey(), gone.GetKey()) {
		t.Fatalf("the store has %v", list)
	}
	w.published(0, 0, 2, 1)
	_, err := c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Version: 1, Count: 1, Bits: []byte{1}})
	refused(t, err, "retired_key", "was destroyed after the backup")
	_, err = c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{1}})
	refused(t, err, lodge.NotFound, "no multi-key keys in use")
	again, err := c.DestroyKeys(t.Context(), &multikeyv1.DestroyKeysRequest{Version: 1, Reason: "again"})
	if err != nil || again.GetKeys().GetState() != "retired" {
		t.Errorf("%v, %v", again, err)
	}
	if made := c.make("request number 3"); made.GetVersion() != 3 {
		t.Fatalf("version %d is made, after 2", made.GetVersion())
	}
	w.published(1, 0, 3, 1)
}
