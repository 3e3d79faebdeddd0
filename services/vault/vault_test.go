package vault

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var canary = []byte("CANARY-SECRET-SHARE-0123456789")

func newKey(t testing.TB) *Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	if err := WriteNewKey(path); err != nil {
		t.Fatal(err)
	}
	k, err := LoadKey(path)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func mustOpen(t testing.TB, dir string, k *Key) *Vault {
	t.Helper()
	v, err := Open(dir, k)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newVault(t testing.TB) *Vault {
	t.Helper()
	v := mustOpen(t, filepath.Join(t.TempDir(), "vault"), newKey(t))
	t.Cleanup(func() { v.Close() })
	return v
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

func addEpoch(t *testing.T, v *Vault, id uint64, purpose string) {
	t.Helper()
	w, err := v.NewEpoch(Epoch{ID: id, Purpose: purpose, Limit: 3})
	must(t, err)
	_, err = w.Secret.Write(canary)
	must(t, err)
	_, err = w.Public.Write([]byte("public"))
	must(t, err)
	must(t, w.Commit())
	w.Abort() // does nothing
}

func addBatch(t *testing.T, v *Vault, id string, fresh *NewMACKey) {
	t.Helper()
	w, err := v.NewBatch(Batch{ID: id, Epoch: 1, MACKey: "mac-1", Field: "p128", Tenant: "demo", Count: 3})
	must(t, err)
	_, err = w.Write(canary)
	must(t, err)
	must(t, w.Commit(fresh))
}

func macKey(id string) *NewMACKey {
	return &NewMACKey{MACKey{ID: id, Epoch: 1, Field: "p128", Tenant: "demo"}, append([]byte("alpha "), canary...)}
}

func content(t *testing.T, r io.ReadCloser, err error) string {
	t.Helper()
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return string(b)
}

func objects(t *testing.T, v *Vault) int {
	t.Helper()
	es, err := os.ReadDir(v.objects)
	must(t, err)
	return len(es)
}

func TestEpochs(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	if _, err := v.NewEpoch(Epoch{ID: 1}); !errors.Is(err, ErrExists) {
		t.Fatalf("a second epoch 1: %v", err)
	}
	_, err := v.OpenEpochSecret(1)
	refused(t, err, ErrState)
	must(t, v.ActivateEpoch(1))
	must(t, v.ActivateEpoch(1))
	r, err := v.OpenEpochSecret(1)
	if got := content(t, r, err); got != string(canary) {
		t.Fatalf("got %q", got)
	}
	r, err = v.OpenEpochPublic(1)
	if got := content(t, r, err); got != "public" {
		t.Fatalf("got %q", got)
	}
	refused(t, v.ActivateEpoch(2), ErrNotFound)
	w, err := v.NewEpoch(Epoch{ID: 2})
	must(t, err)
	w.Abort()
	if es, err := v.Epochs(); err != nil || len(es) != 1 || objects(t, v) != 2 {
		t.Fatalf("%v, %v, %d objects", es, err, objects(t, v))
	}
}

func TestBatchGoesToOneClient(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "job.1", macKey("mac-1"))
	_, _, _, err := v.Deliver("job.1", "alice")
	refused(t, err, ErrState)
	_, err = v.OpenMACKey("mac-1")
	refused(t, err, ErrState)
	_, err = v.FindMACKey(1, "p128", "demo")
	refused(t, err, ErrNotFound)
	must(t, v.ActivateBatch("job.1"))
	must(t, v.ActivateBatch("job.1"))
	if k, err := v.FindMACKey(1, "p128", "demo"); err != nil || k.ID != "mac-1" {
		t.Fatalf("%v, %v", k, err)
	}
	for i := range 2 {
		b, r, first, err := v.Deliver("job.1", "alice")
		if got := content(t, r, err); got != string(canary) || first != (i == 0) || b.ShareBytes != uint64(len(canary)) {
			t.Fatalf("delivery %d: %q, %v", i, got, first)
		}
		_, _, _, err = v.Deliver("job.1", "bob")
		refused(t, err, ErrDelivered)
		must(t, v.ActivateBatch("job.1")) // must not make it available again
	}
	must(t, v.RevokeBatch("job.1", "over"))
	must(t, v.RevokeBatch("job.1", "again"))
	_, _, _, err = v.Deliver("job.1", "alice")
	refused(t, err, ErrErased)
	refused(t, v.ActivateBatch("job.1"), ErrErased)
	if _, err := v.NewBatch(Batch{ID: "job.1"}); !errors.Is(err, ErrExists) {
		t.Fatalf("a tombstone's id was used again: %v", err)
	}
	if b, err := v.Batch("job.1"); err != nil || b.Reason != "over" || b.State != BatchRevoked {
		t.Fatalf("%+v, %v", b, err)
	}
	if _, err := v.OpenMACKey("mac-1"); err != nil {
		t.Fatalf("the MAC key went with its batch: %v", err)
	}
}

func TestDeliveryIsDurable(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "job.1", macKey("mac-1"))
	must(t, v.ActivateBatch("job.1"))
	_, r, _, err := v.Deliver("job.1", "alice")
	must(t, err)
	r.Close()
	must(t, v.Close())
	v = mustOpen(t, dir, k)
	defer v.Close()
	_, _, _, err = v.Deliver("job.1", "bob")
	refused(t, err, ErrDelivered)
	_, r, first, err := v.Deliver("job.1", "alice")
	if got := content(t, r, err); got != string(canary) || first {
		t.Fatalf("%q, %v", got, first)
	}
}

