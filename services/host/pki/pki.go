// Package pki creates the credentials that a roster pins: a certificate authority, leaf
// certificates whose identity is a URI or DNS name, and Ed25519 signing keys. It is for development
// rosters and tests. A deployment uses its own PKI and needs at most the signing keys from this
// package.
package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/lodge-mpc/lodge/services/host/secretfile"
)

// Authority signs leaf certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// Leaf describes a certificate to issue.
type Leaf struct {
	Identity string        // URI (has "://") or DNS name
	Hosts    []string      // additional DNS names and IP addresses; they are not roster identities
	Lifetime time.Duration // starts now
}

// NewAuthority creates a self-signed authority.
func NewAuthority(name string, lifetime time.Duration) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t, err := template(name, lifetime)
	if err != nil {
		return nil, err
	}
	t.IsCA, t.BasicConstraintsValid, t.MaxPathLenZero = true, true, true
	t.KeyUsage = x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{cert, key, encode("CERTIFICATE", der)}, nil
}

func template(name string, lifetime time.Duration) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(lifetime),
	}, nil
}

// PEM returns the authority's certificate.
func (a *Authority) PEM() []byte { return a.pem }

// Issue creates a leaf certificate for servers and clients, and returns the certificate and its key
// as PEM.
func (a *Authority) Issue(l Leaf) (cert, key []byte, err error) {
	t, err := template(l.Identity, l.Lifetime)
	if err != nil {
		return nil, nil, err
	}
	t.KeyUsage = x509.KeyUsageDigitalSignature
	t.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	n, err := namesOf(l.Identity, l.Hosts)
	if err != nil {
		return nil, nil, err
	}
	t.URIs, t.DNSNames, t.IPAddresses = n.uris, n.dns, n.ips
	k, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, t, a.cert, k.Public(), a.key)
	return encode("CERTIFICATE", der), key, err
}

// names are the names in a certificate.
type names struct {
	uris []*url.URL
	dns  []string
	ips  []net.IP
}

// namesOf returns the names of a certificate with an identity and hosts.
func namesOf(identity string, hosts []string) (n names, err error) {
	if strings.Contains(identity, "://") {
		u, err := url.Parse(identity)
		if err != nil {
			return n, fmt.Errorf("pki: identity: %w", err)
		}
		n.uris = []*url.URL{u}
	} else {
		n.dns = []string{identity}
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			n.ips = append(n.ips, ip)
		} else if h != identity {
			n.dns = append(n.dns, h)
		}
	}
	return n, nil
}

// newKey makes the key of a certificate, and returns it also as PEM.
func newKey() (*ecdsa.PrivateKey, []byte, error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	return k, encode("PRIVATE KEY", der), err
}

// ParseCertificates parses one or more certificates in PEM, and nothing else. Its errors continue a
// sentence about the file.
func ParseCertificates(text []byte) (list []*x509.Certificate, err error) {
	for b, rest := pem.Decode(text); b != nil; b, rest = pem.Decode(rest) {
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a %s, not only certificates", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		list = append(list, c)
	}
	if len(list) == 0 {
		return nil, errors.New("holds no certificate")
	}
	return list, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// NewSigningKey creates an Ed25519 key and returns the private key as PEM (PKCS #8) and the public
// key in the format of a roster.
func NewSigningKey() (private []byte, public string, err error) {
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		return nil, "", err
	}
	return encode("PRIVATE KEY", der), EncodePublic(pub), nil
}

// EncodePublic returns a signing key in the format of a roster, standard base64.
func EncodePublic(k ed25519.PublicKey) string { return base64.StdEncoding.EncodeToString(k) }

// ParsePublic parses a signing key in the format of a roster.
func ParsePublic(s string) (ed25519.PublicKey, error) {
	b, err := base64.StdEncoding.Strict().DecodeString(s)
	if err != nil || len(b) != ed25519.PublicKeySize || EncodePublic(b) != s { // the decoder ignores line breaks
		return nil, errors.New("pki: a signing key is 32 bytes in base64")
	}
	return b, nil
}

// LoadSigningKey reads a private signing key from a file. It returns an error if other users can
// read the file.
func LoadSigningKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("pki: signing key: %w", err)
	}
	if secretfile.Exposed(info) {
		return nil, fmt.Errorf("pki: signing key %s can be read by others; chmod 600 it", path)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("pki: signing key: %w", err)
	}
	k, err := parseSigningKey(b)
	if err != nil {
		return nil, fmt.Errorf("pki: signing key %s %w", path, err)
	}
	return k, nil
}

// parseSigningKey parses one private key. Its errors continue a sentence about the file and do not
// reveal its contents.
func parseSigningKey(b []byte) (ed25519.PrivateKey, error) {
	block, rest := pem.Decode(b)
	if block == nil || block.Type != "PRIVATE KEY" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, errors.New("is not one PKCS #8 private key in PEM")
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		return nil, errors.New("does not parse")
	}
	ed, ok := k.(ed25519.PrivateKey)
	if !ok {
		return nil, errors.New("is not Ed25519")
	}
	return ed, nil
}

// NewRequest creates a key and a certificate request for it, and returns both as PEM. The signer of
// the request does not see the key.
func NewRequest(identity string, hosts []string) (request, key []byte, err error) {
	var t x509.CertificateRequest
	t.Subject.CommonName = identity
	n, err := namesOf(identity, hosts)
	if err != nil {
		return nil, nil, err
	}
	t.URIs, t.DNSNames, t.IPAddresses = n.uris, n.dns, n.ips
	k, key, err := newKey()
	if err != nil {
		return nil, nil, err
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &t, k)
	return encode("CERTIFICATE REQUEST", der), key, err
}
