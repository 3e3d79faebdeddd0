package vault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// furnished is a vault with something of everything.
func furnished(t testing.TB) (*disk, *seal.Key, *Vault) {
	t.Helper()
	d, k := newDisk(), &seal.Key{}
	v := d.open(t, k)
	stocked(t, v, 1000, 10, 5)
	addBatch(t, v, "locked", 7, nil)
	for id, purpose := range map[uint64]string{2: "decryption", 3: "decryption", 4: "triples"} {
		addEpoch(t, v, id, purpose)
		if id < 4 {
			must(t, v.ActivateEpoch(id))
		}
	}
	_, _, err := v.RecordDecryption(ledger.LedgerKey{Epoch: 2, Digest: [32]byte{1}}, "alice", bytes.Repeat(canary, 10_000))
	must(t, err)
	_, _, err = v.RecordDecryption(ledger.LedgerKey{Epoch: 3}, "alice", canary)
	must(t, err)
	_, err = v.RetireEpoch(3, "test")
	must(t, err)
	reserve(t, v, "delivered", in(0, 0, 100))
	_, err = fetch(v, "delivered", "alice")
	must(t, err)
	reserve(t, v, "reserved", in(0, 100, 100))
	reserve(t, v, "withdrawn", in(0, 200, 100))
	_, err = v.Withdraw("withdrawn")
	must(t, err)
	for id, x := range map[string]stock.Range{"discarded": in(0, 300, 100), "whole": in(1, 0, 10)} {
		reserve(t, v, id, x)
		_, err = v.Release(id, true)
		must(t, err)
	}
	must(t, v.RevokeBatch("batch-2", "test"))
	peer := version(t, inMemory(t))
	_, err = v.Acknowledge(1, peer)
	must(t, err)
	must(t, v.RememberAudit("of an entry"))
	must(t, spend(v, alicesProducts, 0x1p-40, 0x1p-30))
	return d, k, v
}

func backupOf(t testing.TB, v *Vault) []byte {
	t.Helper()
	var b bytes.Buffer
	_, err := v.Backup(&b)
	must(t, err)
	return b.Bytes()
}

// noFindings: the vault is sound.
func noFindings(t testing.TB, v *Vault) upkeep.Checked {
	t.Helper()
	done, err := v.Check(true, func(int, int) {}, func(f upkeep.Finding) { t.Errorf("%+v", f) })
	must(t, err)
	return done
}

// A restored store is in quarantine with a new identity, and has no tuples and no MAC keys, but all
// data that can be kept.
func TestRestore(t *testing.T) {
	_, k, v := furnished(t)
	before := version(t, v)
	stream := backupOf(t, v)
	for _, keep := range []bool{false, true} {
		d := newDisk()
		out, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{KeepDecryption: keep})
		must(t, err)
		if out.Generation != before.Generation || out.Blobs != 3 || out.Records < 15 {
			t.Errorf("%+v", out)
		}
		r := d.open(t, k)
		noFindings(t, r)
		now := version(t, r)
		if now.Same(before) {
			t.Error("the same store")
		}
		if why, err := r.Quarantined(); err != nil || !strings.Contains(why, "restored from a backup") || !strings.Contains(why, out.Store) {
			t.Errorf("%q, %v", why, err)
		}
		if behind, err := r.Succeeds(1, before); err != nil || behind {
			t.Errorf("the old store's version is later: %v, %v", behind, err)
		}
		must(t, r.LeaveQuarantine())
		checkRestored(t, r, keep)
		must(t, r.Sweep())
		c := setClock(r)
		c.Time = time.Now().Add(100 * 24 * time.Hour)
		for range 3 {
			must(t, r.Sweep())
		}
		noFindings(t, r)
	}
}

