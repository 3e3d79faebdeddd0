package threshold_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// The client of multi-key ciphertexts finds owners and group itself, and sends one request for the
// ciphertexts under the same keys.
func TestMultikeyClient(t *testing.T) {
	o := newOwners(t, 3, nil)
	for _, quorum := range [][]uint32{{0, 1}, {0, 2}} {
		o.masks(o.group.Epoch, 20, "exact", quorum...)
	}
	dial := func(name string) *mkclient.Client {
		f, err := lodge.Load(filepath.Join(o.net.Dir, "clients", name+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		c, err := mkclient.Dial(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		return c
	}
	owner, app := dial(devnet.ClientName(1)), dial(devnet.App)
	made, err := owner.MakeKeys(t.Context(), 1)
	if err != nil || made.Version != 2 || made.Party != 1 || !made.Pinned {
		t.Fatalf("%+v, %v", made, err)
	}
	bits := []bool{true, false, true, true, false, false, true, false, true}
	batch, err := owner.Encrypt(t.Context(), o.scheme, 1, 0, bits)
	if err != nil || batch.Key != made.Key {
		t.Fatalf("%v", err)
	}
	want := slices.Concat(bits, []bool{true, false, true, false})
	var list []*mk.Ciphertext
	for i := range bits {
		list = append(list, batch.Ciphertext(i))
	}
	list = append(list, o.joint(true, 0, 1), mk.Trivial(false), o.joint(true, 2, 0), o.joint(false, 1, 0))
	got, err := app.Decrypt(t.Context(), &mkclient.Decryption{Ciphertexts: list})
	if err != nil || !slices.Equal(got.Bits, want) || got.Epoch != o.group.Epoch || len(got.Answers) != 3 {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := owner.DestroyKeys(t.Context(), 1, 2, "test"); err != nil {
		t.Fatal(err)
	}
	if keys, err := app.ListKeys(t.Context(), 1); err != nil || len(keys) != 2 || keys[1].State != "retired" || keys[1].Reason != "test" {
		t.Errorf("%+v, %v", keys, err)
	}
	_, err = app.Decrypt(t.Context(), &mkclient.Decryption{Ciphertexts: list[:1]})
	refused(t, err, "retired_key", "version 2 of the multi-key keys of party 1")
	foreign := list[0].Clone()
	foreign.Parts[0].Key[0] ^= 1
	_, err = app.Decrypt(t.Context(), &mkclient.Decryption{Ciphertexts: []*mk.Ciphertext{foreign}})
	refused(t, err, "unknown_key", "no party of the roster owns")
	o.running[1]()
	_, err = app.Decrypt(t.Context(), &mkclient.Decryption{Ciphertexts: []*mk.Ciphertext{foreign}})
	refused(t, err, lodge.Unavailable, "no answer of p1")
}
