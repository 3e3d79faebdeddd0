package upkeep

import (
	"bufio"
	"bytes"
	"crypto/cipher"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"time"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// RestoreOptions of a restore.
type RestoreOptions struct {
	// KeepDecryption keeps the epochs for decryption, with half of the decryptions that the backup
	// had left to them, none of those with flooding under threshold keys, and the answers that it
	// knows. Answers that were given after the backup are not known: the same ciphertext would get
	// another answer with fresh noise. Two answers to one ciphertext reveal more about the key than
	// the bound on decryptions allows for. Use it only if no client will request one of those
	// ciphertexts again, or if the clients have lost their earlier answers.
	KeepDecryption bool
	// NewAuditLog is for a party that has also lost its audit log: the restored store names no
	// entry that a new log would have to continue.
	NewAuditLog bool
	// Check reads the backup to its end, and touches no store.
	Check bool
}

// Restored counts the restored data.
type Restored struct {
	BackupInfo
	Records int   `json:"records"`
	Blobs   int   `json:"blobs"`
	Bytes   int64 `json:"bytes"` // of the blobs
}

const restoreSome = 4 << 20 // bytes of records in a transaction

// Restore restores a backup into the vault's store, which must be empty. With opt.Check it only
// reads the backup.
func (v *Upkeep) Restore(in io.Reader, key *seal.Key, opt RestoreOptions) (Restored, error) {
	r := &restorer{v: v, opt: opt, wanted: map[string]bool{}, dropped: map[string]bool{}}
	if !opt.Check {
		err := r.claim()
		if errors.Is(err, store.ErrUncertain) { // it was empty
			err = errors.Join(err, r.v.empty())
		}
		if err != nil {
			return r.out, err
		}
	}
	err := r.read(bufio.NewReaderSize(in, 1<<20), key)
	if err == nil && !opt.Check {
		err = r.finish()
	}
	//lodge:check vault/restore/empties [tests=./services/store/vault] [run=TestDamagedBackup] a
	//  failed restore leaves data behind
	if err != nil && !opt.Check {
		err = errors.Join(err, r.v.empty())
	}
	return r.out, err
}

// restorer is a restore under way.
type restorer struct {
	v       *Upkeep
	opt     RestoreOptions
	out     Restored
	head    []byte
	wanted  map[string]bool   // blobs that the records name: true until they come
	dropped map[string]bool   // those that are not to be stored, because their epochs are to be retired
	pending map[string][]byte // records
	size    int
}

// claim returns an error unless the store is empty, apart from leftovers of an unfinished restore.
func (r *restorer) claim() error {
	blobs, err := r.v.Backend.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if r.v.UnfinishedRestore() {
		if err := r.v.empty(); err != nil {
			return err
		}
		blobs = nil
	}
	//lodge:check vault/restore/blobs [tests=./services/store/vault] [run=TestRestoreInto] a restore
	//  overwrites objects
	if len(blobs) > 0 {
		return fmt.Errorf("%w: the store is not empty", vaulterr.ErrExists)
	}
	return r.v.Update(func(tx store.Tx) error {
		err := tx.ScanAfter("", "", func(string, []byte) (bool, error) {
			//lodge:check vault/restore/records [tests=./services/store/vault] [swap=fmt.Errorf("%w:
			//  the store is not empty", vaulterr.ErrExists)=>nil] [run=TestRestoreInto] a restore
			//  overwrites records
			return false, fmt.Errorf("%w: the store is not empty", vaulterr.ErrExists)
		})
		if err != nil {
			return err
		}
		//lodge:check vault/restore/mark [tests=./services/store/vault]
		//  [swap=tx.Put(seal.RestoreKey, []byte{1})=>nil] [run=TestRestoreAfterACrash] an
		//  unfinished restore goes unnoticed
		return tx.Put(seal.RestoreKey, []byte{1})
	})
}

// empty erases everything, the mark of a restore last.
func (v *Upkeep) empty() error {
	blobs, err := v.Backend.Blobs()
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if err := v.EraseObjects(blobs); err != nil {
		return err
	}
	var keys []string
	err = v.Backend.View(func(tx store.Tx) error {
		keys = nil
		return tx.Scan("", func(key string, _ []byte) error {
			if key != seal.RestoreKey {
				keys = append(keys, key)
			}
			return nil
		})
	})
	for err == nil && len(keys) > 0 {
		n := min(len(keys), 1000)
		some := keys[:n]
		keys = keys[n:]
		err = v.Update(func(tx store.Tx) error { return seal.DeleteAll(tx, some) })
	}
	if err == nil {
		err = v.Update(func(tx store.Tx) error { return tx.Delete(seal.RestoreKey) })
	}
	return err
}

// Frames reads the content of the frames of a backup.
type Frames struct {
	In    io.Reader
	AEAD  cipher.AEAD
	Head  []byte
	buf   []byte
	out   []byte
	index uint64
	last  bool
}

// next opens a frame. The last is told by its nonce.
func (f *Frames) next() error {
	var head [FrameHead]byte
	if _, err := io.ReadFull(f.In, head[:]); err != nil {
		return cut(err, f.index)
	}
	n := binary.LittleEndian.Uint32(head[:])
	//lodge:check vault/restore/frame-length [tests=./services/store/vault] [drop=n >
	//  seal.ChunkSize+seal.GCMOverhead] [run=TestDamagedBackup|TestFrames] a frame of a backup
	//  takes any amount of memory
	if n < seal.GCMOverhead || n > seal.ChunkSize+seal.GCMOverhead {
		return fmt.Errorf("%w: frame %d of %d bytes", vaulterr.ErrBackup, f.index, n)
	}
	f.buf = append(f.buf[:0], make([]byte, n)...)
	if _, err := io.ReadFull(f.In, f.buf); err != nil {
		return cut(err, f.index)
	}
	//lodge:check vault/restore/checksum [tests=./services/store/vault] [run=TestDamagedBackup]
	//  [redundant=damaged data does not authenticate] damage looks like tampering
	if crc32.Checksum(f.buf, Castagnoli) != binary.LittleEndian.Uint32(head[4:]) {
		return fmt.Errorf("%w: frame %d has another checksum", vaulterr.ErrBackup, f.index)
	}
	sealed := bytes.Clone(f.buf) // Open clears its destination when it fails
	out, err := f.AEAD.Open(f.buf[:0], seal.ChunkNonce(f.index, false), sealed, f.Head)
	if err != nil {
		out, err = f.AEAD.Open(f.buf[:0], seal.ChunkNonce(f.index, true), sealed, f.Head)
		f.last = true
	}
	//lodge:check vault/restore/authentic [tests=./services/store/vault] [as=if err != nil { out =
	//  nil }] [run=TestDamagedBackup] [redundant=such a frame yields nothing, and a backup that
	//  ends there is rejected] a frame that does not authenticate is read
	if err != nil {
		return fmt.Errorf("%w: frame %d does not authenticate", vaulterr.ErrBackup, f.index)
	}
	f.out, f.index = out, f.index+1
	return nil
}

func cut(err error, frame uint64) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%w: cut short at frame %d", vaulterr.ErrBackup, frame)
	}
	return err
}

