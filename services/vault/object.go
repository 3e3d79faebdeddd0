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
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// An object is a file with a header block and sealed chunks. The header holds
// the object's own random key, sealed under the vault's; erasing an object
// overwrites that block before the file is removed, so that what a disk may
// keep of the chunks is of no use. (File systems that never overwrite in place
// defeat the first half; then destroying the operator's key is what erases.)
// Chunks are AES-256-GCM under the object's key with nonce (index, last), so
// that they can be neither reordered nor cut short.

const (
	objectMagic  = "lodge object v1\n"
	headerBlock  = 4096
	chunkSize    = 64 << 10
	wrappedStart = len(objectMagic)
	tempPrefix   = "tmp-"
)

// objectName turns a kind and an id into a file name.
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

// writer is an object being written to a temporary file.
type writer struct {
	v     *Vault
	name  string
	f     *os.File
	aead  cipher.AEAD
	buf   []byte
	index uint64
	size  uint64
	named bool // committed under its name
	err   error
}

func (v *Vault) create(name string) (*writer, error) {
	f, err := os.CreateTemp(v.objects, tempPrefix)
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	w := &writer{v: v, name: name, f: f, buf: make([]byte, 0, chunkSize+16)}
	key := make([]byte, 32)
	defer clear(key)
	rand.Read(key)
	if w.aead, err = chunkCipher(key); err == nil {
		header := make([]byte, headerBlock)
		copy(header, objectMagic)
		copy(header[wrappedStart:], v.seal("object/"+name, key))
		_, err = f.Write(header)
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
	_, w.err = w.f.Write(sealed)
	clear(w.buf[:cap(w.buf)])
	w.buf = w.buf[:0]
	w.index++
}

// commit makes the object durable under its name.
func (w *writer) commit() error {
	w.flush(true)
	if w.err == nil {
		w.err = w.f.Sync()
	}
	if w.err != nil {
		w.abort()
		return fmt.Errorf("vault: %w", w.err)
	}
	if err := w.f.Close(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	if err := os.Rename(w.f.Name(), filepath.Join(w.v.objects, w.name)); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	w.named = true
	return syncDir(w.v.objects)
}

// abort erases what was written, committed or not. What it cannot erase, the
// next Open does.
func (w *writer) abort() {
	clear(w.buf[:cap(w.buf)])
	if w.named {
		w.v.erase(w.name)
		w.named = false
	} else {
		w.f.Close()
		eraseFile(w.f.Name())
	}
	if w.err == nil {
		w.err = errors.New("vault: the writer was aborted")
	}
}

// reader reads an object, checking each chunk before it gives a byte of it.
type reader struct {
	f     *os.File
	aead  cipher.AEAD
	in    []byte // sealed chunk
	out   []byte // rest of the opened chunk, within in
	index uint64
	done  bool
}

func (v *Vault) open(name string) (io.ReadCloser, error) {
	f, err := os.Open(filepath.Join(v.objects, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("vault: %w: its data is gone", ErrErased)
	}
	if err != nil {
		return nil, fmt.Errorf("vault: %w", err)
	}
	header := make([]byte, headerBlock)
	if _, err := io.ReadFull(f, header); err != nil || string(header[:wrappedStart]) != objectMagic {
		f.Close()
		return nil, ErrCorrupt
	}
	key, err := v.unseal("object/"+name, header[wrappedStart:wrappedStart+sealedLen(32)])
	if err != nil {
		f.Close()
		return nil, err
	}
	defer clear(key)
	aead, err := chunkCipher(key)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("vault: %w", err)
	}
	return &reader{f: f, aead: aead, in: make([]byte, chunkSize+aead.Overhead())}, nil
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
	n, err := io.ReadFull(r.f, r.in)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return ErrCorrupt // nothing where a last chunk should be, or a broken disk
	}
	// A full chunk is tried as one in the middle, then as the last.
	if n == len(r.in) {
		var middle []byte
		if middle, err = r.aead.Open(nil, chunkNonce(r.index, false), r.in, nil); err == nil {
			r.out = middle
			r.index++
			return nil
		}
	}
	last, err := r.aead.Open(nil, chunkNonce(r.index, true), r.in[:n], nil)
	if err != nil {
		return ErrCorrupt
	}
	if _, err := r.f.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		return ErrCorrupt
	}
	r.out, r.done = last, true
	return nil
}

func (r *reader) Close() error {
	clear(r.out)
	r.out, r.done = nil, true
	return r.f.Close()
}

func (v *Vault) erase(name string) error {
	err := eraseFile(filepath.Join(v.objects, name))
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return syncDir(v.objects)
}

// eraseFile overwrites the header block and removes the file. A file that is
// not there is erased.
func eraseFile(path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteAt(make([]byte, headerBlock), 0)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close(), os.Remove(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	defer d.Close()
	if err := d.Sync(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	return nil
}

// sweep erases temporary files and objects that keep does not know.
func (v *Vault) sweep(keep map[string]bool) error {
	entries, err := os.ReadDir(v.objects)
	if err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) || !keep[e.Name()] {
			if err := v.erase(e.Name()); err != nil {
				return err
			}
		}
	}
	return nil
}
