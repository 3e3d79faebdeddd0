package keys_test

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	mk "github.com/lodge-mpc/lodge/engine/multikey"
	multikeyv1 "github.com/lodge-mpc/lodge/proto/lodge/multikey/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/multikey"
	"github.com/lodge-mpc/lodge/services/multikey/keys"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/store/vault"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

const (
	first  = "request number 1"
	second = "request number 2"
)

// A party makes keys repeatedly under increasing versions. A repeated request makes no further
// keys, the party signs the records itself, and destroyed keys are erased.
func TestKeys(t *testing.T) {
	w := newWorld(t, nil)
	c := w.owner(1)
	one := c.make(first)
	if one.GetVersion() != 1 || one.GetState() != "active" || one.GetOwner() != multikey.OwnerInSeed || one.GetParams() != set || !one.GetPinned() {
		t.Fatalf("%v", one)
	}
	if again := c.make(first); !proto.Equal(again, one) {
		t.Errorf("%v, and the same request again %v", one, again)
	}
	two := c.make(second)
	if two.GetVersion() != 2 || bytes.Equal(two.GetKey(), one.GetKey()) {
		t.Fatalf("%v", two)
	}
	r, err := multikey.VerifyRecord(two.GetRecord())
	if err != nil {
		t.Fatal(err)
	}
	if place, err := r.Place(w.net.Roster.SigningKeys()); err != nil || place != 1 || r.Owner() != two.GetOwner() || r.Version != 2 || r.Key != mk.KeyID(two.GetKey()) || r.Revoked || r.Check(pinned(t, config.StandardSeed)) != nil {
		t.Errorf("%+v", r)
	}
	d, err := c.DestroyKeys(t.Context(), &multikeyv1.DestroyKeysRequest{Version: 1, Reason: "leaked"})
	if err != nil {
		t.Fatal(err)
	}
	if k := d.GetKeys(); k.GetState() != "retired" || k.GetReason() != "leaked" || k.GetRetired() == nil {
		t.Errorf("%v", k)
	}
	if r, err = multikey.VerifyRecord(d.GetKeys().GetRevocation()); err != nil || !r.Revoked || r.Key != mk.KeyID(one.GetKey()) {
		t.Errorf("%+v, %v", r, err)
	}
	if again, err := c.DestroyKeys(t.Context(), &multikeyv1.DestroyKeysRequest{Version: 1}); err != nil || !proto.Equal(again, d) {
		t.Errorf("%v, and again %v, %v", d, again, err)
	}
	if list := w.as(devnet.App, 1).list(); len(list) != 2 || !proto.Equal(list[0], d.GetKeys()) || !proto.Equal(list[1], two) {
		t.Errorf("%v", list)
	}
	if list := w.owner(0).list(); len(list) != 0 {
		t.Errorf("another party lists %v", list)
	}
	w.stop[1]()
	w.start(1, nil)
	if list := c.list(); len(list) != 2 || !proto.Equal(list[1], two) {
		t.Errorf("after a restart: %v", list)
	}
	w.stop[1]()
	events := w.audited(1)
	if len(events) != 3 || events[0] != audit.MultikeyMade || events[1] != audit.MultikeyMade || events[2] != audit.MultikeyRetired {
		t.Errorf("audited %q", events)
	}
}

// audited returns the events in a party's audit log.
func (w *world) audited(party int) (events []audit.Event) {
	w.Helper()
	dir := filepath.Join(filepath.Dir(w.net.Parties[party]), "audit")
	files, err := os.ReadDir(dir)
	if err != nil {
		w.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			w.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			_, rest, _ := strings.Cut(line, `"event":"`)
			event, _, _ := strings.Cut(rest, `"`)
			events = append(events, audit.Event(event))
		}
	}
	return events
}

