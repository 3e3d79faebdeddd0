package rpc

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// Files are the paths of a process's TLS material, all PEM.
type Files struct {
	Certificate string // this process's chain, leaf first; empty, with Key, for a client that has a token instead
	Key         string // its private key
	CA          string // authority of parties and coordinator
	ClientCA    string // authority of clients; empty: the same as CA
}

// Credentials are loaded TLS material.
type Credentials struct {
	certificates []tls.Certificate // one, or none
	members      *roots
	clients      *roots
}

// roots is a set of trust anchors that can say whether it contains one.
type roots struct {
	certs []*x509.Certificate
	sums  map[[32]byte]bool
}

func parseRoots(pemBytes []byte) (*roots, error) {
	r := &roots{sums: map[[32]byte]bool{}}
	for {
		var b *pem.Block
		b, pemBytes = pem.Decode(pemBytes)
		if b == nil {
			break
		}
		if b.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("holds a %s, not only certificates", b.Type)
		}
		c, err := x509.ParseCertificate(b.Bytes)
		if err != nil {
			return nil, err
		}
		r.certs = append(r.certs, c)
		r.sums[sha256.Sum256(c.Raw)] = true
	}
	if len(r.certs) == 0 {
		return nil, errors.New("holds no certificate")
	}
	return r, nil
}

func (r *roots) contains(c *x509.Certificate) bool { return r.sums[sha256.Sum256(c.Raw)] }

func pool(rs ...*roots) *x509.CertPool {
	p := x509.NewCertPool()
	for _, r := range rs {
		for _, c := range r.certs {
			p.AddCert(c)
		}
	}
	return p
}

// LoadCredentials reads TLS material from files.
func LoadCredentials(f Files) (*Credentials, error) {
	c := new(Credentials)
	if f.Certificate != "" || f.Key != "" {
		cert, err := tls.LoadX509KeyPair(f.Certificate, f.Key)
		if err != nil {
			return nil, fmt.Errorf("rpc: certificate %s: %w", f.Certificate, err)
		}
		c.certificates = []tls.Certificate{cert}
	}
	load := func(path string) (*roots, error) {
		b, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("rpc: authority: %w", err)
		}
		r, err := parseRoots(b)
		if err != nil {
			return nil, fmt.Errorf("rpc: authority %s: %w", path, err)
		}
		return r, nil
	}
	var err error
	if c.members, err = load(f.CA); err != nil {
		return nil, err
	}
	c.clients = c.members
	if f.ClientCA != "" {
		if c.clients, err = load(f.ClientCA); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// NotAfter is until when this process's certificate is valid; zero without one.
func (c *Credentials) NotAfter() time.Time {
	if len(c.certificates) == 0 || c.certificates[0].Leaf == nil {
		return time.Time{}
	}
	return c.certificates[0].Leaf.NotAfter
}

// Server is the TLS configuration of a server: TLS 1.3, and a verified
// certificate from every caller. Where tokens are taken a caller may have none.
func (c *Credentials) Server(tokens bool) *tls.Config {
	auth := tls.RequireAndVerifyClientCert
	if tokens {
		auth = tls.VerifyClientCertIfGiven
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           c.certificates,
		ClientAuth:             auth,
		ClientCAs:              pool(c.members, c.clients),
		NextProtos:             []string{"h2"},
		SessionTicketsDisabled: true,
	}
}

// Client is the TLS configuration for calling the member with this identity:
// TLS 1.3, our certificate if we have one, and the chain and the pinned identity of the other
// side verified. The address dialled plays no part: the roster pins the name.
func (c *Credentials) Client(identity string) *tls.Config {
	members := pool(c.members)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: c.certificates,
		NextProtos:   []string{"h2"},
		// Chain and name are verified below; only the comparison with the
		// host name that was dialled is replaced.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verifyServer(s, members, identity)
		},
	}
}

func verifyServer(s tls.ConnectionState, members *x509.CertPool, identity string) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("rpc: the server has no certificate")
	}
	leaf := s.PeerCertificates[0]
	intermediates := x509.NewCertPool()
	for _, c := range s.PeerCertificates[1:] {
		intermediates.AddCert(c)
	}
	_, err := leaf.Verify(x509.VerifyOptions{
		Roots:         members,
		Intermediates: intermediates,
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	if err != nil {
		return fmt.Errorf("rpc: the server's certificate: %w", err)
	}
	if !slices.Contains(sans(leaf), identity) {
		return fmt.Errorf("rpc: the server's certificate names %q, not %q as the roster pins", sans(leaf), identity)
	}
	return nil
}
