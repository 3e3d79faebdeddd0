package vault

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
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
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("vault: key file %s can be read by others; chmod 600 it", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("vault: key file: %w", err)
	}
	defer clear(b)
	k := new(Key)
	text := strings.TrimSpace(string(b))
	if n, err := hex.Decode(k.b[:], []byte(text)[:min(len(text), 64)]); err != nil || n != 32 || len(text) != 64 {
		return nil, fmt.Errorf("vault: key file %s is not 64 hexadecimal digits; `openssl rand -hex 32` makes one", path)
	}
	return k, nil
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