func checkRestored(t *testing.T, r *Vault, keep bool) {
	t.Helper()
	for _, id := range []string{"delivered", "reserved", "withdrawn", "discarded", "whole"} {
		if x, err := r.Reservation(id); err != nil || x.Count() == 0 {
			t.Errorf("reservation %s: %v", id, err)
		}
		if _, err := fetch(r, id, "alice"); err == nil {
			t.Errorf("reservation %s is delivered again", id)
		}
	}
	for id, count := range map[string]uint64{"batch-0": 1000, "batch-1": 10, "batch-2": 5, "locked": 7} {
		b, err := r.Batch(id)
		if err != nil || b.State != stock.BatchRevoked && b.State != stock.BatchConsumed || b.Count != count {
			t.Errorf("%s is %s, %v", id, b.State, err)
		}
		_, err = r.Reserve(reservation(r, "new", stock.Range{Batch: id, Span: stock.Span{First: 0, Count: 1}}))
		refused(t, err, vaulterr.ErrErased)
		if err := r.ActivateBatch(id); b.State == stock.BatchRevoked {
			refused(t, err, vaulterr.ErrErased)
		}
	}
	_, err := r.OpenMACKey("mac-1")
	refused(t, err, vaulterr.ErrErased)
	for _, id := range []uint64{1, 4} { // how much was decrypted under them since is not known
		_, err = r.OpenEpochSecret(id)
		refused(t, err, vaulterr.ErrErased)
	}
	e, err := r.Epoch(2)
	must(t, err)
	answer := ledger.LedgerKey{Epoch: 2, Digest: [32]byte{1}}
	held, first, err := r.RecordDecryption(answer, "alice", []byte("another"))
	if !keep {
		refused(t, err, vaulterr.ErrErased)
		if e.State != keys.EpochRetired || objects(t, r) != 0 {
			t.Errorf("%+v, %d objects", e, objects(t, r))
		}
		return
	}
	if err != nil || first || !bytes.Equal(held, bytes.Repeat(canary, 10_000)) {
		t.Errorf("%d bytes, %v, %v", len(held), first, err)
	}
	if e.Decrypted != 1 || e.Limit != 2 { // of three one was used, and half of two is left
		t.Errorf("%+v", e)
	}
	if e.State != keys.EpochDraining { // it was active then, and may have been replaced or destroyed since
		t.Errorf("it is %s", e.State)
	}
	_, _, err = r.RecordDecryption(answer, "bob", nil)
	refused(t, err, vaulterr.ErrDelivered)
}

// frameStarts are the places of the frames in a backup.
func frameStarts(stream []byte) (at []int) {
	for i := upkeep.HeadLen; i < len(stream); i += upkeep.FrameHead + int(binary.LittleEndian.Uint32(stream[i:])) {
		at = append(at, i)
	}
	return at
}

