package lodge

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/pki"
)

// A server whose DNS name looks like a party's URI is not accepted as that party.
func TestDNSNamesAreNoURIs(t *testing.T) {
	const alice = "spiffe://lodge/party/alice"
	ca, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca.PEM()) {
		t.Fatal("no authority")
	}
	for _, c := range []struct {
		leaf pki.Leaf
		good bool
	}{
		{pki.Leaf{Identity: alice, Hosts: []string{"x.example"}}, true},
		{pki.Leaf{Identity: "x.example", Hosts: []string{alice}}, false},
	} {
		c.leaf.Lifetime = time.Hour
		b, _, err := ca.Issue(c.leaf)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(b)
		cert, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		err = verifyServer(tls.ConnectionState{PeerCertificates: []*x509.Certificate{cert}}, roots, alice)
		if (err == nil) != c.good {
			t.Errorf("%+v: %v", c.leaf, err)
		}
	}
}
