package vault

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/upkeep"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// crafted is a stream under a vault's key, as a different program could make it.
func crafted(t *testing.T, v *Vault, write func(b *upkeep.Backup, tx store.Tx)) []byte {
	t.Helper()
	var out bytes.Buffer
	b := &upkeep.Backup{V: v.Upkeep, Out: &out, Buf: make([]byte, 0, seal.ChunkSize+seal.GCMOverhead)}
	must(t, v.Backend.View(func(tx store.Tx) error {
		must(t, b.Begin(tx))
		b.Entry(upkeep.EntryInfo, "", []byte("{}"))
		write(b, tx)
		return nil
	}))
	b.Flush(true)
	must(t, b.Err)
	return out.Bytes()
}

// Streams that authenticate but are not valid backups are rejected, and the store stays empty.
func TestCraftedBackup(t *testing.T) {
	_, k, v := furnished(t)
	record := func(b *upkeep.Backup, tx store.Tx, key string) {
		sealed, err := tx.Get(key)
		must(t, err)
		b.Entry(upkeep.EntryRecord, key, sealed)
	}
	secret, public := (&keys.Epoch{ID: 2}).SecretObject(), (&keys.Epoch{ID: 2}).PublicObject()
	blob := func(b *upkeep.Backup, name string) { b.Entry(upkeep.EntryBlob, name, []byte("sealed")) }
	epoch := func(b *upkeep.Backup, tx store.Tx) {
		record(b, tx, keys.EpochKey(2))
		blob(b, secret)
		blob(b, public)
	}
	end := func(b *upkeep.Backup) { b.Entry(upkeep.EntryEnd, "", nil) }
	check := func(stream []byte) error {
		_, err := Restore(nil, bytes.NewReader(stream), k, upkeep.RestoreOptions{Check: true})
		return err
	}
	must(t, check(crafted(t, v, func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx); end(b) })))
	for what, write := range map[string]func(b *upkeep.Backup, tx store.Tx){
		"a kind that there is not": func(b *upkeep.Backup, tx store.Tx) { b.Entry('x', "", []byte("x")); end(b) },
		"a record in pieces": func(b *upkeep.Backup, tx store.Tx) {
			b.Name(upkeep.EntryRecord, upkeep.AuditKey)
			sealed, _ := tx.Get(upkeep.AuditKey)
			b.Piece([]byte("a"))
			b.Piece(sealed)
			b.Piece(nil)
			end(b)
		},
		"a record at another's place": func(b *upkeep.Backup, tx store.Tx) {
			sealed, _ := tx.Get(keys.EpochKey(1))
			b.Entry(upkeep.EntryRecord, keys.EpochKey(3), sealed)
			end(b)
		},
		"the identity":                func(b *upkeep.Backup, tx store.Tx) { record(b, tx, seal.IdentityKey); end(b) },
		"the header":                  func(b *upkeep.Backup, tx store.Tx) { record(b, tx, seal.HeaderKey); end(b) },
		"tuples":                      func(b *upkeep.Backup, tx store.Tx) { record(b, tx, stock.BatchPrefix+"batch-0"); end(b) },
		"a MAC key":                   func(b *upkeep.Backup, tx store.Tx) { record(b, tx, keys.MACPrefix+"mac-1"); end(b) },
		"a blob of nobody's":          func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx); blob(b, "x"); end(b) },
		"a blob twice":                func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx); blob(b, secret); end(b) },
		"a blob that is missing":      func(b *upkeep.Backup, tx store.Tx) { record(b, tx, keys.EpochKey(2)); blob(b, secret); end(b) },
		"an end that holds something": func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx); b.Entry(upkeep.EntryEnd, "", []byte("x")) },
		"something after the end":     func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx); end(b); end(b) },
		"no end":                      func(b *upkeep.Backup, tx store.Tx) { epoch(b, tx) },
		"a piece that is too large": func(b *upkeep.Backup, tx store.Tx) {
			b.Name(upkeep.EntryRecord, upkeep.AuditKey)
			b.Piece(make([]byte, store.MaxValue+1))
			b.Piece(nil)
			end(b)
		},
		"a piece of a blob that is too large": func(b *upkeep.Backup, tx store.Tx) {
			record(b, tx, keys.EpochKey(2))
			b.Name(upkeep.EntryBlob, secret)
			b.Piece(make([]byte, store.MaxValue+1))
			b.Piece(nil)
			blob(b, public)
			end(b)
		},
	} {
		stream := crafted(t, v, write)
		refused(t, check(stream), vaulterr.ErrBackup)
		d := newDisk()
		_, err := Restore(&memory{disk: d}, bytes.NewReader(stream), k, upkeep.RestoreOptions{})
		if !errors.Is(err, vaulterr.ErrBackup) || len(d.records)+len(d.blobs) > 0 {
			t.Errorf("%s: %v, and %d records and %d blobs are left", what, err, len(d.records), len(d.blobs))
		}
	}
}

// A stream without its last frame is rejected, also if that frame is empty.
func TestBackupWithoutItsLastFrame(t *testing.T) {
	_, k, v := furnished(t)
	n := 0
	stream := crafted(t, v, func(b *upkeep.Backup, _ store.Tx) {
		b.Entry(upkeep.EntryEnd, "", nil)
		b.Flush(false)
		n = b.Out.(*bytes.Buffer).Len()
	})
	_, err := Restore(nil, bytes.NewReader(stream[:n]), k, upkeep.RestoreOptions{Check: true})
	refused(t, err, vaulterr.ErrBackup)
}

// A frame is read into no more memory than one has, whatever its length says.
func TestFramesAreBounded(t *testing.T) {
	_, k, v := furnished(t)
	stream := backupOf(t, v)
	b := append(bytes.Clone(stream[:upkeep.HeadLen]), make([]byte, upkeep.FrameHead+seal.ChunkSize+seal.GCMOverhead+1)...)
	binary.LittleEndian.PutUint32(b[upkeep.HeadLen:], seal.ChunkSize+seal.GCMOverhead+1)
	_, err := Restore(nil, bytes.NewReader(b), k, upkeep.RestoreOptions{Check: true})
	if refused(t, err, vaulterr.ErrBackup); !strings.Contains(err.Error(), "of 65") && !strings.Contains(err.Error(), "bytes") {
		t.Error(err)
	}
}
