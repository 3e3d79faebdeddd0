package vault

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// An object is a blob with a header block and sealed chunks. The header holds
// the object's own random key, sealed under the vault's; a store that erases a
// blob overwrites that block first where it can, so that what may be left of
// the chunks is of no use. (Where nothing is overwritten in place, destroying
// the operator's key is what erases.) Chunks are AES-256-GCM under the object's
// key with nonce (index, last), so that they can be neither reordered nor cut
// short.

const (
	objectMagic  = "lodge object v1\n"
	headerBlock  = 4096
	chunkSize    = 64 << 10
	wrappedStart = len(objectMagic)
	keyLen       = 32
	gcmOverhead  = 16
)

// objectName turns a kind and an id into the name of a blob.
func objectName(kind, id string) string {
	sum := sha256.Sum256([]byte(id))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

func chunkNonce(index uint64, last bool) []byte {
	n := make([]byte, 12)
	binary.LittleEndian.PutUint64(n, index)
	if last {
		n[11] = 1
	}
	return n
}

func chunkCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// header makes the header block of the object of a name with its key.
func (v *Vault) header(name string, key []byte) []byte {
	b := make([]byte, headerBlock)
	copy(b, objectMagic)
	copy(b[wrappedStart:], v.seal("object/"+name, key))
	return b
}

// unwrap reads the key from the header block of a blob.
func (v *Vault) unwrap(name string, b io.ReaderAt) (key []byte, err error) {
	head := make([]byte, headerBlock)
	if err := readFull(b, head, 0); err != nil {
		return nil, fmt.Errorf("%w: header of %s", err, name)
	}
	//lodge:check vault/stored/magic
	//  [run=TestObject|TestRecords|TestSegment|TestDamaged|TestErased|TestCheck] an object of
	//  another version is read
	if string(head[:wrappedStart]) != objectMagic {
		return nil, vaulterr.ErrCorrupt
	}
	return v.unseal("object/"+name, head[wrappedStart:wrappedStart+sealedLen(keyLen)])
}

// readFull reads all of p. Only what is too short is corrupt: a storage that does not answer now may do so later.
func readFull(b io.ReaderAt, p []byte, off int64) error {
	n, err := b.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	return readError(err)
}

func readError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: cut short", vaulterr.ErrCorrupt)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: its data is gone", vaulterr.ErrErased)
	}
	return fmt.Errorf("vault: %w", err)
}

// writer is an object being written.
type writer struct {
	v     *Vault
	name  string
	out   store.Writer
	aead  cipher.AEAD
	buf   []byte
	index uint64
	size  uint64
	named bool // committed under its name
	err   error
}

