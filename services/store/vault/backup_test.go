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
)

// furnished is a vault with something of everything.
func furnished(t testing.TB) (*disk, *Key, *Vault) {
	t.Helper()
	d, k := newDisk(), &Key{}
	v := d.open(t, k)
	stocked(t, v, 1000, 10, 5)
	addBatch(t, v, "locked", 7, nil)
	for id, purpose := range map[uint64]string{2: "decryption", 3: "decryption", 4: "triples"} {
		addEpoch(t, v, id, purpose)
		if id < 4 {
			must(t, v.ActivateEpoch(id))
		}
	}
	_, _, err := v.RecordDecryption(LedgerKey{Epoch: 2, Digest: [32]byte{1}}, "alice", bytes.Repeat(canary, 10_000))
	must(t, err)
	_, _, err = v.RecordDecryption(LedgerKey{Epoch: 3}, "alice", canary)
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
	for id, x := range map[string]Range{"discarded": in(0, 300, 100), "whole": in(1, 0, 10)} {
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
func noFindings(t testing.TB, v *Vault) Checked {
	t.Helper()
	done, err := v.Check(true, func(int, int) {}, func(f Finding) { t.Errorf("%+v", f) })
	must(t, err)
	return done
}

// A restored store is in quarantine under a name of its own, has no tuples and no MAC keys, and what can be kept.
func TestRestore(t *testing.T) {
	_, k, v := furnished(t)
	before := version(t, v)
	stream := backupOf(t, v)
	for _, keep := range []bool{false, true} {
		d := newDisk()
		out, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{KeepDecryption: keep})
		must(t, err)
		if out.Generation != before.Generation || out.Blobs != 3 || out.Records < 15 {
			t.Errorf("%+v", out)
		}
		r := d.open(t, k)
		noFindings(t, r)
		now := version(t, r)
		if now.same(before) {
			t.Error("the same store")
		}
		if why, err := r.Quarantined(); err != nil || !strings.Contains(why, "restored from a backup") || !strings.Contains(why, out.Store) {
			t.Errorf("%q, %v", why, err)
		}
		if behind, err := r.Succeeds(1, before); err != nil || behind {
			t.Errorf("what the old store said is later: %v, %v", behind, err)
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
		if err != nil || b.State != BatchRevoked && b.State != BatchConsumed || b.Count != count {
			t.Errorf("%s is %s, %v", id, b.State, err)
		}
		_, err = r.Reserve(reservation(r, "new", Range{id, Span{First: 0, Count: 1}}))
		refused(t, err, ErrErased)
		if err := r.ActivateBatch(id); b.State == BatchRevoked {
			refused(t, err, ErrErased)
		}
	}
	_, err := r.OpenMACKey("mac-1")
	refused(t, err, ErrErased)
	for _, id := range []uint64{1, 4} { // how much was decrypted under them since is not known
		_, err = r.OpenEpochSecret(id)
		refused(t, err, ErrErased)
	}
	e, err := r.Epoch(2)
	must(t, err)
	answer := LedgerKey{Epoch: 2, Digest: [32]byte{1}}
	held, first, err := r.RecordDecryption(answer, "alice", []byte("another"))
	if !keep {
		refused(t, err, ErrErased)
		if e.State != EpochRetired || objects(t, r) != 0 {
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
	if e.State != EpochDraining { // it was active then, and may have been replaced or destroyed since
		t.Errorf("it is %s", e.State)
	}
	_, _, err = r.RecordDecryption(answer, "bob", nil)
	refused(t, err, ErrDelivered)
}

// frameStarts are the places of the frames in a backup.
func frameStarts(stream []byte) (at []int) {
	for i := headLen; i < len(stream); i += frameHead + int(binary.LittleEndian.Uint32(stream[i:])) {
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
		b := flip(at[i] + frameHead + 3)
		n := int(binary.LittleEndian.Uint32(b[at[i]:]))
		binary.LittleEndian.PutUint32(b[at[i]+4:], crc32.Checksum(b[at[i]+frameHead:][:n], castagnoli))
		return b
	}
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	cases := map[string][]byte{
		"empty":           nil,
		"text":            []byte(strings.Repeat("hello world ", 100)),
		"other version":   append([]byte("lodge backup v2\n"), stream[len(backupMagic):]...),
		"stream key":      flip(headLen - 1),
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
		"header":          flip(len(backupMagic) + 3),
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
		_, err := Restore(&memory{disk: d}, bytes.NewReader(bad), k, RestoreOptions{})
		if !errors.Is(err, ErrBackup) && !errors.Is(err, ErrWrongKey) {
			t.Errorf("%s: %v", name, err)
		}
		if len(d.records) != 0 || len(d.blobs) != 0 {
			t.Errorf("%s: %d records and %d blobs are left", name, len(d.records), len(d.blobs))
		}
		if _, err := Restore(nil, bytes.NewReader(bad), k, RestoreOptions{Check: true}); err == nil {
			t.Errorf("%s passes a check", name)
		}
	}
	_, err := Restore(&memory{disk: newDisk()}, bytes.NewReader(stream), newKey(t), RestoreOptions{})
	refused(t, err, ErrWrongKey)
	_, err = Restore(nil, bytes.NewReader(stream), k, RestoreOptions{Check: true})
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
		key    *Key
		err    error
	}{{first, old, nil}, {first, fresh, ErrWrongKey}, {second, fresh, nil}, {second, old, ErrWrongKey}} {
		_, err := Restore(&memory{disk: newDisk()}, bytes.NewReader(c.stream), c.key, RestoreOptions{})
		refused(t, err, c.err)
	}
}

func TestRestoreIntoSomething(t *testing.T) {
	d, k, v := furnished(t)
	stream := backupOf(t, v)
	records, blobs := len(d.records), len(d.blobs)
	_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{})
	refused(t, err, ErrExists)
	if len(d.records) != records || len(d.blobs) != blobs {
		t.Error("it was changed")
	}
	noFindings(t, v)
	lone := newDisk()
	lone.blobs["x"] = nil
	_, err = Restore(&memory{disk: lone}, bytes.NewReader(stream), k, RestoreOptions{})
	refused(t, err, ErrExists)
	bare := newDisk()
	must(t, bare.open(t, k).Close()) // a vault without blobs
	_, err = Restore(&memory{disk: bare}, bytes.NewReader(stream), k, RestoreOptions{})
	refused(t, err, ErrExists)
}

// A restore that a crash ends, wherever, is no vault, and the next one begins again.
func TestRestoreAfterACrash(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	d := newDisk()
	_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{})
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
			_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{})
			d.fault = nil
			if f == fails || f == doubtful || f == unwritten {
				if err == nil || len(d.records) > 0 || len(d.blobs) > 0 {
					t.Fatalf("write %d: %v, %d records, %d blobs", at, err, len(d.records), len(d.blobs))
				}
			}
			if _, err := Examine(&memory{disk: d}, k); err != nil {
				if _, err := OpenIn(&memory{disk: d.copyOf()}, k); err == nil && len(d.records) > 0 {
					t.Fatalf("write %d: what is unfinished opens", at)
				}
				_, err = Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{})
				must(t, err)
			}
			r := d.open(t, k)
			must(t, r.LeaveQuarantine())
			noFindings(t, r)
			checkRestored(t, r, false)
		}
	}
}

