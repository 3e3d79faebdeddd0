package vault

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

var canary = []byte("CANARY-SECRET-SHARE-0123456789")

func newKey(t testing.TB) *seal.Key {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	must(t, seal.WriteNewKey(path))
	k, err := seal.LoadKey(path)
	must(t, err)
	return k
}

func mustOpen(t testing.TB, dir string, k *seal.Key) *Vault {
	t.Helper()
	v, err := Open(dir, k)
	must(t, err)
	return v
}

// newVaultIn is a vault in the embedded store; it also gives the directory of its blobs.
func newVaultIn(t testing.TB) (v *Vault, objects string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "vault")
	v = mustOpen(t, dir, newKey(t))
	t.Cleanup(func() { v.Close() })
	return v, filepath.Join(dir, "objects")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got %v, want %v", err, want)
	}
}

// clock is a vault's time, which a test sets.
type clock struct{ time.Time }

func setClock(v *Vault) *clock {
	c := &clock{time.Date(2030, 1, 2, 3, 4, 5, 6, time.UTC)}
	v.Clock = func() time.Time { return c.Time }
	return c
}

func (c *clock) pass(d time.Duration) { c.Time = c.Add(d) }

func addEpoch(t testing.TB, v *Vault, id uint64, purpose string) {
	t.Helper()
	w, err := v.NewEpoch(keys.Epoch{ID: id, Purpose: purpose, Limit: 3})
	must(t, err)
	_, err = w.Secret.Write(canary)
	must(t, err)
	_, err = w.Public.Write([]byte("public"))
	must(t, err)
	must(t, w.Commit())
	w.Abort() // does nothing
}

const tupleLen = 96

// batchOf describes a batch of scalar tuples under mac-1.
func batchOf(id string, count uint64) stock.Batch {
	return stock.Batch{ID: id, Epoch: 1, MACKey: "mac-1", Params: "params", Field: "p128", Kind: "scalar", Dim: 1, Count: count,
		Tenant: "demo", Digest: sha256.Sum256([]byte(id)), TupleBytes: tupleLen}
}

func macKey(id string) *keys.NewMACKey {
	return &keys.NewMACKey{MACKey: keys.MACKey{ID: id, Epoch: 1, Field: "p128", Tenant: "demo"}, Secret: append([]byte("alpha "), canary...)}
}

// share of one tuple of a batch.
func share(batch string, tuple uint64, size int) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", batch, tuple))
	return bytes.Repeat(sum[:], size/len(sum)+1)[:size]
}

func shares(batch string, s stock.Span, size int) []byte {
	var out []byte
	for i := s.First; i < s.End(); i++ {
		out = append(out, share(batch, i, size)...)
	}
	return out
}

// storeBatch stores a batch, locked.
func storeBatch(v *Vault, b stock.Batch, fresh *keys.NewMACKey) error {
	w, err := v.NewBatch(b)
	if err != nil {
		return err
	}
	defer w.Abort()
	if _, err := w.Write(shares(b.ID, stock.Span{First: 0, Count: b.Count}, int(b.TupleBytes))); err != nil {
		return err
	}
	return w.Commit(fresh)
}

func addBatch(t testing.TB, v *Vault, id string, count uint64, fresh *keys.NewMACKey) {
	t.Helper()
	must(t, storeBatch(v, batchOf(id, count), fresh))
}

// stocked returns a vault with epoch 1 and available batches of the given sizes: "batch-0",
// "batch-1" and so on.
func stocked(t testing.TB, v *Vault, counts ...uint64) {
	t.Helper()
	addEpoch(t, v, 1, "triples")
	must(t, v.ActivateEpoch(1))
	fresh := macKey("mac-1")
	for i, count := range counts {
		id := fmt.Sprintf("batch-%d", i)
		addBatch(t, v, id, count, fresh)
		must(t, v.ActivateBatch(id))
		fresh = nil
	}
}

func in(batch, first, count uint64) stock.Range {
	return stock.Range{Batch: fmt.Sprintf("batch-%d", batch), Span: stock.Span{First: first, Count: count}}
}

// reservation of ranges for an hour.
func reservation(v *Vault, id string, ranges ...stock.Range) stock.Reservation {
	b := batchOf("", 0)
	return stock.Reservation{ID: id, Class: b.Class(), Epoch: 1, MACKey: "mac-1", Ranges: ranges, Owner: "owner",
		Lease: v.Clock().Add(time.Hour)}
}

func reserve(t testing.TB, v *Vault, id string, ranges ...stock.Range) stock.Reservation {
	t.Helper()
	r, err := v.Reserve(reservation(v, id, ranges...))
	must(t, err)
	return r
}

// fetch returns the tuples that a client receives.
func fetch(v *Vault, id, client string) ([]byte, error) {
	r, _, err := v.Deliver(id, client, 0)
	if err != nil {
		return nil, err
	}
	return readAll(v, &r, 0)
}

func readAll(v *Vault, r *stock.Reservation, from uint64) ([]byte, error) {
	in, _, err := v.Shares(r, from)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	return io.ReadAll(in)
}

// expected shares of ranges.
func expected(ranges []stock.Range) (out []byte) {
	for _, x := range ranges {
		out = append(out, shares(x.Batch, x.Span, tupleLen)...)
	}
	return out
}

func wantShares(t testing.TB, got []byte, err error, ranges ...stock.Range) {
	t.Helper()
	must(t, err)
	if !bytes.Equal(got, expected(ranges)) {
		t.Fatalf("%d bytes of shares, which are not those of %v", len(got), ranges)
	}
}