func (v *Vault) create(name string) (*writer, error) {
	out, err := v.store.Create(name)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	w := &writer{v: v, name: name, out: out, buf: make([]byte, 0, chunkSize+gcmOverhead)}
	key := make([]byte, keyLen)
	defer clear(key)
	rand.Read(key)
	if w.aead, err = chunkCipher(key); err == nil {
		_, err = out.Write(v.header(name, key))
	}
	if err != nil {
		w.abort()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return w, nil
}

// Write appends to the object.
func (w *writer) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && w.err == nil {
		if len(w.buf) == chunkSize { // full, and not the last
			w.flush(false)
		}
		k := min(len(p), chunkSize-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, w.err
}

func (w *writer) flush(last bool) {
	if w.err != nil {
		return
	}
	w.size += uint64(len(w.buf))
	sealed := w.aead.Seal(w.buf[:0], chunkNonce(w.index, last), w.buf, nil)
	_, w.err = w.out.Write(sealed)
	clear(w.buf[:cap(w.buf)])
	w.buf = w.buf[:0]
	w.index++
}

// commit makes the object durable under its name.
func (w *writer) commit() error {
	w.flush(true)
	if w.err == nil {
		w.err = w.out.Commit()
	}
	if w.err != nil {
		w.abort()
		return fmt.Errorf("vault: %w", w.err)
	}
	w.named = true
	return nil
}

// abort erases what was written, committed or not. What it cannot erase, the
// next Open does.
func (w *writer) abort() {
	clear(w.buf[:cap(w.buf)])
	if w.named {
		w.v.erase(w.name)
		w.named = false
	} else {
		w.out.Abort()
	}
	if w.err == nil {
		w.err = errors.New("vault: the writer was aborted")
	}
}

// reader reads an object, checking each chunk before it gives a byte of it.
type reader struct {
	b     store.Blob
	at    int64
	aead  cipher.AEAD
	in    []byte // sealed chunk, and a byte more to see whether it is the last
	out   []byte // rest of the opened chunk, within in
	index uint64
	done  bool
}

func (v *Vault) openBlob(name string) (store.Blob, error) {
	b, err := v.store.Open(name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: its data is gone", vaulterr.ErrErased)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return b, nil
}

func (v *Vault) open(name string) (io.ReadCloser, error) {
	b, err := v.openBlob(name)
	if err != nil {
		return nil, err
	}
	key, err := v.unwrap(name, b)
	if err != nil {
		b.Close()
		return nil, err
	}
	defer clear(key)
	aead, err := chunkCipher(key)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &reader{b: b, at: headerBlock, aead: aead, in: make([]byte, chunkSize+gcmOverhead+1)}, nil
}

func (r *reader) Read(p []byte) (int, error) {
	for len(r.out) == 0 {
		if r.done {
			return 0, io.EOF
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.out)
	clear(r.out[:n])
	r.out = r.out[n:]
	return n, nil
}

func (r *reader) next() error {
	n, err := r.b.ReadAt(r.in, r.at)
	if err != nil && !errors.Is(err, io.EOF) {
		return readError(err)
	}
	last := n < len(r.in)
	n = min(n, chunkSize+gcmOverhead)
	if r.out, err = r.aead.Open(r.in[:0], chunkNonce(r.index, last), r.in[:n], nil); err != nil {
		//lodge:check vault/stored/authentic [swap=vaulterr.ErrCorrupt=>io.EOF]
		//  [run=TestObject|TestRecords|TestSegment|TestDamaged|TestErased|TestCheck] an object that
		//  does not authenticate is read as empty
		return vaulterr.ErrCorrupt
	}
	r.at, r.done = r.at+int64(n), last
	r.index++
	return nil
}

func (r *reader) Close() error {
	clear(r.in)
	r.out, r.done = nil, true
	return r.b.Close()
}

// erase erases a blob. One that it cannot erase is left to Sweep.
func (v *Vault) erase(name string) error {
	if err := v.store.Erase(name); err != nil {
		v.orphans.Store(name, true)
		return fmt.Errorf("vault: %w", err)
	}
	v.orphans.Delete(name)
	return nil
}

func (v *Vault) eraseAll(objects []string) (err error) {
	for _, o := range objects {
		err = errors.Join(err, v.erase(o))
	}
	return err
}

// eraseAfter erases what a transaction that ended with err has recorded as gone. If that is in doubt, Sweep looks at it
// again.
func (v *Vault) eraseAfter(err error, objects []string) error {
	if err == nil {
		return v.eraseAll(objects)
	}
	if errors.Is(err, store.ErrUncertain) {
		for _, o := range objects {
			v.orphans.Store(o, true)
		}
	}
	return err
}

// eraseOrphans erases those of the orphans that no record names.
func (v *Vault) eraseOrphans() error {
	gone := map[string]bool{}
	v.orphans.Range(func(name, _ any) bool {
		gone[name.(string)] = true
		return true
	})
	if len(gone) == 0 {
		return nil
	}
	err := v.store.View(func(tx store.Tx) error {
		_, named, err := v.named(tx)
		for object := range named {
			delete(gone, object)
		}
		return err
	})
	if err != nil {
		return err
	}
	return v.eraseAll(slices.Collect(maps.Keys(gone)))
}
