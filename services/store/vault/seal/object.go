package seal

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

	"github.com/lodge-mpc/lodge/services/store"
	"github.com/lodge-mpc/lodge/services/store/vault/vaulterr"
)

// An object is a blob with a header block and sealed chunks. The header holds the object's own
// random key, sealed under the vault's; a store that erases a blob overwrites that block first
// where it can, so that leftover chunks cannot be decrypted. (Where nothing is overwritten in
// place, destroying the operator's key is what erases.) Chunks are AES-256-GCM under the object's
// key with nonce (index, last), so that they can be neither reordered nor cut short.

const (
	ObjectMagic  = "lodge object v1\n"
	HeaderBlock  = 4096
	ChunkSize    = 64 << 10
	WrappedStart = len(ObjectMagic)
	KeyLen       = 32
	GCMOverhead  = 16
)

// ObjectName turns a kind and an id into the name of a blob.
func ObjectName(kind, id string) string {
	sum := sha256.Sum256([]byte(id))
	return kind + "-" + hex.EncodeToString(sum[:16])
}

func ChunkNonce(index uint64, last bool) []byte {
	n := make([]byte, 12)
	binary.LittleEndian.PutUint64(n, index)
	if last {
		n[11] = 1
	}
	return n
}

func ChunkCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// ObjectHeader makes the header block of the object of a name with its key.
func (v *Store) ObjectHeader(name string, key []byte) []byte {
	b := make([]byte, HeaderBlock)
	copy(b, ObjectMagic)
	copy(b[WrappedStart:], v.SealAt("object/"+name, key))
	return b
}

// UnwrapKey reads the key from the header block of a blob.
func (v *Store) UnwrapKey(name string, b io.ReaderAt) (key []byte, err error) {
	head := make([]byte, HeaderBlock)
	if err := ReadFull(b, head, 0); err != nil {
		return nil, fmt.Errorf("%w: header of %s", err, name)
	}
	//lodge:check vault/stored/magic [tests=./services/store/vault]
	//  [run=TestObject|TestRecords|TestSegment|TestDamaged|TestErased|TestCheck] an object of
	//  another version is read
	if string(head[:WrappedStart]) != ObjectMagic {
		return nil, vaulterr.ErrCorrupt
	}
	return v.UnsealAt("object/"+name, head[WrappedStart:WrappedStart+SealedLen(KeyLen)])
}

// ReadFull reads all of p. Only a short read is corrupt: a storage that fails now may work later.
func ReadFull(b io.ReaderAt, p []byte, off int64) error {
	n, err := b.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	return ReadError(err)
}

func ReadError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return fmt.Errorf("%w: cut short", vaulterr.ErrCorrupt)
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("%w: its data is erased or missing", vaulterr.ErrErased)
	}
	return fmt.Errorf("vault: %w", err)
}

// ObjectWriter is an object being written.
type ObjectWriter struct {
	v     *Store
	Name  string
	out   store.Writer
	aead  cipher.AEAD
	buf   []byte
	index uint64
	Size  uint64
	named bool // committed under its name
	err   error
}

func (v *Store) CreateObject(name string) (*ObjectWriter, error) {
	out, err := v.Backend.Create(name)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	w := &ObjectWriter{v: v, Name: name, out: out, buf: make([]byte, 0, ChunkSize+GCMOverhead)}
	key := make([]byte, KeyLen)
	defer clear(key)
	rand.Read(key)
	if w.aead, err = ChunkCipher(key); err == nil {
		_, err = out.Write(v.ObjectHeader(name, key))
	}
	if err != nil {
		w.Abort()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return w, nil
}

// Write appends to the object.
func (w *ObjectWriter) Write(p []byte) (int, error) {
	n := 0
	for len(p) > 0 && w.err == nil {
		if len(w.buf) == ChunkSize { // full, and not the last
			w.flush(false)
		}
		k := min(len(p), ChunkSize-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		p, n = p[k:], n+k
	}
	return n, w.err
}

func (w *ObjectWriter) flush(last bool) {
	if w.err != nil {
		return
	}
	w.Size += uint64(len(w.buf))
	sealed := w.aead.Seal(w.buf[:0], ChunkNonce(w.index, last), w.buf, nil)
	_, w.err = w.out.Write(sealed)
	clear(w.buf[:cap(w.buf)])
	w.buf = w.buf[:0]
	w.index++
}

// Commit makes the object durable under its name.
func (w *ObjectWriter) Commit() error {
	w.flush(true)
	if w.err == nil {
		w.err = w.out.Commit()
	}
	if w.err != nil {
		w.Abort()
		return fmt.Errorf("vault: %w", w.err)
	}
	w.named = true
	return nil
}

// Abort erases the written data, committed or not. If the erasure fails, the next Open repeats it.
func (w *ObjectWriter) Abort() {
	clear(w.buf[:cap(w.buf)])
	if w.named {
		w.v.EraseObject(w.Name)
		w.named = false
	} else {
		w.out.Abort()
	}
	if w.err == nil {
		w.err = errors.New("vault: the writer was aborted")
	}
}

// reader reads an object, and verifies each chunk before it returns a byte.
type reader struct {
	b     store.Blob
	at    int64
	aead  cipher.AEAD
	in    []byte // sealed chunk, and a byte more to see whether it is the last
	out   []byte // rest of the opened chunk, within in
	index uint64
	done  bool
}

func (v *Store) OpenBlob(name string) (store.Blob, error) {
	b, err := v.Backend.Open(name)
	if errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("%w: its data is erased or missing", vaulterr.ErrErased)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	return b, nil
}

func (v *Store) OpenObject(name string) (io.ReadCloser, error) {
	b, err := v.OpenBlob(name)
	if err != nil {
		return nil, err
	}
	key, err := v.UnwrapKey(name, b)
	if err != nil {
		b.Close()
		return nil, err
	}
	defer clear(key)
	aead, err := ChunkCipher(key)
	if err != nil {
		b.Close()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &reader{b: b, at: HeaderBlock, aead: aead, in: make([]byte, ChunkSize+GCMOverhead+1)}, nil
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
		return ReadError(err)
	}
	last := n < len(r.in)
	n = min(n, ChunkSize+GCMOverhead)
	if r.out, err = r.aead.Open(r.in[:0], ChunkNonce(r.index, last), r.in[:n], nil); err != nil {
		//lodge:check vault/stored/authentic [tests=./services/store/vault]
		//  [swap=vaulterr.ErrCorrupt=>io.EOF]
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

// EraseObject erases a blob. One that it cannot erase is left to Sweep.
func (v *Store) EraseObject(name string) error {
	if err := v.Backend.Erase(name); err != nil {
		v.Orphans.Store(name, true)
		return fmt.Errorf("vault: %w", err)
	}
	v.Orphans.Delete(name)
	return nil
}

func (v *Store) EraseObjects(objects []string) (err error) {
	for _, o := range objects {
		err = errors.Join(err, v.EraseObject(o))
	}
	return err
}

// EraseAfter erases the objects that a transaction has recorded as gone, where err is the
// transaction's error. If that is in doubt, Sweep looks at it again.
func (v *Store) EraseAfter(err error, objects []string) error {
	if err == nil {
		return v.EraseObjects(objects)
	}
	if errors.Is(err, store.ErrUncertain) {
		for _, o := range objects {
			v.Orphans.Store(o, true)
		}
	}
	return err
}