// The stored public part has the identifier in the record, and an evaluator accepts it. The party
// encrypts under it, and the stored secret decrypts.
func TestEncrypt(t *testing.T) {
	w := newWorld(t, nil)
	c := w.owner(0)
	made := c.make(first)
	bits := make([]byte, 13)
	for i := range bits {
		bits[i] = byte(rand.Uint32())
	}
	bits[12] &= 0xf
	r, err := c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Count: 100, Bits: bits})
	if err != nil {
		t.Fatal(err)
	}
	again, err := c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Version: 1, Count: 100, Bits: bits})
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(r.GetBatch(), again.GetBatch()) || !proto.Equal(r.GetKeys(), made) {
		t.Errorf("repeated randomness, or other keys: %v", r.GetKeys())
	}
	batch, err := scheme(t).DecodeBatch(r.GetBatch())
	if err != nil {
		t.Fatal(err)
	}
	w.stop[0]()
	own, v := w.stored(0)
	secret, err := own.Secret(mk.KeyID(made.GetKey()))
	if err != nil {
		t.Fatal(err)
	}
	for i := range batch.Len() {
		if got, err := mk.Decrypt(batch.Ciphertext(i), secret); err != nil || got != (bits[i/8]>>(i%8)&1 == 1) {
			t.Fatalf("bit %d is %v, %v", i, got, err)
		}
	}
	public, err := v.OpenMultikeyPublic(1)
	if err != nil {
		t.Fatal(err)
	}
	defer public.Close()
	header := make([]byte, mk.HeaderSize)
	if _, err := io.ReadFull(public, header); err != nil {
		t.Fatal(err)
	}
	record, err := multikey.VerifyRecord(made.GetRecord())
	if err != nil {
		t.Fatal(err)
	}
	if want := multikey.OwnerSeed(w.net.Roster.SigningKeys()[0], record.Salt); record.Weak() || mk.HeaderSeed(header) != want {
		t.Errorf("the keys do not name their owner: %+v", record)
	}
	in, err := scheme(t).Receive(made.GetOwner(), header)
	if err != nil {
		t.Fatal(err)
	}
	var digests [][32]byte
	for range scheme(t).Chunks() {
		var d [32]byte
		if _, err := io.ReadFull(public, d[:]); err != nil {
			t.Fatal(err)
		}
		digests = append(digests, d)
	}
	if id := mk.IDOf(header, digests); id != mk.KeyID(made.GetKey()) {
		t.Errorf("the header and the digests are of keys %x", id)
	}
	for i := range digests {
		chunk := make([]byte, scheme(t).ChunkSize(i))
		if _, err := io.ReadFull(public, chunk); err != nil {
			t.Fatal(err)
		}
		if err := in.Put(i, chunk); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := in.Finish(mk.KeyID(made.GetKey())); err != nil {
		t.Error(err)
	}
}

// stored opens the store of a party that is not running.
func (w *world) stored(party int) (*keys.Store, *vault.Vault) {
	w.Helper()
	f, err := config.LoadParty(w.net.Parties[party])
	if err != nil {
		w.Fatal(err)
	}
	key, err := seal.LoadKey(f.Vault.KeyFile)
	if err != nil {
		w.Fatal(err)
	}
	v, err := vault.Open(f.Vault.Dir, key)
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { v.Close() })
	return keys.New(keys.Config{Vault: v, Context: pinned(w, config.StandardSeed), Party: party}), v
}