func (f *Frames) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.last {
			return 0, fmt.Errorf("%w: it ends within an entry", vaulterr.ErrBackup)
		}
		if err := f.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

// end makes sure that there is nothing more.
func (f *Frames) end() error {
	//lodge:check vault/restore/end [tests=./services/store/vault] [drop=f.last]
	//  [run=TestBackupWithout] a truncated backup is restored
	//lodge:check vault/restore/ends [tests=./services/store/vault] [drop=len(f.out) == 0]
	//  [run=TestDamagedBackup|TestCrafted] data after the end of a backup is ignored
	if len(f.out) == 0 && f.last {
		//lodge:check vault/restore/appended [tests=./services/store/vault] [swap=errors.Is(err,
		//  io.EOF)=>err == nil || err != nil] [run=TestDamagedBackup] bytes after the last frame of
		//  a backup are ignored
		if _, err := io.ReadFull(f.In, make([]byte, 1)); errors.Is(err, io.EOF) {
			return nil
		}
	}
	return fmt.Errorf("%w: it goes on after its end", vaulterr.ErrBackup)
}

// read takes a backup in, from its head to its end.
func (r *restorer) read(in io.Reader, key *seal.Key) error {
	r.head = make([]byte, HeadLen)
	if _, err := io.ReadFull(in, r.head); err != nil {
		return cut(err, 0)
	}
	//lodge:check vault/restore/magic [tests=./services/store/vault] [run=TestDamagedBackup]
	//  [redundant=every frame is bound to the Head, which begins with the magic bytes] a backup of
	//  another version is read
	if string(r.head[:len(BackupMagic)]) != BackupMagic {
		return fmt.Errorf("%w: it does not begin like one of this version", vaulterr.ErrBackup)
	}
	root, err := seal.OpenHeader(r.header(), key)
	if err != nil {
		return err
	}
	defer clear(root)
	if err := r.v.UnlockWith(root); err != nil {
		return err
	}
	stream, err := r.v.UnsealAt(BackupPlace, r.head[len(BackupMagic)+len(r.header()):])
	if err != nil {
		return fmt.Errorf("%w: its key does not authenticate", vaulterr.ErrBackup)
	}
	defer clear(stream)
	f := &Frames{In: in, Head: r.head}
	if f.AEAD, err = seal.ChunkCipher(stream); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return r.entries(f)
}