func TestBatchUnderWrongMACKey(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	commit := func(b Batch, fresh *NewMACKey) error {
		w, err := v.NewBatch(b)
		must(t, err)
		_, err = w.Write(canary)
		must(t, err)
		return w.Commit(fresh)
	}
	base := Batch{ID: "a", Epoch: 1, MACKey: "mac-1", Field: "p128", Tenant: "demo"}
	refused(t, commit(base, macKey("mac-1")), ErrState) // epoch locked
	must(t, v.ActivateEpoch(1))
	refused(t, commit(base, nil), ErrNotFound)
	must(t, commit(base, macKey("mac-1")))
	other := base
	other.ID = "b"
	refused(t, commit(other, nil), ErrState) // MAC key locked
	must(t, v.ActivateBatch("a"))
	must(t, commit(other, nil))
	other.ID = "c"
	refused(t, commit(other, macKey("mac-1")), ErrExists)
	other.Tenant = "else"
	refused(t, commit(other, nil), ErrState)
	if n := objects(t, v); n != 2+1+2 {
		t.Fatalf("%d objects; refused ones were left", n)
	}
	// A locked batch that is dropped takes the key that was made for it along.
	third := Batch{ID: "d", Epoch: 1, MACKey: "mac-2", Field: "p64", Tenant: "demo"}
	k := macKey("mac-2")
	k.Field = "p64"
	must(t, commit(third, k))
	must(t, v.RevokeBatch("d", "cancelled"))
	if k, err := v.MACKey("mac-2"); err != nil || k.State != MACBurnt {
		t.Fatalf("%v, %v", k, err)
	}
}

func TestBurnAndRetire(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "a", macKey("mac-1"))
	must(t, v.ActivateBatch("a"))
	addBatch(t, v, "b", nil)
	must(t, v.ActivateBatch("b"))
	must(t, v.BurnMACKey("mac-1", "check failed"))
	for _, id := range []string{"a", "b"} {
		_, _, _, err := v.Deliver(id, "alice")
		refused(t, err, ErrErased)
	}
	_, err := v.OpenMACKey("mac-1")
	refused(t, err, ErrErased)
	if n := objects(t, v); n != 2 {
		t.Fatalf("%d objects left", n)
	}
	w, err := v.NewBatch(Batch{ID: "c", Epoch: 1, MACKey: "mac-2", Field: "p128", Tenant: "demo"})
	must(t, err)
	must(t, w.Commit(macKey("mac-2")))
	must(t, v.ActivateBatch("c"))
	if n, err := v.RetireEpoch(1, "verified"); err != nil || n != 1 {
		t.Fatalf("%d, %v", n, err)
	}
	if n, err := v.RetireEpoch(1, "again"); err != nil || n != 0 {
		t.Fatalf("%d, %v", n, err)
	}
	_, err = v.OpenEpochSecret(1)
	refused(t, err, ErrErased)
	if n := objects(t, v); n != 0 {
		t.Fatalf("%d objects left", n)
	}
	if _, err := v.NewEpoch(Epoch{ID: 1}); !errors.Is(err, ErrExists) {
		t.Fatalf("a retired epoch's id was used again: %v", err)
	}
}

