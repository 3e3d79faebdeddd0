package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Values are encrypted here and at a party, checked at both, and decrypted by all parties to what they were.
func TestCiphertextsCommand(t *testing.T) {
	l, dir := startLive(t), t.TempDir()
	l.ok("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--purpose", "decryption", "--wait")
	path := func(name string) string { return filepath.Join(dir, name) }
	own, partys := path("own"), path("party's")

	l.shows([]string{"ciphertexts", "encrypt", "7", "0xff", "4294967296", "--field", liveField, "--out", own, "--context", "a test"},
		"3 values over p64 under epoch 2")
	l.shows([]string{"ciphertexts", "show", own}, "values    3 over p64", "client    app", `context   "a test"`, "party p0  has not decrypted it", "party p1  has not")
	l.shows([]string{"ciphertexts", "verify", own}, "holds, verified on this machine")
	l.shows([]string{"ciphertexts", "verify", own, "--at", "p1"}, "holds, verified by party p1")
	want := []string{"7", "255", "4294967296"}
	r := read[valuesReport](l, "ciphertexts", "decrypt", own)
	if !slices.Equal(r.Values, want) || r.Epoch != 2 || r.Field != liveField {
		t.Errorf("%+v", r)
	}
	l.shows([]string{"ciphertexts", "show", own}, "party p0  decrypted it for this client at ", "party p1  decrypted it for this client at ")

	if err := os.WriteFile(path("values"), []byte("5\n\n0x10\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := read[ciphertextReport](l, "ciphertexts", "encrypt", "--in", path("values"), "--field", liveField, "--out", partys, "--epoch", "2", "--at", "1")
	if x.Values != 2 || x.Prover != "app" || x.Bytes < 1000 {
		t.Errorf("%+v", x)
	}
	l.ok("ciphertexts", "decrypt", partys, "--out", path("plain"))
	if b, err := os.ReadFile(path("plain")); err != nil || string(b) != "5\n16\n" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Stat(path("plain")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}

	// what is refused, and why
	encrypt := func(more ...string) []string {
		return append([]string{"ciphertexts", "encrypt", "--field", liveField}, more...)
	}
	l.refuses(rpc.Conflict, "exists", encrypt("1", "--out", own)...)
	l.refuses(rpc.Conflict, "exists", "ciphertexts", "decrypt", own, "--out", path("plain"))
	l.refuses(rpc.Invalid, "no values", encrypt("--out", path("x"))...)
	l.refuses(rpc.Invalid, "both", encrypt("1", "--in", path("values"), "--out", path("x"))...)
	for _, bad := range []string{"0x1000000000000000000", "1.5", "+1", "0x", "0xg", "0x-1", "_", ""} {
		l.refuses(rpc.Invalid, "value 1 is", encrypt("1", bad, "--out", path("x"))...)
	}
	l.refuses(rpc.KeyPurpose, "epoch 1", encrypt("1", "--epoch", "1", "--out", path("x"))...)
	l.refuses(rpc.NotFound, "epoch 3", encrypt("1", "--epoch", "3", "--out", path("x"))...)
	l.refuses(rpc.Invalid, "write one of p0, p1", encrypt("1", "--at", "p2", "--out", path("x"))...)
	l.refuses(rpc.NotFound, "--client", "ciphertexts", "show", own, "--client", path("none"))
	if _, err := os.Lstat(path("x")); err == nil {
		t.Error("a command that failed left a file")
	}
	operator := filepath.Join(l.net.Dir, "clients", "operator.yaml")
	l.refuses(rpc.Forbidden, `lacks the permission "decrypt"`, "ciphertexts", "decrypt", own, "--client", operator)

	b, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	for name, wrong := range map[string][]byte{
		"of another client": bytes.Replace(b, []byte(`"prover":"app"`), []byte(`"prover":"apq"`), 1),
		"another context":   bytes.Replace(b, []byte(`"context":"YS`), []byte(`"context":"YQ`), 1),
		"one bit":           append(slices.Clone(b[:len(b)-1]), b[len(b)-1]^1),
	} {
		if bytes.Equal(wrong, b) {
			t.Fatal(name)
		}
		if err := os.WriteFile(path("wrong"), wrong, 0o600); err != nil {
			t.Fatal(err)
		}
		for _, verb := range []string{"verify", "decrypt"} {
			if _, err := l.try("ciphertexts", verb, path("wrong")); err == nil || !strings.Contains(err.Error(), "the proof does not hold") {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
		}
	}
}