// A backup that is not as it was written is refused, and the store stays empty.
func TestDamagedBackup(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	other := backupOf(t, v)
	at := frameStarts(stream)
	if len(at) < 4 {
		t.Fatalf("%d frames", len(at))
	}
	flip := func(i int) []byte {
		b := bytes.Clone(stream)
		b[i] ^= 1
		return b
	}
	summed := func(i int) []byte { // an edit of a frame, with its checksum made right
		b := flip(at[i] + upkeep.FrameHead + 3)
		n := int(binary.LittleEndian.Uint32(b[at[i]:]))
		binary.LittleEndian.PutUint32(b[at[i]+4:], crc32.Checksum(b[at[i]+upkeep.FrameHead:][:n], upkeep.Castagnoli))
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	cases := map[string][]byte{
		"empty":           nil,
		"text":            []byte(strings.Repeat("hello world ", 100)),
		"other version":   append([]byte("lodge backup v2\n"), stream[len(upkeep.BackupMagic):]...),
		"stream key":      flip(upkeep.HeadLen - 1),
		"first summed":    summed(0),
		"second summed":   summed(1),
		"last summed":     summed(len(at) - 1),
		"swapped":         join(stream[:at[0]], stream[at[1]:at[2]], stream[at[0]:at[1]], stream[at[2]:]),
		"one left out":    join(stream[:at[1]], stream[at[2]:]),
		"one twice":       join(stream[:at[1]], stream[at[0]:at[1]], stream[at[1]:]),
		"one of another":  join(stream[:at[1]], other[at[1]:]),
		"head of another": join(other[:at[0]], stream[at[0]:]),
		"appended":        join(stream, []byte{0}),
		"twice":           join(stream, stream),
		"header":          flip(len(upkeep.BackupMagic) + 3),
	}
	for i := range at {
		cases["cut at a frame"] = stream[:at[i]]
		cases["cut within a frame"] = stream[:at[i]+20]
	}
	for i := 0; i < len(stream); i += 1 + len(stream)/97 {
		cases["flip "+string(rune('a'+i%26))+string(rune('a'+i/26%26))] = flip(i)
	}
	for name, bad := range cases {
		d := newDisk()
		_, err := Restore(&memory{disk: d}, bytes.NewReader(bad), k, upkeep.RestoreOptions{})
		if !errors.Is(err, vaulterr.ErrBackup) && !errors.Is(err, vaulterr.ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.records) != 0 || len(d.blobs) != 0 {
			t.Errorf("%s: %d records and %d blobs are left", name, len(d.records), len(d.blobs))
		}
		if _, err := Restore(nil, bytes.NewReader(bad), k, upkeep.RestoreOptions{Check: true}); err == nil {
			t.Errorf("%s passes a check", name)
		}
	}
	_, err := Restore(&memory{disk: newDisk()}, bytes.NewReader(stream), newKey(t), upkeep.RestoreOptions{})
	refused(t, err, vaulterr.ErrWrongKey)
	_, err = Restore(nil, bytes.NewReader(stream), k, upkeep.RestoreOptions{Check: true})
	must(t, err)
}

// A backup is restored with the operator's key of its time.
func TestBackupAndRotation(t *testing.T) {
	_, old, v := furnished(t)
	first := backupOf(t, v)
	fresh := newKey(t)
	must(t, v.RotateKey(old, fresh))
	second := backupOf(t, v)
	for _, c := range []struct {
		stream []byte
		key    *seal.Key
		err    error
	}{{first, old, nil}, {first, fresh, vaulterr.ErrWrongKey}, {second, fresh, nil}, {second, old, vaulterr.ErrWrongKey}} {
		_, err := Restore(&memory{disk: newDisk()}, bytes.NewReader(c.stream), c.key, upkeep.RestoreOptions{})
		refused(t, err, c.err)
	}
}

func TestRestoreIntoSomething(t *testing.T) {
	d, k, v := furnished(t)
	stream := backupOf(t, v)
	records, blobs := len(d.records), len(d.blobs)
	_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
	refused(t, err, vaulterr.ErrExists)
	if len(d.records) != records || len(d.blobs) != blobs {
		t.Error("it was changed")
	}
	noFindings(t, v)
	lone := newDisk()
	lone.blobs["x"] = nil
	_, err = Restore(&memory{disk: lone}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
	refused(t, err, vaulterr.ErrExists)
	bare := newDisk()
	must(t, bare.open(t, k).Close()) // a vault without blobs
	_, err = Restore(&memory{disk: bare}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
	refused(t, err, vaulterr.ErrExists)
}

// A restore that a crash interrupts, at any write, leaves no vault, and the next restore begins
// again.
func TestRestoreAfterACrash(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	d := newDisk()
	_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
	must(t, err)
	for at := range d.writes {
		for _, f := range []fault{fails, before, after, doubtful, unwritten} {
			d := newDisk()
			d.fault = func(n int, _ string) fault {
				if n == at {
					return f
				}
				return works
			}
			_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
			d.fault = nil
			if f == fails || f == doubtful || f == unwritten {
				if err == nil || len(d.records) > 0 || len(d.blobs) > 0 {
					t.Fatalf("write %d: %v, %d records, %d blobs", at, err, len(d.records), len(d.blobs))
				}
			}
			if _, err := Examine(&memory{disk: d}, k); err != nil {
				if _, err := OpenIn(&memory{disk: d.copyOf()}, k); err == nil && len(d.records) > 0 {
					t.Fatalf("write %d: an unfinished restore opens", at)
				}
				_, err = Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
				must(t, err)
			}
			r := d.open(t, k)
			must(t, r.LeaveQuarantine())
			noFindings(t, r)
			checkRestored(t, r, false)
		}
	}
}

// Excluded data is not in a backup, not even encrypted.
func TestBackupHasNoShares(t *testing.T) {
	d, k, v := furnished(t)
	stream := backupOf(t, v)
	plain := opensTo(t, stream, k)
	mac, err := v.MACKey("mac-1")
	must(t, err)
	b, err := v.Batch("batch-0")
	must(t, err)
	e, err := v.Epoch(1)
	must(t, err)
	for _, name := range []string{mac.Object(), b.KeyBlob(), b.DataBlob(), e.SecretObject(), e.PublicObject()} {
		blob := d.blobs[name]
		if len(blob) == 0 {
			t.Fatalf("no blob %s", name)
		}
		if bytes.Contains(plain, []byte(name)) || bytes.Contains(plain, blob[len(seal.ObjectMagic):len(seal.ObjectMagic)+40]) {
			t.Errorf("blob %s is in the backup", name)
		}
	}
	if !bytes.Contains(plain, []byte(seal.ObjectMagic)) {
		t.Error("no object is in the backup")
	}
}

// opensTo returns the content of the frames.
func opensTo(t *testing.T, stream []byte, k *seal.Key) []byte {
	t.Helper()
	v := compose(nil, time.Now)
	root, err := seal.OpenHeader(stream[len(upkeep.BackupMagic):][:seal.SaltLen+seal.SealedLen(seal.KeyLen)], k)
	must(t, err)
	must(t, v.UnlockWith(root))
	key, err := v.UnsealAt(upkeep.BackupPlace, stream[upkeep.HeadLen-seal.SealedLen(seal.KeyLen):upkeep.HeadLen])
	must(t, err)
	f := &upkeep.Frames{In: bytes.NewReader(stream[upkeep.HeadLen:]), Head: stream[:upkeep.HeadLen]}
	f.AEAD, err = seal.ChunkCipher(key)
	must(t, err)
	all, err := io.ReadAll(f)
	if !errors.Is(err, vaulterr.ErrBackup) || !strings.Contains(err.Error(), "ends within") {
		t.Fatal(err)
	}
	return all
}

// A backup fails if a blob does not authenticate, or is erased meanwhile.
func TestBackupOfDamage(t *testing.T) {
	d, _, v := furnished(t)
	e, err := v.Epoch(2)
	must(t, err)
	good := d.blobs[e.SecretObject()]
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	d.blobs[e.SecretObject()] = bad
	_, err = v.Backup(io.Discard)
	refused(t, err, vaulterr.ErrCorrupt)
	delete(d.blobs, e.SecretObject())
	_, err = v.Backup(io.Discard)
	refused(t, err, vaulterr.ErrErased)
	d.blobs[e.SecretObject()] = good
	_, err = v.Backup(io.Discard)
	must(t, err)
	_, err = v.Backup(fullDisk{})
	refused(t, err, errFull)
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

// A stream from anywhere is taken as it was written, or refused.
func FuzzRestore(f *testing.F) {
	_, k, v := furnished(f)
	stream := backupOf(f, v)
	f.Add(0, []byte(nil), len(stream))
	f.Add(upkeep.HeadLen+4, []byte{1}, len(stream))
	f.Add(upkeep.HeadLen, []byte{0, 0, 0, 0}, len(stream))
	f.Add(5, []byte{1, 2, 3}, upkeep.HeadLen)
	f.Fuzz(func(t *testing.T, at int, change []byte, keep int) {
		if keep < 0 || keep > len(stream) || at < 0 || at > keep {
			return
		}
		b := append(bytes.Clone(stream[:at]), change...)
		if at+len(change) < keep {
			b = append(b, stream[at+len(change):keep]...)
		}
		_, err := Restore(nil, bytes.NewReader(b), k, upkeep.RestoreOptions{Check: true})
		if same := bytes.Equal(b, stream); same != (err == nil) {
			t.Errorf("%v", err)
		}
	})
}

// Each backup has a separate key: the same beginning is encrypted differently.
func TestBackupsHaveKeysOfTheirOwn(t *testing.T) {
	_, _, v := furnished(t)
	now := v.Now()
	v.Clock = func() time.Time { return now } // a backup begins with its time
	a, b := backupOf(t, v), backupOf(t, v)
	const from = upkeep.HeadLen + upkeep.FrameHead
	if bytes.Equal(a[from:from+16], b[from:from+16]) {
		t.Error("two backups begin alike")
	}
}

// The remembered head of the audit log is restored, unless the log is lost with the store.
func TestRestoreForgetsTheAuditLog(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	for _, lost := range []bool{false, true} {
		d := newDisk()
		_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{NewAuditLog: lost})
		must(t, err)
		if (d.records[upkeep.AuditKey] == nil) != lost {
			t.Errorf("the log is lost: %v; the store remembers it: %v", lost, d.records[upkeep.AuditKey] != nil)
		}
	}
}