func TestLedger(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	addEpoch(t, v, 2, "decryption")
	k := LedgerKey{Epoch: 2, Digest: [32]byte{1}, Quorum: []int{0, 1, 2}}
	_, _, err := v.RecordDecryption(k, "alice", []byte("x"))
	refused(t, err, ErrState) // locked
	must(t, v.ActivateEpoch(1))
	must(t, v.ActivateEpoch(2))
	_, err = v.Decryption(k)
	refused(t, err, ErrNotFound)
	held, first, err := v.RecordDecryption(k, "alice", []byte("first"))
	if err != nil || !first || string(held) != "first" {
		t.Fatalf("%q, %v, %v", held, first, err)
	}
	held, first, err = v.RecordDecryption(k, "alice", []byte("second"))
	if err != nil || first || string(held) != "first" {
		t.Fatalf("%q, %v, %v", held, first, err)
	}
	_, _, err = v.RecordDecryption(k, "bob", []byte("third"))
	refused(t, err, ErrDelivered)
	wrong := k
	wrong.Epoch = 1
	_, _, err = v.RecordDecryption(wrong, "alice", []byte("x"))
	refused(t, err, ErrState) // purpose
	wrong.Epoch = 3
	_, _, err = v.RecordDecryption(wrong, "alice", []byte("x"))
	refused(t, err, ErrNotFound)
	_, err = v.RetireEpoch(2, "")
	must(t, err)
	_, _, err = v.RecordDecryption(k, "alice", nil)
	refused(t, err, ErrErased)
	if e, err := v.Decryption(k); err != nil || e.Object != "" || e.Client != "alice" {
		t.Fatalf("%+v, %v", e, err)
	}
}

// What a crash leaves, Open finishes.
func TestRecovery(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "kept", macKey("mac-1"))
	w, err := v.NewBatch(Batch{ID: "unfinished"}) // no commit: a temporary file
	must(t, err)
	_, err = w.Write(bytes.Repeat(canary, 10000))
	must(t, err)
	orphan, err := v.create(objectName("batch", "orphan")) // data, no record
	must(t, err)
	must(t, orphan.commit())
	addBatch2 := Batch{ID: "revoked", State: BatchRevoked} // record says gone, data there
	data, err := v.create(addBatch2.object())
	must(t, err)
	must(t, data.commit())
	must(t, v.store.Update(func(tx Tx) error { return put(v, tx, batchPrefix+"revoked", &addBatch2) }))
	if n := objects(t, v); n != 7 {
		t.Fatalf("%d objects before", n)
	}
	must(t, v.Close())
	v = mustOpen(t, dir, k)
	defer v.Close()
	if n := objects(t, v); n != 4 {
		t.Fatalf("%d objects after", n)
	}
	must(t, v.ActivateBatch("kept"))
}

// A vault that has lost its records is not a new one: its objects stay for whoever puts the records back.
func TestLostRecords(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "kept", macKey("mac-1"))
	before := objects(t, v)
	must(t, v.Close())
	records, saved := filepath.Join(dir, "records.db"), filepath.Join(dir, "saved")
	must(t, os.Rename(records, saved))
	_, err := Open(dir, k)
	refused(t, err, errNoRecords)
	if _, err := os.Stat(records); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an empty store was made: %v", err)
	}
	must(t, os.WriteFile(records, nil, 0o600)) // lost its content
	_, err = Open(dir, k)
	refused(t, err, errNoRecords)
	must(t, os.Rename(saved, records))
	v = mustOpen(t, dir, k)
	defer v.Close()
	if n := objects(t, v); n != before {
		t.Errorf("%d objects, before %d", n, before)
	}
	must(t, v.ActivateBatch("kept"))
}

func TestWrongKeyAndSecondProcess(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "vault"), newKey(t)
	v := mustOpen(t, dir, k)
	if _, err := Open(dir, k); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Fatalf("opened twice: %v", err)
	}
	must(t, v.Close())
	_, err := Open(dir, newKey(t))
	refused(t, err, ErrWrongKey)
}

