package threshold_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/threshold"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Values are encrypted locally and at a party, verified at both, and decrypted by all parties to
// the same values.
func TestCiphertextsCommand(t *testing.T) {
	l, dir := lodgetest.Start(t), t.TempDir()
	l.OK("jobs", "submit", "--kind", "keys", "--params", "insecure-8", "--purpose", "decryption", "--wait")
	path := func(name string) string { return filepath.Join(dir, name) }
	own, partys := path("own"), path("party's")

	l.Shows([]string{"ciphertexts", "encrypt", "7", "0xff", "4294967296", "--field", lodgetest.LiveField, "--out", own, "--context", "a test"},
		"3 values over p64 under epoch 2")
	l.Shows([]string{"ciphertexts", "show", own}, "values    3 over p64", "client    app", `context   "a test"`, "party p0  has not decrypted it", "party p1  has not")
	l.Shows([]string{"ciphertexts", "verify", own}, "is valid, verified on this machine")
	l.Shows([]string{"ciphertexts", "verify", own, "--at", "p1"}, "is valid, verified by party p1")
	want := []string{"7", "255", "4294967296"}
	r := lodgetest.Read[threshold.ValuesReport](l, "ciphertexts", "decrypt", own)
	if !slices.Equal(r.Values, want) || r.Epoch != 2 || r.Field != lodgetest.LiveField {
		t.Errorf("%+v", r)
	}
	l.Shows([]string{"ciphertexts", "show", own}, "party p0  decrypted it for this client at ", "party p1  decrypted it for this client at ")

	if err := os.WriteFile(path("values"), []byte("5\n\n0x10\r\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	x := lodgetest.Read[threshold.CiphertextReport](l, "ciphertexts", "encrypt", "--in", path("values"), "--field", lodgetest.LiveField, "--out", partys, "--epoch", "2", "--at", "1")
	if x.Values != 2 || x.Prover != "app" || x.Bytes < 1000 {
		t.Errorf("%+v", x)
	}
	l.OK("ciphertexts", "decrypt", partys, "--out", path("plain"))
	if b, err := os.ReadFile(path("plain")); err != nil || string(b) != "5\n16\n" {
		t.Errorf("%q, %v", b, err)
	}
	if info, err := os.Stat(path("plain")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}

	// rejected requests and their errors
	encrypt := func(more ...string) []string {
		return append([]string{"ciphertexts", "encrypt", "--field", lodgetest.LiveField}, more...)
	}
	l.Refuses(rpc.Conflict, "exists", encrypt("1", "--out", own)...)
	l.Refuses(rpc.Conflict, "exists", "ciphertexts", "decrypt", own, "--out", path("plain"))
	l.Refuses(rpc.Invalid, "no values", encrypt("--out", path("x"))...)
	l.Refuses(rpc.Invalid, "both", encrypt("1", "--in", path("values"), "--out", path("x"))...)
	for _, bad := range []string{"0x1000000000000000000", "1.5", "+1", "0x", "0xg", "0x-1", "_", ""} {
		l.Refuses(rpc.Invalid, "value 1 is", encrypt("1", bad, "--out", path("x"))...)
	}
	l.Refuses(rpc.KeyPurpose, "epoch 1", encrypt("1", "--epoch", "1", "--out", path("x"))...)
	l.Refuses(rpc.NotFound, "epoch 3", encrypt("1", "--epoch", "3", "--out", path("x"))...)
	l.Refuses(rpc.Invalid, "write one of p0, p1", encrypt("1", "--at", "p2", "--out", path("x"))...)
	l.Refuses(rpc.NotFound, "--client", "ciphertexts", "show", own, "--client", path("none"))
	if _, err := os.Lstat(path("x")); err == nil {
		t.Error("a command that failed left a file")
	}
	operator := filepath.Join(l.Net.Dir, "clients", "operator.yaml")
	l.Refuses(rpc.Forbidden, `lacks the permission "decrypt"`, "ciphertexts", "decrypt", own, "--client", operator)

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
			if _, err := l.Try("ciphertexts", verb, path("wrong")); err == nil || !strings.Contains(err.Error(), "the proof does not hold") {
				t.Errorf("%s, %s: %v", name, verb, err)
			}
		}
	}
}
