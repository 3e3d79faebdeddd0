package vault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// crafted is a stream under a vault's key, as a program makes one that does not do as this does.
func crafted(t *testing.T, v *Vault, write func(b *backup, tx store.Tx)) []byte {
	t.Helper()
	var out bytes.Buffer
	b := &backup{v: v, out: &out, buf: make([]byte, 0, chunkSize+gcmOverhead)}
	must(t, v.store.View(func(tx store.Tx) error {
		must(t, b.begin(tx))
		b.entry(entryInfo, "", []byte("{}"))
		write(b, tx)
		return nil
	}))
	b.flush(true)
	must(t, b.err)
	return out.Bytes()
}

// Streams that authenticate and are not what a backup is are refused, and the store stays empty.
func TestCraftedBackup(t *testing.T) {
	_, k, v := furnished(t)
	record := func(b *backup, tx store.Tx, key string) {
		sealed, err := tx.Get(key)
		must(t, err)
		b.entry(entryRecord, key, sealed)
	}
	secret, public := (&Epoch{ID: 2}).secretObject(), (&Epoch{ID: 2}).publicObject()
	blob := func(b *backup, name string) { b.entry(entryBlob, name, []byte("sealed")) }
	epoch := func(b *backup, tx store.Tx) {
		record(b, tx, epochKey(2))
		blob(b, secret)
		blob(b, public)
	}
	end := func(b *backup) { b.entry(entryEnd, "", nil) }
	check := func(stream []byte) error {
		_, err := Restore(nil, bytes.NewReader(stream), k, RestoreOptions{Check: true})
		return err
	}
	must(t, check(crafted(t, v, func(b *backup, tx store.Tx) { epoch(b, tx); end(b) })))
	for what, write := range map[string]func(b *backup, tx store.Tx){
		"a kind that there is not": func(b *backup, tx store.Tx) { b.entry('x', "", []byte("x")); end(b) },
		"a record in pieces": func(b *backup, tx store.Tx) {
			b.name(entryRecord, auditKey)
			sealed, _ := tx.Get(auditKey)
			b.piece([]byte("a"))
			b.piece(sealed)
			b.piece(nil)
			end(b)
		},
		"a record at another's place": func(b *backup, tx store.Tx) {
			sealed, _ := tx.Get(epochKey(1))
			b.entry(entryRecord, epochKey(3), sealed)
			end(b)
		},
		"the identity":                func(b *backup, tx store.Tx) { record(b, tx, identityKey); end(b) },
		"the header":                  func(b *backup, tx store.Tx) { record(b, tx, headerKey); end(b) },
		"tuples":                      func(b *backup, tx store.Tx) { record(b, tx, batchPrefix+"batch-0"); end(b) },
		"a MAC key":                   func(b *backup, tx store.Tx) { record(b, tx, macPrefix+"mac-1"); end(b) },
		"a blob of nobody's":          func(b *backup, tx store.Tx) { epoch(b, tx); blob(b, "x"); end(b) },
		"a blob twice":                func(b *backup, tx store.Tx) { epoch(b, tx); blob(b, secret); end(b) },
		"a blob that is missing":      func(b *backup, tx store.Tx) { record(b, tx, epochKey(2)); blob(b, secret); end(b) },
		"an end that holds something": func(b *backup, tx store.Tx) { epoch(b, tx); b.entry(entryEnd, "", []byte("x")) },
		"something after the end":     func(b *backup, tx store.Tx) { epoch(b, tx); end(b); end(b) },
		"no end":                      func(b *backup, tx store.Tx) { epoch(b, tx) },
		"a piece that is too large": func(b *backup, tx store.Tx) {
			b.name(entryRecord, auditKey)
			b.piece(make([]byte, store.MaxValue+1))
			b.piece(nil)
			end(b)
		},
		"a piece of a blob that is too large": func(b *backup, tx store.Tx) {
			record(b, tx, epochKey(2))
			b.name(entryBlob, secret)
			b.piece(make([]byte, store.MaxValue+1))
			b.piece(nil)
			blob(b, public)
			end(b)
		},
	} {
		stream := crafted(t, v, write)
		refused(t, check(stream), vaulterr.ErrBackup)
		d := newDisk()
		_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, RestoreOptions{})
		if !errors.Is(err, vaulterr.ErrBackup) || len(d.records)+len(d.blobs) > 0 {
			t.Errorf("%s: %v, and %d records and %d blobs are left", what, err, len(d.records), len(d.blobs))
		}
	}
}

// A stream without its last frame is refused, also where that frame holds nothing.
func TestBackupWithoutItsLastFrame(t *testing.T) {
	_, k, v := furnished(t)
	n := 0
	stream := crafted(t, v, func(b *backup, _ store.Tx) {
		b.entry(entryEnd, "", nil)
		b.flush(false)
		n = b.out.(*bytes.Buffer).Len()
	})
	_, err := Restore(nil, bytes.NewReader(stream[:n]), k, RestoreOptions{Check: true})
	refused(t, err, vaulterr.ErrBackup)
}

// A frame is read into no more memory than one has, whatever its length says.
func TestFramesAreBounded(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	b := append(bytes.Clone(stream[:headLen]), make([]byte, frameHead+chunkSize+gcmOverhead+1)...)
	binary.LittleEndian.PutUint32(b[headLen:], chunkSize+gcmOverhead+1)
	_, err := Restore(nil, bytes.NewReader(b), k, RestoreOptions{Check: true})
	if refused(t, err, vaulterr.ErrBackup); !strings.Contains(err.Error(), "of 65") && !strings.Contains(err.Error(), "bytes") {
		t.Error(err)
	}
}
