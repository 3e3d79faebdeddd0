package vault

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
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// A backup is a stream of frames after a head. The head is the magic, the header record of the vault, and the stream's
// own key sealed under the vault's. A frame is the length and the CRC-32C of what follows, four bytes each in little
// endian, and a chunk under the stream's key, sealed like an object's and bound to the head. What the chunks hold is a
// series of entries: a kind, the length of a name in two bytes, the name, and a content in pieces, each after its
// length in four bytes, up to one of no length.
//
// There are no shares of tuples and masks in it, no MAC keys and no epochs that make tuples: the records of batches say that they
// are revoked, those of MAC keys that they are burnt, and those of epochs that they are retired, because nobody could say
// how many ciphertexts were decrypted under them since. Nor are there approvals, which may be used up since.

const (
	backupMagic = "lodge backup v1\n"
	backupPlace = "backup"
	headLen     = len(backupMagic) + saltLen + 2*(24+keyLen+16)
	frameHead   = 8

	entryInfo   = 'i' // what a restore may say about the backup
	entryRecord = 'r'
	entryBlob   = 'b'
	entryEnd    = 'e'
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// BackupInfo is what a backup says about itself.
type BackupInfo struct {
	Store      string    `json:"store"` // id
	Generation uint64    `json:"generation"`
	Taken      time.Time `json:"taken"`
}

// Backup writes everything but the shares of tuples and masks, of MAC keys and of epochs that make tuples. It can be read with the
// operator's key of now alone. An epoch that is retired meanwhile makes it fail; then take it again.
func (v *Vault) Backup(w io.Writer) (BackupInfo, error) {
	buffered := bufio.NewWriterSize(w, 1<<20)
	b := &backup{v: v, out: buffered, buf: make([]byte, 0, chunkSize+gcmOverhead)}
	var info BackupInfo
	var blobs []string
	err := v.store.View(func(tx store.Tx) (err error) {
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
	b.entry(entryEnd, "", nil)
	b.flush(true)
	if b.err != nil {
		return info, b.err
	}
	return info, buffered.Flush()
}

type backup struct {
	v     *Vault
	out   io.Writer
	head  []byte
	aead  cipher.AEAD
	buf   []byte
	index uint64
	err   error
}

// records writes the beginning, and names the blobs that are to come.
func (b *backup) records(tx store.Tx) (info BackupInfo, blobs []string, err error) {
	c, _, err := b.v.named(tx)
	if err != nil {
		return info, nil, err
	}
	id, err := get[identity](b.v, tx, identityKey)
	if err != nil {
		return info, nil, err
	}
	info = BackupInfo{hex.EncodeToString(id.ID), id.Generation, b.v.now().UTC()}
	if err := b.begin(tx); err != nil {
		return info, nil, err
	}
	text, err := json.Marshal(info)
	if err != nil {
		return info, nil, fmt.Errorf("vault: %w", err)
	}
	b.entry(entryInfo, "", text)
	err = tx.Scan("", func(key string, sealed []byte) error {
		//lodge:check vault/backup/identity [drop=key == identityKey]
		//  [run=TestRestore$|TestBackupHasNo] a restored store has the identity of the lost one
		//lodge:check vault/masks/backup [drop=strings.HasPrefix(key, maskPrefix)]
		//  [run=TestBackupOfMasks] a backup includes the index of masks
		if key == headerKey || key == identityKey || strings.HasPrefix(key, maskPrefix) ||
			//lodge:check vault/approval/backup [run=TestApprovalsAndBackups] [redundant=a restore
			//  begins in quarantine, which drops the approvals] a backup includes approvals
			strings.HasPrefix(key, approvalPrefix) {
			return nil
		}
		sealed, err := b.tombstone(c, key, sealed)
		if err == nil {
			b.entry(entryRecord, key, sealed)
			err = b.err
		}
		return err
	})
	return info, c.kept(), err
}

// kept are the blobs of a backup, once others have their tombstones: of epochs for decryption, of
// the party's own keys, of answers, and evidence.
func (c *contents) kept() (names []string) {
	for _, e := range c.epochs {
		if e.State != EpochRetired {
			names = append(names, e.secretObject(), e.publicObject())
		}
	}
	for _, k := range c.multikeys {
		if k.State != MultikeyRetired {
			names = append(names, k.secretObject(), k.publicObject())
		}
	}
	for _, e := range c.ledger {
		if e.Object != "" {
			names = append(names, e.Object)
		}
	}
	for _, a := range c.accusations {
		//lodge:check vault/accusation/backup [run=TestRestoreKeeps] accusations are lost in a
		//  restore
		names = append(names, a.object())
	}
	slices.Sort(names)
	return names
}

// tombstone is the record that takes a record's place in a backup.
func (b *backup) tombstone(c *contents, key string, sealed []byte) ([]byte, error) {
	const why = "restored from a backup, which has no shares"
	var record any
	//lodge:check vault/backup/batches [run=TestBackupHasNoShares|TestRestore$] a backup restores
	//  tuples that may have been used
	if x := c.batches[strings.TrimPrefix(key, batchPrefix)]; x != nil && strings.HasPrefix(key, batchPrefix) && x.revoke(why) {
		record = x
	}
	if k := c.keys[strings.TrimPrefix(key, macPrefix)]; k != nil && strings.HasPrefix(key, macPrefix) && k.State != MACBurnt {
		//lodge:check vault/backup/mac-keys [run=TestBackupHasNoShares|TestRestore$] a backup
		//  restores MAC keys that may be burnt
		k.State, k.Reason = MACBurnt, why
		record = k
	}
	if strings.HasPrefix(key, epochPrefix) {
		for _, e := range c.epochs {
			if epochKey(e.ID) == key && !e.decrypts() && e.State != EpochRetired {
				//lodge:check vault/backup/epochs [run=TestBackupHasNoShares|TestRestore$] a backup
				//  holds keys that make tuples
				e.State, e.Reason = EpochRetired, why
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
	return b.v.seal(key, text), nil
}

// begin writes the head.
func (b *backup) begin(tx store.Tx) error {
	header, err := tx.Get(headerKey)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	key := make([]byte, keyLen)
	defer clear(key)
	//lodge:check vault/backup/key [run=TestBackupHasNoShares|TestBackupsHave] two backups share an
	//  encryption key
	rand.Read(key)
	if b.aead, err = chunkCipher(key); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	b.head = append(append([]byte(backupMagic), header...), b.v.seal(backupPlace, key)...)
	if len(b.head) != headLen {
		return vaulterr.ErrCorrupt
	}
	_, err = b.out.Write(b.head)
	return err
}

func (b *backup) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && b.err == nil {
		if len(b.buf) == chunkSize { // full, and not the last
			b.flush(false)
		}
		k := min(len(p), chunkSize-len(b.buf))
		b.buf = append(b.buf, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, b.err
}

// flush writes a frame.
func (b *backup) flush(last bool) {
	if b.err != nil {
		return
	}
	sealed := b.aead.Seal(b.buf[:0], chunkNonce(b.index, last), b.buf, b.head)
	var head [frameHead]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(sealed)))
	binary.LittleEndian.PutUint32(head[4:], crc32.Checksum(sealed, castagnoli))
	if _, b.err = b.out.Write(head[:]); b.err == nil {
		_, b.err = b.out.Write(sealed)
	}
	b.buf, b.index = b.buf[:0], b.index+1
}

// name begins an entry.
func (b *backup) name(kind byte, name string) {
	head := binary.LittleEndian.AppendUint16([]byte{kind}, uint16(len(name)))
	b.Write(append(head, name...))
}

// piece adds to the content of an entry; an empty one ends it.
func (b *backup) piece(p []byte) {
	b.Write(binary.LittleEndian.AppendUint32(nil, uint32(len(p))))
	b.Write(p)
}

func (b *backup) entry(kind byte, name string, content []byte) {
	b.name(kind, name)
	if len(content) > 0 {
		b.piece(content)
	}
	b.piece(nil)
}

// blob copies a blob as it is sealed, when all of it authenticates.
func (b *backup) blob(name string) error {
	in, err := b.v.open(name)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, in)
	//lodge:check vault/backup/authentic [run=TestBackupOfDamage] a backup includes damaged data
	if err = errors.Join(err, in.Close()); err != nil {
		return err
	}
	raw, err := b.v.openBlob(name)
	if err != nil {
		return err
	}
	defer raw.Close()
	size, err := raw.Size()
	if err != nil {
		return readError(err)
	}
	b.name(entryBlob, name)
	p := make([]byte, chunkSize)
	for at := int64(0); at < size; at += int64(len(p)) {
		p = p[:min(int64(len(p)), size-at)]
		if err := readFull(raw, p, at); err != nil {
			return err
		}
		b.piece(p)
	}
	b.piece(nil)
	return b.err
}
