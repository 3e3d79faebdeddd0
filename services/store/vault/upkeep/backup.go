package upkeep

import (
	"bufio"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/keys"
	"github.com/lodge-mpc/lodge/services/store/vault/ledger"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/stock"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A backup is a stream of frames after a head. The head is the magic, the header record of the
// vault, and the stream's own key sealed under the vault's. A frame is the length and the CRC-32C
// of the following chunk, four bytes each in little endian, and the chunk, which is encrypted under
// the stream's key like a chunk of an object, and bound to the head. The chunks hold a series of
// entries: a kind, the length of a name in two bytes, the name, and the content in pieces. Each
// piece follows its length in four bytes, and a piece of length zero ends the content.
//
// There are no shares of tuples and masks in it, no MAC keys and no epochs that make tuples: the
// records of batches say that they are revoked, those of MAC keys that they are burnt, and those of
// epochs that they are retired, because nobody could say how many ciphertexts were decrypted under
// them since. A backup has no approvals either, because they may be used up since.

const (
	BackupMagic = "lodge backup v1\n"
	BackupPlace = "backup"
	HeadLen     = len(BackupMagic) + seal.SaltLen + 2*(24+seal.KeyLen+16)
	FrameHead   = 8

	EntryInfo   = 'i' // facts about the backup that a restore may print
	EntryRecord = 'r'
	EntryBlob   = 'b'
	EntryEnd    = 'e'
)

var Castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BackupInfo describes a backup.
type BackupInfo struct {
	Store      string    `json:"store"` // id
	Generation uint64    `json:"generation"`
	Taken      time.Time `json:"taken"`
}

// Backup writes everything but the shares of tuples and masks, of MAC keys and of epochs that make
// tuples. Only the operator's key at the time of the backup opens it. An epoch that is retired
// meanwhile makes it fail; then take it again.
func (v *Upkeep) Backup(w io.Writer) (BackupInfo, error) {
	buffered := bufio.NewWriterSize(w, 1<<20)
	b := &Backup{V: v, Out: buffered, Buf: make([]byte, 0, seal.ChunkSize+seal.GCMOverhead)}
	var info BackupInfo
	var blobs []string
	err := v.Backend.View(func(tx store.Tx) (err error) {
		info, blobs, err = b.records(tx)
		return err
	})
	if err != nil {
		return info, err
	}
	for _, name := range blobs {
		if err := b.blob(name); err != nil {
			return info, fmt.Errorf("%w: blob %s", err, name)
		}
	}
	b.Entry(EntryEnd, "", nil)
	b.Flush(true)
	if b.Err != nil {
		return info, b.Err
	}
	return info, buffered.Flush()
}

type Backup struct {
	V     *Upkeep
	Out   io.Writer
	head  []byte
	aead  cipher.AEAD
	Buf   []byte
	index uint64
	Err   error
}

// records writes the beginning of the backup, and returns the names of the blobs that follow.
func (b *Backup) records(tx store.Tx) (info BackupInfo, blobs []string, err error) {
	c, _, err := b.V.named(tx)
	if err != nil {
		return info, nil, err
	}
	id, err := seal.Get[seal.Identity](b.V.Store, tx, seal.IdentityKey)
	if err != nil {
		return info, nil, err
	}
	info = BackupInfo{hex.EncodeToString(id.ID), id.Generation, b.V.Clock().UTC()}
	if err := b.Begin(tx); err != nil {
		return info, nil, err
	}
	text, err := json.Marshal(info)
	if err != nil {
		return info, nil, fmt.Errorf("vault: %w", err)
	}
	b.Entry(EntryInfo, "", text)
	err = tx.Scan("", func(key string, sealed []byte) error {
		//lodge:check vault/backup/identity [tests=./services/store/vault] [drop=key ==
		//  seal.IdentityKey] [run=TestRestore$|TestBackupHasNo] a restored store has the identity
		//  of the lost one
		//lodge:check vault/masks/backup [tests=./services/store/vault] [drop=strings.HasPrefix(key,
		//  stock.MaskPrefix)] [run=TestBackupOfMasks] a backup includes the index of masks
		if key == seal.HeaderKey || key == seal.IdentityKey || strings.HasPrefix(key, stock.MaskPrefix) ||
			//lodge:check vault/approval/backup [tests=./services/store/vault]
			//  [run=TestApprovalsAndBackups] [redundant=a restore begins in quarantine, which drops
			//  the approvals] a backup includes approvals
			strings.HasPrefix(key, ledger.ApprovalPrefix) {
			return nil
		}
		sealed, err := b.tombstone(c, key, sealed)
		if err == nil {
			b.Entry(EntryRecord, key, sealed)
			err = b.Err
		}
		return err
	})
	return info, c.kept(), err
}

// kept returns the names of the blobs that the backup contains: those of epochs and multi-key keys
// that are not retired, of answers, and of evidence. It must be called after the tombstones are
// set.
func (c *contents) kept() (names []string) {
	for _, e := range c.epochs {
		if e.State != keys.EpochRetired {
			names = append(names, e.SecretObject(), e.PublicObject())
		}
	}
	for _, k := range c.multikeys {
		if k.State != keys.MultikeyRetired {
			names = append(names, k.SecretObject(), k.PublicObject())
		}
	}
	for _, e := range c.ledger {
		if e.Object != "" {
			names = append(names, e.Object)
		}
	}
	for _, a := range c.accusations {
		//lodge:check vault/accusation/backup [tests=./services/store/vault] [run=TestRestoreKeeps]
		//  accusations are lost in a restore
		names = append(names, a.Object)
	}
	slices.Sort(names)
	return names
}

// tombstone is the record that takes a record's place in a backup.
func (b *Backup) tombstone(c *contents, key string, sealed []byte) ([]byte, error) {
	const why = "restored from a backup, which has no shares"
	var record any
	//lodge:check vault/backup/batches [tests=./services/store/vault]
	//  [run=TestBackupHasNoShares|TestRestore$] a backup restores tuples that may have been used
	if x := c.batches[strings.TrimPrefix(key, stock.BatchPrefix)]; x != nil && strings.HasPrefix(key, stock.BatchPrefix) && x.Revoke(why) {
		record = x
	}
	if k := c.keys[strings.TrimPrefix(key, keys.MACPrefix)]; k != nil && strings.HasPrefix(key, keys.MACPrefix) && k.State != keys.MACBurnt {
		//lodge:check vault/backup/mac-keys [tests=./services/store/vault]
		//  [run=TestBackupHasNoShares|TestRestore$] a backup restores MAC keys that may be burnt
		k.State, k.Reason = keys.MACBurnt, why
		record = k
	}
	if strings.HasPrefix(key, keys.EpochPrefix) {
		for _, e := range c.epochs {
			if keys.EpochKey(e.ID) == key && !e.Decrypts() && e.State != keys.EpochRetired {
				//lodge:check vault/backup/epochs [tests=./services/store/vault]
				//  [run=TestBackupHasNoShares|TestRestore$] a backup holds keys that make tuples
				e.State, e.Reason = keys.EpochRetired, why
				record = e
			}
		}
	}
	if record == nil {
		return sealed, nil
	}
	text, err := json.Marshal(record)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return b.V.SealAt(key, text), nil
}

// Begin writes the head.
func (b *Backup) Begin(tx store.Tx) error {
	header, err := tx.Get(seal.HeaderKey)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	key := make([]byte, seal.KeyLen)
	defer clear(key)
	//lodge:check vault/backup/key [tests=./services/store/vault]
	//  [run=TestBackupHasNoShares|TestBackupsHave] two backups share an encryption key
	rand.Read(key)
	if b.aead, err = seal.ChunkCipher(key); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	b.head = append(append([]byte(BackupMagic), header...), b.V.SealAt(BackupPlace, key)...)
	if len(b.head) != HeadLen {
		return vaulterr.ErrCorrupt
	}
	_, err = b.Out.Write(b.head)
	return err
}

func (b *Backup) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && b.Err == nil {
		if len(b.Buf) == seal.ChunkSize { // full, and not the last
			b.Flush(false)
		}
		k := min(len(p), seal.ChunkSize-len(b.Buf))
		b.Buf = append(b.Buf, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, b.Err
}

// Flush writes a frame.
func (b *Backup) Flush(last bool) {
	if b.Err != nil {
		return
	}
	sealed := b.aead.Seal(b.Buf[:0], seal.ChunkNonce(b.index, last), b.Buf, b.head)
	var head [FrameHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(sealed)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(sealed, Castagnoli))
	if _, b.Err = b.Out.Write(head[:]); b.Err == nil {
		_, b.Err = b.Out.Write(sealed)
	}
	b.Buf, b.index = b.Buf[:0], b.index+1
}

// Name begins an entry.
func (b *Backup) Name(kind byte, name string) {
	head := binary.LittleEndian.AppendUint16([]byte{kind}, uint16(len(name)))
	b.Write(append(head, name...))
}

// Piece adds to the content of an entry; an empty one ends it.
func (b *Backup) Piece(p []byte) {
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(p))))
	b.Write(p)
}

func (b *Backup) Entry(kind byte, name string, content []byte) {
	b.Name(kind, name)
	if len(content) > 0 {
		b.Piece(content)
	}
	b.Piece(nil)
}

// blob copies a blob as it is sealed, when all of it authenticates.
func (b *Backup) blob(name string) error {
	in, err := b.V.OpenObject(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	//lodge:check vault/backup/authentic [tests=./services/store/vault] [run=TestBackupOfDamage] a
	//  backup includes damaged data
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	raw, err := b.V.OpenBlob(name)
	if err != nil {
		return err
	}
	defer raw.Close()
	size, err := raw.Size()
	if err != nil {
		return seal.ReadError(err)
	}
	b.Name(EntryBlob, name)
	p := make([]byte, seal.ChunkSize)
	for at := int64(0); at < size; at += int64(len(p)) {
		p = p[:min(int64(len(p)), size-at)]
		if err := seal.ReadFull(raw, p, at); err != nil {
			return err
		}
		b.Piece(p)
	}
	b.Piece(nil)
	return b.Err
}