func TestNothingInTheClear(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	addBatch(t, v, "a", macKey("mac-1"))
	addEpoch(t, v, 2, "decryption")
	must(t, v.ActivateEpoch(2))
	_, _, err := v.RecordDecryption(LedgerKey{Epoch: 2}, "alice", canary)
	must(t, err)
	must(t, filepath.WalkDir(v.dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		if bytes.Contains(b, canary[:12]) {
			t.Errorf("%s holds the canary", d.Name())
		}
		return err
	}))
}

func TestObjectSizesAndTampering(t *testing.T) {
	v := newVault(t)
	for _, n := range []int{0, 1, chunkSize - 1, chunkSize, chunkSize + 1, 3 * chunkSize} {
		data := bytes.Repeat([]byte{7}, n)
		w, err := v.create("o")
		must(t, err)
		for rest := data; len(rest) > 0; { // in uneven pieces
			k := min(len(rest), 40_000)
			_, err = w.Write(rest[:k])
			must(t, err)
			rest = rest[k:]
		}
		must(t, w.commit())
		r, err := v.open("o")
		if got := content(t, r, err); got != string(data) || w.size != uint64(n) {
			t.Fatalf("%d bytes: read %d", n, len(got))
		}
	}
	path := filepath.Join(v.objects, "o")
	good, err := os.ReadFile(path)
	must(t, err)
	sealed := chunkSize + 16
	flip := func(at int) []byte {
		b := bytes.Clone(good)
		b[at] ^= 1
		return b
	}
	for name, bad := range map[string][]byte{
		"magic":        flip(0),
		"wrapped key":  flip(wrappedStart + 30),
		"first chunk":  flip(headerBlock),
		"last chunk":   flip(len(good) - 1),
		"last removed": good[:headerBlock+2*sealed],
		"all removed":  good[:headerBlock],
		"cut short":    good[:len(good)-1],
		"appended":     append(bytes.Clone(good), 0),
		"swapped": append(append(append(bytes.Clone(good[:headerBlock]),
			good[headerBlock+sealed:headerBlock+2*sealed]...), good[headerBlock:headerBlock+sealed]...), good[headerBlock+2*sealed:]...),
		"empty": {},
	} {
		must(t, os.WriteFile(path, bad, 0o600))
		r, err := v.open("o")
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	// An object does not open under another's name.
	must(t, os.WriteFile(filepath.Join(v.objects, "p"), good, 0o600))
	_, err = v.open("p")
	refused(t, err, ErrCorrupt)
}

func TestRecordsAreBoundToTheirPlace(t *testing.T) {
	v := newVault(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.store.Update(func(tx Tx) error {
		return tx.Put(epochKey(2), bytes.Clone(tx.Get(epochKey(1))))
	}))
	_, err := v.Epoch(2)
	refused(t, err, ErrCorrupt)
}

func TestEraseOverwritesTheHeader(t *testing.T) {
	v := newVault(t)
	w, err := v.create("o")
	must(t, err)
	must(t, w.commit())
	path := filepath.Join(v.objects, "o")
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Link(path, link))
	must(t, v.erase("o"))
	b, err := os.ReadFile(link)
	must(t, err)
	if !bytes.Equal(b[:headerBlock], make([]byte, headerBlock)) {
		t.Error("the header is still there")
	}
	must(t, v.erase("o"))
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	must(t, WriteNewKey(path))
	if WriteNewKey(path) == nil {
		t.Error("a key was replaced")
	}
	k, err := LoadKey(path)
	must(t, err)
	if k.String() != "[vault key]" {
		t.Error("prints itself")
	}
	for name, c := range map[string]struct {
		text string
		mode os.FileMode
		want string
	}{
		"short":    {"00", 0o600, "64 hexadecimal"},
		"long":     {strings.Repeat("0", 66), 0o600, "64 hexadecimal"},
		"not hex":  {strings.Repeat("x", 64), 0o600, "64 hexadecimal"},
		"readable": {strings.Repeat("0", 64), 0o644, "chmod 600"},
	} {
		p := filepath.Join(dir, name)
		must(t, os.WriteFile(p, []byte(c.text), c.mode))
		if _, err := LoadKey(p); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "xxx") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A MAC key whose check was under way when the process ended is burnt with everything under it; one whose checks have
// passed is not.
func TestMACKeysExposedByACrash(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	for _, id := range []string{"1", "2"} {
		w, err := v.NewBatch(Batch{ID: "batch-" + id, Epoch: 1, MACKey: "mac-" + id, Field: "p128", Tenant: "demo"})
		must(t, err)
		must(t, w.Commit(macKey("mac-"+id)))
		refused(t, v.ExposeMACKey("mac-"+id, "s"), ErrState) // it is locked
		must(t, v.ActivateBatch("batch-"+id))
		must(t, v.ExposeMACKey("mac-"+id, "s"))
		must(t, v.ExposeMACKey("mac-"+id, "t"))
		must(t, v.SettleMACKey("mac-"+id, "s"))
	}
	must(t, v.SettleMACKey("mac-2", "t"))
	refused(t, v.ExposeMACKey("mac-3", "s"), ErrNotFound)
	must(t, v.Close())
	v = mustOpen(t, dir, k)
	defer v.Close()
	_, err := v.OpenMACKey("mac-1")
	refused(t, err, ErrErased)
	_, _, _, err = v.Deliver("batch-1", "alice")
	refused(t, err, ErrErased)
	in, err := v.OpenMACKey("mac-2")
	must(t, err)
	must(t, in.Close())
	_, in, _, err = v.Deliver("batch-2", "alice")
	must(t, err)
	must(t, in.Close())
}

// A key decrypts as many ciphertexts as it may, those of clients and of sessions together, also across a restart.
func TestDecryptionsAreCounted(t *testing.T) {
	dir, key := filepath.Join(t.TempDir(), "vault"), newKey(t)
	v := mustOpen(t, dir, key)
	addEpoch(t, v, 1, "decryption") // of three
	refused(t, v.SpendDecryptions(1, 1), ErrState)
	refused(t, v.SpendDecryptions(2, 1), ErrNotFound)
	must(t, v.ActivateEpoch(1))
	refused(t, v.SpendDecryptions(1, 4), ErrSpent)
	refused(t, v.SpendDecryptions(1, ^uint64(0)), ErrSpent)
	must(t, v.SpendDecryptions(1, 2))
	must(t, v.Close())
	v = mustOpen(t, dir, key)
	defer v.Close()
	refused(t, v.SpendDecryptions(1, 2), ErrSpent)
	k := LedgerKey{Epoch: 1, Digest: [32]byte{1}, Quorum: []int{0, 1}}
	for range 2 { // the second is no other decryption
		_, _, err := v.RecordDecryption(k, "alice", []byte("answer"))
		must(t, err)
	}
	k.Digest[0]++
	_, _, err := v.RecordDecryption(k, "alice", []byte("answer"))
	refused(t, err, ErrSpent)
	_, err = v.Decryption(k)
	refused(t, err, ErrNotFound)
}

// Answers are objects: they survive a restart, those that nobody recorded and those of a retired epoch do not.
func TestAnswersAreObjects(t *testing.T) {
	dir, key := filepath.Join(t.TempDir(), "vault"), newKey(t)
	v := mustOpen(t, dir, key)
	addEpoch(t, v, 1, "decryption")
	must(t, v.ActivateEpoch(1))
	objects := func() int {
		list, err := filepath.Glob(filepath.Join(dir, "objects", "answer-*"))
		must(t, err)
		return len(list)
	}
	k := LedgerKey{Epoch: 1, Digest: [32]byte{1}, Quorum: []int{0, 1}}
	for range 3 {
		_, _, err := v.RecordDecryption(k, "alice", bytes.Repeat([]byte("answer"), 50_000))
		must(t, err)
	}
	if objects() != 1 {
		t.Errorf("%d objects for one answer", objects())
	}
	must(t, v.Close())
	v = mustOpen(t, dir, key)
	defer v.Close()
	held, first, err := v.RecordDecryption(k, "alice", []byte("another"))
	if err != nil || first || len(held) != 300_000 || objects() != 1 {
		t.Errorf("%d bytes, %v, %v; %d objects", len(held), first, err, objects())
	}
	_, err = v.RetireEpoch(1, "")
	must(t, err)
	if objects() != 0 {
		t.Errorf("%d answers outlive their epoch", objects())
	}
}