func (r *restorer) header() []byte {
	return r.head[len(BackupMagic) : len(BackupMagic)+seal.SaltLen+seal.SealedLen(seal.KeyLen)]
}

func (r *restorer) entries(f *Frames) error {
	for {
		var head [3]byte
		if _, err := io.ReadFull(f, head[:]); err != nil {
			return err
		}
		name := make([]byte, binary.LittleEndian.Uint16(head[1:]))
		if _, err := io.ReadFull(f, name); err != nil {
			return err
		}
		var err error
		switch head[0] {
		case EntryInfo:
			err = r.info(f)
		case EntryRecord:
			err = r.record(f, string(name))
		case EntryBlob:
			err = r.blob(f, string(name))
		case EntryEnd:
			//lodge:check vault/restore/end-of-nothing [tests=./services/store/vault]
			//  [swap=vaulterr.ErrBackup=>nil] [run=TestCrafted] the end entry of a backup can hold
			//  data
			if err := pieces(f, func([]byte) error { return vaulterr.ErrBackup }); err != nil {
				return err
			}
			if err := f.end(); err != nil {
				return err
			}
			for name, missing := range r.wanted {
				//lodge:check vault/restore/missing [tests=./services/store/vault] [run=TestCrafted]
				//  a backup with missing objects is restored
				if missing {
					return fmt.Errorf("%w: blob %s is missing", vaulterr.ErrBackup, name)
				}
			}
			return r.flush()
		default:
			//lodge:check vault/restore/kind [tests=./services/store/vault] [as=_, err = whole(f)]
			//  [run=TestCrafted] unknown entries of a backup are skipped
			err = fmt.Errorf("%w: an entry of kind %d", vaulterr.ErrBackup, head[0])
		}
		if err != nil {
			return err
		}
	}
}

// pieces gives f the content of an entry.
func pieces(in io.Reader, f func([]byte) error) error {
	for {
		var head [4]byte
		if _, err := io.ReadFull(in, head[:]); err != nil {
			return err
		}
		n := binary.LittleEndian.Uint32(head[:])
		if n == 0 {
			return nil
		}
		//lodge:check vault/restore/piece [tests=./services/store/vault] [run=TestCrafted] a piece
		//  takes any amount of memory
		if n > store.MaxValue {
			return fmt.Errorf("%w: a piece of %d bytes", vaulterr.ErrBackup, n)
		}
		p := make([]byte, n)
		if _, err := io.ReadFull(in, p); err != nil {
			return err
		}
		if err := f(p); err != nil {
			return err
		}
	}
}

// whole is a content of one piece.
func whole(in io.Reader) (content []byte, err error) {
	err = pieces(in, func(p []byte) error {
		//lodge:check vault/restore/one-piece [tests=./services/store/vault] [run=TestCrafted] a
		//  record in two pieces is truncated
		if content != nil {
			return fmt.Errorf("%w: a record in pieces", vaulterr.ErrBackup)
		}
		content = p
		return nil
	})
	return content, err
}

func (r *restorer) info(in io.Reader) error {
	b, err := whole(in)
	if err == nil && json.Unmarshal(b, &r.out.BackupInfo) != nil {
		err = fmt.Errorf("%w: its description is invalid", vaulterr.ErrBackup)
	}
	return err
}