func content(t testing.TB, r io.ReadCloser, err error) string {
	t.Helper()
	must(t, err)
	defer r.Close()
	b, err := io.ReadAll(r)
	must(t, err)
	return string(b)
}

func objects(t testing.TB, v *Vault) int {
	t.Helper()
	blobs, err := v.Backend.Blobs()
	must(t, err)
	return len(blobs)
}

// Open finishes work that a crash interrupted.
func TestRecovery(t *testing.T) {
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v)
	addBatch(t, v, "kept", 3, macKey("mac-1"))
	w, err := v.NewBatch(batchOf("unfinished", 3)) // no commit
	must(t, err)
	_, err = w.Write(bytes.Repeat(canary, 10000))
	must(t, err)
	orphan, err := v.CreateObject(seal.ObjectName("batch", "orphan")) // data, no record
	must(t, err)
	must(t, orphan.Commit())
	revoked := stock.Batch{ID: "revoked", State: stock.BatchRevoked} // record says gone, data there
	data, err := v.CreateObject(revoked.DataBlob())
	must(t, err)
	must(t, data.Commit())
	must(t, v.Backend.Update(func(tx store.Tx) error { return seal.Put(v.Store, tx, stock.BatchPrefix+"revoked", &revoked) }))
	if n := objects(t, v); n != 7 {
		t.Fatalf("%d objects before", n)
	}
	v = d.open(t, k)
	if n := objects(t, v); n != 5 {
		t.Fatalf("%d objects after", n)
	}
	must(t, v.ActivateBatch("kept"))
}

// A vault that has lost its header is not a new one: its objects stay for whoever puts the records
// back.
func TestLostHeader(t *testing.T) {
	dir, k := t.TempDir(), newKey(t)
	v := mustOpen(t, dir, k)
	stocked(t, v, 3)
	before := objects(t, v)
	var header []byte
	must(t, v.Backend.Update(func(tx store.Tx) error {
		b, err := tx.Get(seal.HeaderKey)
		header = bytes.Clone(b)
		return errors.Join(err, tx.Delete(seal.HeaderKey))
	}))
	must(t, v.Close())
	_, err := Open(dir, k)
	if err == nil || !strings.Contains(err.Error(), "no header") {
		t.Fatalf("got %v", err)
	}
	s, err := store.OpenDir(dir)
	must(t, err)
	must(t, s.Update(func(tx store.Tx) error { return tx.Put(seal.HeaderKey, header) }))
	v, err = OpenIn(s, k)
	must(t, err)
	defer v.Close()
	if n := objects(t, v); n != before {
		t.Errorf("%d objects, before %d", n, before)
	}
}

func TestWrongKeyAndSecondProcess(t *testing.T) {
	dir, k := filepath.Join(t.TempDir(), "vault"), newKey(t)
	v := mustOpen(t, dir, k)
	_, err := Open(dir, k)
	refused(t, err, store.ErrInUse)
	must(t, v.Close())
	_, err = Open(dir, newKey(t))
	refused(t, err, vaulterr.ErrWrongKey)
	mustOpen(t, dir, k).Close()
}

func TestRotateKey(t *testing.T) {
	dir, old, fresh := filepath.Join(t.TempDir(), "vault"), newKey(t), newKey(t)
	v := mustOpen(t, dir, old)
	stocked(t, v, 3)
	refused(t, v.RotateKey(fresh, old), vaulterr.ErrWrongKey)
	must(t, v.RotateKey(old, fresh))
	reserve(t, v, "r", in(0, 0, 3)) // the open vault goes on
	must(t, v.Close())
	_, err := Open(dir, old)
	refused(t, err, vaulterr.ErrWrongKey)
	v = mustOpen(t, dir, fresh)
	defer v.Close()
	got, err := fetch(v, "r", "alice")
	wantShares(t, got, err, in(0, 0, 3))
	r, err := v.OpenMACKey("mac-1")
	if !strings.HasSuffix(content(t, r, err), string(canary)) {
		t.Error("the MAC key changed")
	}
}

func TestNothingInTheClear(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "vault")
	v := mustOpen(t, dir, newKey(t))
	defer v.Close()
	stocked(t, v, 1000)
	reserve(t, v, "canary-reservation", in(0, 0, 10))
	addEpoch(t, v, 2, "decryption")
	must(t, v.ActivateEpoch(2))
	_, _, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 2}, "alice", canary)
	must(t, err)
	_, err = v.Release("canary-reservation", true)
	must(t, err)
	must(t, filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(p)
		for _, secret := range [][]byte{canary[:12], share("batch-0", 5, 32), share("batch-0", 500, 32)} {
			if bytes.Contains(b, secret) {
				t.Errorf("%s holds a secret", d.Name())
			}
		}
		return err
	}))
}

func TestRecordsAreBoundToTheirPlace(t *testing.T) {
	v := inMemory(t)
	addEpoch(t, v, 1, "triples")
	must(t, v.Backend.Update(func(tx store.Tx) error {
		b, err := tx.Get(keys.EpochKey(1))
		return errors.Join(err, tx.Put(keys.EpochKey(2), b))
	}))
	_, err := v.Epoch(2)
	refused(t, err, vaulterr.ErrCorrupt)
}

func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "key")
	must(t, seal.WriteNewKey(path))
	if seal.WriteNewKey(path) == nil {
		t.Error("a key was replaced")
	}
	k, err := seal.LoadKey(path)
	must(t, err)
	if k.String() != "[vault key]" || fmt.Sprintf("%#v", k) != "[vault key]" {
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
		if _, err := seal.LoadKey(p); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "xxx") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
