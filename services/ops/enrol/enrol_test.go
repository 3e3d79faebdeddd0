package enrol

import (
	"crypto/x509"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

func TestWrite(t *testing.T) {
	root := t.TempDir()
	var entries []string
	for _, name := range []string{"p0", "p1"} {
		dir := filepath.Join(root, name)
		secrets, err := Write(dir, Options{Role: Party, Name: name, Address: name + ".example:7100", Hosts: []string{"10.0.0.1"}})
		if err != nil || !slices.Equal(secrets, []string{KeyFile, SigningFile, VaultFile}) {
			t.Fatal(secrets, err)
		}
		if _, err := seal.LoadKey(filepath.Join(dir, VaultFile)); err != nil {
			t.Error(err)
		}
		request(t, dir, "spiffe://lodge/party/"+name, name+".example", 1)
		entries = append(entries, filepath.Join(dir, EntryFile))
	}
	dir := filepath.Join(root, "coordinator")
	if secrets, err := Write(dir, Options{Role: Coordinator, Address: "c.example:7100", Identity: "c.example"}); err != nil || len(secrets) != 1 {
		t.Fatal(secrets, err)
	}
	request(t, dir, "", "c.example", 0)
	r, err := config.Join(append(entries, filepath.Join(dir, EntryFile)))
	if err != nil || len(r.Parties) != 2 || r.Parties[1].ID != 1 || r.Coordinator.Identity != "c.example" {
		t.Fatalf("%+v, %v", r, err)
	}
	key, err := pki.LoadSigningKey(filepath.Join(root, "p1", SigningFile))
	if err != nil || !r.SigningKeys()[1].Equal(key.Public()) {
		t.Errorf("the roster has a different key (%v)", err)
	}
	for _, bad := range [][]string{entries, entries[:1], append(entries, entries[0], filepath.Join(dir, EntryFile))} {
		if _, err := config.Join(bad); err == nil {
			t.Errorf("%v make a roster", bad)
		}
	}
	for name, o := range map[string]Options{"p0": {Role: Party, Name: "p0", Address: "a:1"}, "new": {Role: Party, Name: "P", Address: "a:1"},
		"new too": {Role: Party, Name: "p", Address: "a"}, "client": {Role: Client},
		"coordinator's": {Role: Party, Name: "coordinator", Address: "a:1"}, "port": {Role: Party, Name: "p", Address: "a:b"},
		"large port": {Role: Party, Name: "p", Address: "a:70000"}, "identity": {Role: Client, Name: "c", Identity: "no identity"},
		"host": {Role: Client, Name: "c", Hosts: []string{"*.example"}}, "host with a port": {Role: Client, Name: "c", Hosts: []string{"a:1"}}} {
		if _, err := Write(filepath.Join(root, name), o); err == nil {
			t.Errorf("%s: %+v passes", name, o)
		}
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if info, err := d.Info(); err != nil || path != root && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// request checks that the certificate request in a directory has these names and the directory's
// key.
func request(t *testing.T, dir, uri, host string, addresses int) {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, RequestFile))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(b)
	r, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil || r.CheckSignature() != nil {
		t.Fatal(err)
	}
	if uri != "" && (len(r.URIs) != 1 || r.URIs[0].String() != uri) || !slices.Equal(r.DNSNames, []string{host}) || len(r.IPAddresses) != addresses {
		t.Errorf("%v %v %v", r.URIs, r.DNSNames, r.IPAddresses)
	}
}