// record checks one and keeps it for the next transaction.
func (r *restorer) record(in io.Reader, key string) error {
	sealed, err := whole(in)
	if err != nil {
		return err
	}
	c := newContents()
	//lodge:check vault/restore/identity [tests=./services/store/vault] [drop=key ==
	//  seal.IdentityKey] [run=TestCrafted] a restored store has the identity of the lost one
	//lodge:check vault/restore/header [tests=./services/store/vault] [drop=key == seal.HeaderKey]
	//  [run=TestCrafted] a restored store has another key than its backup's head says
	//lodge:check vault/restore/record [tests=./services/store/vault] [drop=err != nil]
	//  [run=TestCrafted] a record at the wrong place is restored
	if err := c.add(r.v, key, sealed); err != nil || key == seal.HeaderKey || key == seal.IdentityKey {
		return fmt.Errorf("%w: record %q: %w", vaulterr.ErrBackup, key, err)
	}
	forDecryption := len(c.ledger) > 0 || len(c.epochs) > 0 && c.epochs[0].Decrypts()
	for _, name := range c.kept() {
		r.wanted[name], r.dropped[name] = true, forDecryption && !r.opt.KeepDecryption
	}
	for name := range c.blobs() {
		//lodge:check vault/restore/live [tests=./services/store/vault] [run=TestCrafted] tuples or
		//  MAC keys are restored
		if !r.wanted[name] { // of tuples or a MAC key
			return fmt.Errorf("%w: record %q is of something live", vaulterr.ErrBackup, key)
		}
	}
	//lodge:check vault/restore/audit [tests=./services/store/vault] [drop=r.opt.NewAuditLog]
	//  [run=TestRestoreForgets|TestRestore$|TestCrafted] a restored store forgets its audit log
	//  although the operator did not say so
	if key == AuditKey && r.opt.NewAuditLog {
		return nil
	}
	if r.pending == nil {
		r.pending = map[string][]byte{}
	}
	r.pending[key] = sealed
	r.out.Records++
	if r.size += len(key) + len(sealed); r.size > restoreSome {
		return r.flush()
	}
	return nil
}

// flush commits the pending records.
func (r *restorer) flush() error {
	if r.opt.Check || len(r.pending) == 0 {
		r.pending, r.size = nil, 0
		return nil
	}
	err := r.v.Update(func(tx store.Tx) error {
		for key, sealed := range r.pending {
			if err := tx.Put(key, sealed); err != nil {
				return err
			}
		}
		return nil
	})
	r.pending, r.size = nil, 0
	return err
}

// blob stores a blob that an earlier record has named.
func (r *restorer) blob(in io.Reader, name string) (err error) {
	//lodge:check vault/restore/of-nobody [tests=./services/store/vault] [run=TestCrafted] an object
	//  without a record is restored
	if !r.wanted[name] {
		return fmt.Errorf("%w: blob %s is nobody's, or there twice", vaulterr.ErrBackup, name)
	}
	//lodge:check vault/restore/blob-once [tests=./services/store/vault] [run=TestCrafted] one
	//  object is restored twice
	r.wanted[name] = false
	var w store.Writer
	if !r.opt.Check && !r.dropped[name] {
		if w, err = r.v.Backend.Create(name); err != nil {
			return fmt.Errorf("vault: %w", err)
		}
		defer w.Abort() // does nothing after success
	}
	err = pieces(in, func(p []byte) error {
		r.out.Bytes += int64(len(p))
		if w == nil {
			return nil
		}
		_, err := w.Write(p)
		return err
	})
	r.out.Blobs++
	if err != nil || w == nil {
		return err
	}
	return w.Commit()
}

// finish turns the restored data into a vault. It erases the data of retired epochs.
func (r *restorer) finish() error {
	var objects []string
	err := r.v.Update(func(tx store.Tx) error {
		reason := fmt.Sprintf("restored from a backup of %s, of store %s at generation %d", r.out.Taken.Format(time.RFC3339),
			r.out.Store, r.out.Generation)
		var err error
		//lodge:check vault/restore/quarantine [tests=./services/store/vault] [as=if err =
		//  seal.Put(r.v.Store, tx, seal.IdentityKey, r.v.NewIdentity()); err != nil || reason == "" { return err }]
		//  [run=TestRestore$] a restored store works before its operator confirms it
		//lodge:check vault/restore/keeps [tests=./services/store/vault]
		//  [swap=r.opt.KeepDecryption=>true] [run=TestRestore$] decryption keys are restored
		//  although the operator did not say so
		if objects, err = r.v.QuarantineIn(tx, r.v.NewIdentity(), 0, reason, r.opt.KeepDecryption); err != nil {
			return err
		}
		//lodge:check vault/pin/restored [tests=./services/store/vault]
		//  [swap=r.v.peers.ForgetStanding(tx)=>error(nil)] [run=TestRestoreForgets]
		//  acknowledgements of parties that left count for a restored store
		if err := r.v.peers.ForgetStanding(tx); err != nil {
			return err
		}
		if err := tx.Put(seal.HeaderKey, r.header()); err != nil {
			return err
		}
		return tx.Delete(seal.RestoreKey)
	})
	return r.v.EraseAfter(err, objects)
}
