package devnet

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Invalid options leave no file behind.
func TestRefusalsLeaveNothing(t *testing.T) {
	for name, o := range map[string]Options{
		"an unknown set":                      {Parties: 2, Params: []string{"insecure-6", "S-none"}},
		"an unknown multi-key set":            {Parties: 2, Params: []string{"insecure-6"}, Multikey: "M-none"},
		"an invalid host":                     {Parties: 2, Params: []string{"insecure-6"}, Host: "127.0.0.1:80"},
		"an address that no machine can have": {Parties: 2, Params: []string{"insecure-6"}, Host: "192.0.2.1"},
	} {
		dir := filepath.Join(t.TempDir(), "cluster")
		if _, err := Write(dir, o); err == nil {
			t.Errorf("%s: no error", name)
		}
		if _, err := os.Stat(dir); !os.IsNotExist(err) {
			t.Errorf("%s: %s exists: %v", name, dir, err)
		}
	}
}

func TestHosts(t *testing.T) {
	for _, host := range []string{"127.0.0.1:80", "https://x.example", "*.example", "a b", "x,y", "-x", "x-", "a..b", "x.", "999.1.1.1", "1.2.3", "[::1]",
		"spiffe://lodge/party/p0", "x\n", strings.Repeat("a", 64), strings.Repeat("a.", 130) + "a", "ſ.example"} {
		_, err := Write(filepath.Join(t.TempDir(), "c"), Options{Parties: 2, Params: []string{"insecure-6"}, Host: host, Port: 7100})
		if err == nil || !strings.Contains(err.Error(), "without a port") {
			t.Errorf("%q: %v", host, err)
		}
	}
	for _, host := range []string{"127.0.0.1", "::1", "localhost", "host_1", "lodge.x-1.example", "0.0.0.0"} {
		if _, err := Write(filepath.Join(t.TempDir(), "c"), Options{Parties: 2, Params: []string{"insecure-6"}, Host: host, Port: 7100, Insecure: true}); err != nil {
			t.Errorf("%q: %v", host, err)
		}
	}
}