// Nothing of what a backup leaves out is in it, not even sealed.
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
	for _, name := range []string{mac.object(), b.keyBlob(), b.dataBlob(), e.secretObject(), e.publicObject()} {
		blob := d.blobs[name]
		if len(blob) == 0 {
			t.Fatalf("no blob %s", name)
		}
		if bytes.Contains(plain, []byte(name)) || bytes.Contains(plain, blob[len(objectMagic):len(objectMagic)+40]) {
			t.Errorf("blob %s is in the backup", name)
		}
	}
	if !bytes.Contains(plain, []byte(objectMagic)) {
		t.Error("no object is in the backup")
	}
}

// opensTo is what the frames hold.
func opensTo(t *testing.T, stream []byte, k *Key) []byte {
	t.Helper()
	v := &Vault{}
	root, err := openHeader(stream[len(backupMagic):][:saltLen+sealedLen(keyLen)], k)
	must(t, err)
	must(t, v.unlockWith(root))
	key, err := v.unseal(backupPlace, stream[headLen-sealedLen(keyLen):headLen])
	must(t, err)
	f := &frames{in: bytes.NewReader(stream[headLen:]), head: stream[:headLen]}
	f.aead, err = chunkCipher(key)
	must(t, err)
	all, err := io.ReadAll(f)
	if !errors.Is(err, ErrBackup) || !strings.Contains(err.Error(), "ends within") {
		t.Fatal(err)
	}
	return all
}

// A blob that does not authenticate, or went meanwhile, is no backup.
func TestBackupOfDamage(t *testing.T) {
	d, _, v := furnished(t)
	e, err := v.Epoch(2)
	must(t, err)
	good := d.blobs[e.secretObject()]
	bad := bytes.Clone(good)
	bad[len(bad)-1] ^= 1
	d.blobs[e.secretObject()] = bad
	_, err = v.Backup(io.Discard)
	refused(t, err, ErrCorrupt)
	delete(d.blobs, e.secretObject())
	_, err = v.Backup(io.Discard)
	refused(t, err, ErrErased)
	d.blobs[e.secretObject()] = good
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
	f.Add(headLen+4, []byte{1}, len(stream))
	f.Add(headLen, []byte{0, 0, 0, 0}, len(stream))
	f.Add(5, []byte{1, 2, 3}, headLen)
	f.Fuzz(func(t *testing.T, at int, change []byte, keep int) {
		if keep < 0 || keep > len(stream) || at < 0 || at > keep {
			return
		}
		b := append(bytes.Clone(stream[:at]), change...)
		if at+len(change) < keep {
			b = append(b, stream[at+len(change):keep]...)
		}
		_, err := Restore(nil, bytes.NewReader(b), k, RestoreOptions{Check: true})
		if same := bytes.Equal(b, stream); same != (err == nil) {
			t.Errorf("%v", err)
		}
	})
}

// Each backup has a key of its own: the same beginning is encrypted otherwise.
func TestBackupsHaveKeysOfTheirOwn(t *testing.T) {
	_, _, v := furnished(t)
	now := v.now()
	v.now = func() time.Time { return now } // a backup begins with its time
	a, b := backupOf(t, v), backupOf(t, v)
	const from = headLen + frameHead
	if bytes.Equal(a[from:from+16], b[from:from+16]) {
		t.Error("two backups begin alike")
	}
}

// What the store remembers of the audit log comes back, unless the log is lost with it.
func TestRestoreForgetsTheAuditLog(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	for _, lost := range []bool{false, true} {
		d := newDisk()
		_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{NewAuditLog: lost})
		must(t, err)
		if (d.records[auditKey] == nil) != lost {
			t.Errorf("the log is lost: %v; the store remembers it: %v", lost, d.records[auditKey] != nil)
		}
	}
}
