package pki

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSigningKeysAreWrittenAndRead(t *testing.T) {
	private, public, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	k, err := parseSigningKey(private)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ParsePublic(public)
	if err != nil || !k.Public().(ed25519.PublicKey).Equal(p) {
		t.Fatalf("the private and the public key do not match: %v", err)
	}
	a, err := NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	_, leaf, err := a.Issue(Leaf{Identity: "x", Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "a certificate": a.PEM(), "a key of another kind": leaf, "two keys": append(bytes.Clone(private), private...),
		"half a key": private[:len(private)/2],
	} {
		if _, err := parseSigningKey(b); err == nil {
			t.Errorf("%s was read as a signing key", name)
		}
	}
}

// A key that other users can read is rejected.
func TestSigningKeyFile(t *testing.T) {
	private, _, err := NewSigningKey()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.pem")
	if err := os.WriteFile(path, private, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, ok := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o640: false, 0o604: false, 0o620: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := LoadSigningKey(path)
		if ok && err != nil || !ok && (err == nil || !strings.Contains(err.Error(), "chmod 600")) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := LoadSigningKey(path + "x"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A roster's signing key is either refused or the only encoding of 32 bytes.
func FuzzParsePublic(f *testing.F) {
	valid := base64.StdEncoding.EncodeToString(make([]byte, 32))
	for _, s := range []string{valid, valid[1:], valid + "\n", strings.TrimRight(valid, "="), valid[:42] + "B=", ""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		k, err := ParsePublic(s)
		if err == nil && (len(k) != ed25519.PublicKeySize || EncodePublic(k) != s) {
			t.Errorf("%q was read as %x", s, k)
		}
	})
}

// A file is either refused as a signing key or contains a working one.
func FuzzSigningKey(f *testing.F) {
	private, _, err := NewSigningKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(private)
	f.Add(private[:len(private)/2])
	f.Add(append(bytes.Clone(private), private...))
	f.Add([]byte("-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		k, err := parseSigningKey(b)
		if err != nil {
			return
		}
		message := make([]byte, 16)
		rand.Read(message)
		if !ed25519.Verify(k.Public().(ed25519.PublicKey), message, ed25519.Sign(k, message)) {
			t.Error("a key that does not sign was accepted")
		}
	})
}