func TestRefusals(t *testing.T) {
	w := newWorld(t, nil)
	c, app := w.owner(0), w.as(devnet.App, 0)
	c.make(first)
	encrypt := func(c *client, r *multikeyv1.EncryptRequest) error { _, err := c.Encrypt(t.Context(), r); return err }
	destroy := func(c *client, r *multikeyv1.DestroyKeysRequest) error {
		_, err := c.DestroyKeys(t.Context(), r)
		return err
	}
	_, err := app.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte(second)})
	refused(t, err, lodge.Forbidden, "")
	refused(t, destroy(app, &multikeyv1.DestroyKeysRequest{Version: 1}), lodge.Forbidden, "")
	refused(t, encrypt(w.as(devnet.Operator, 0), &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{1}}), lodge.Forbidden, "")
	_, err = c.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte("short")})
	refused(t, err, lodge.Invalid, "5 bytes")
	refused(t, destroy(c, &multikeyv1.DestroyKeysRequest{Version: 2}), lodge.NotFound, "version 2")
	refused(t, destroy(c, &multikeyv1.DestroyKeysRequest{Version: 1, Reason: strings.Repeat("x", 1<<13)}), "too_large", "reason")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{}), lodge.Invalid, "no bits")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Count: 1 << 19, Bits: make([]byte, 2)}), "too_large", "524288 bits")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Count: 9, Bits: []byte{1}}), lodge.Invalid, "1 bytes for 9 bits")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Count: 3, Bits: []byte{8}}), lodge.Invalid, "non-zero bits")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Version: 7, Count: 1, Bits: []byte{1}}), lodge.NotFound, "version 7")
	if err := destroy(c, &multikeyv1.DestroyKeysRequest{Version: 1}); err != nil {
		t.Fatal(err)
	}
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Version: 1, Count: 1, Bits: []byte{1}}), "retired_key", "version 1 of the multi-key keys of party 0")
	refused(t, encrypt(c, &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{1}}), lodge.NotFound, "no multi-key keys in use")
}

// If the roster pins another context, or none, older keys are listed but cannot be used, and new
// keys can be made in addition.
func TestAnotherContext(t *testing.T) {
	w := newWorld(t, nil)
	c := w.owner(0)
	before := c.make(first)
	change := func(m *config.Multikey) func(*config.PartyFile) {
		return func(f *config.PartyFile) { f.Roster.Multikey = m }
	}
	w.stop[0]()
	w.start(0, change(nil))
	if list := c.list(); len(list) != 1 || list[0].GetPinned() || !bytes.Equal(list[0].GetKey(), before.GetKey()) {
		t.Errorf("%v", list)
	}
	_, err := c.MakeKeys(t.Context(), &multikeyv1.MakeKeysRequest{RequestId: []byte(second)})
	refused(t, err, lodge.Invalid, "no context")
	_, err = c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Count: 1, Bits: []byte{1}})
	refused(t, err, lodge.Invalid, "no context")

	w.stop[0]()
	w.start(0, change(&config.Multikey{Set: set, Seed: strings.Repeat("01", 32)}))
	if list := c.list(); len(list) != 1 || list[0].GetPinned() {
		t.Errorf("%v", list)
	}
	_, err = c.Encrypt(t.Context(), &multikeyv1.EncryptRequest{Version: 1, Count: 1, Bits: []byte{1}})
	refused(t, err, "foreign_ciphertext", "another common reference string")
	if made := c.make(second); made.GetVersion() != 2 || !made.GetPinned() || bytes.Equal(made.GetCrs(), before.GetCrs()) {
		t.Errorf("%v", made)
	}
}

// If a call is abandoned, the keys it requested are still made, and a repeated request finds them.
func TestMakingGoesOn(t *testing.T) {
	w := newWorld(t, nil)
	c := w.owner(0)
	c.list() // the party is up
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := c.MakeKeys(ctx, &multikeyv1.MakeKeysRequest{RequestId: []byte(first)})
		done <- err
	}()
	cancel()
	<-done
	if made := c.make(first); made.GetVersion() != 1 {
		t.Errorf("%v", made)
	}
	if list := c.list(); len(list) != 1 {
		t.Errorf("%v", list)
	}
}

// A party's multi-key keys serve every tenant of its policy, so a client that acts for only one of
// two tenants cannot destroy them.
func TestDestroyNeedsEveryTenant(t *testing.T) {
	w := newWorld(t, func(f *config.PartyFile) { f.Policy.Tenants = append(f.Policy.Tenants, "second") })
	c := w.owner(1)
	c.make(first)
	_, err := c.DestroyKeys(t.Context(), &multikeyv1.DestroyKeysRequest{Version: 1, Reason: "test"})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Forbidden {
		t.Errorf("%v", err)
	}
	if list := c.list(); len(list) != 1 || list[0].GetState() != "active" {
		t.Errorf("%v", list)
	}
}
