package seal

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"

	"github.com/lodge-mpc/lodge/services/host/secretfile"
)

// Key is the operator's key, under which everything in a vault is encrypted.
type Key struct{ b [32]byte }

// String does not print the key.
func (*Key) String() string { return "[vault key]" }

// GoString does not print the key.
func (*Key) GoString() string { return "[vault key]" }

// LoadKey reads a key file: 64 hexadecimal digits, readable by its owner only.
func LoadKey(path string) (*Key, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("vault: key file: %w", err)
	}
	if secretfile.Exposed(info) {
		return nil, fmt.Errorf("vault: key file %s can be read by others; chmod 600 it", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("vault: key file: %w", err)
	}
	defer clear(b)
	k, ok := ParseKey(b)
	if !ok {
		return nil, fmt.Errorf("vault: key file %s is not 64 hexadecimal digits; `openssl rand -hex 32` makes one", path)
	}
	return k, nil
}

// ParseKey reads 64 hexadecimal digits with space around them.
func ParseKey(b []byte) (*Key, bool) {
	k := new(Key)
	text := bytes.TrimSpace(b)
	if len(text) != hex.EncodedLen(len(k.b)) {
		return nil, false
	}
	_, err := hex.Decode(k.b[:], text)
	return k, err == nil
}

// WriteNewKey makes a random key file; it does not replace one.
func WriteNewKey(path string) error {
	var b [32]byte
	rand.Read(b[:])
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("vault: key file: %w", err)
	}
	if _, err = fmt.Fprintf(f, "%x\n", b); err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	clear(b[:])
	return err
}
