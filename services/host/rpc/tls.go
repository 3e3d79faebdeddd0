package rpc

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/lodge-mpc/lodge/services/host/pki"
)

// Files are the paths of a process's TLS files, all PEM.
type Files struct {
	Certificate string // this process's chain, leaf first; empty, like Key, for a client that uses a token instead
	Key         string // its private key
	CA          string // authority of the parties and the coordinator
	ClientCA    string // authority of the clients; empty means CA
}

// Credentials are loaded TLS files. Reload updates them.
type Credentials struct {
	files   Files
	current atomic.Pointer[material]
}

// material is the content of the files at one time.
type material struct {
	certificate *tls.Certificate // nil without a certificate
	members     roots
	clients     roots
	sum         [32]byte // digest of the files
}

// roots is a set of trust anchors.
type roots []*x509.Certificate

func (r roots) contains(c *x509.Certificate) bool { return slices.ContainsFunc(r, c.Equal) }

func pool(rs ...roots) *x509.CertPool {
	p := x509.NewCertPool()
	for _, r := range rs {
		for _, c := range r {
			p.AddCert(c)
		}
	}
	return p
}

// LoadCredentials loads TLS files.
func LoadCredentials(f Files) (*Credentials, error) {
	m, err := f.load()
	if err != nil {
		return nil, err
	}
	c := &Credentials{files: f}
	c.current.Store(m)
	return c, nil
}

// load reads each file once, so that the used content is the hashed content.
func (f Files) load() (*material, error) {
	m, h := new(material), sha256.New()
	read := func(path string) ([]byte, error) {
		b, err := os.ReadFile(path)
		fmt.Fprintf(h, "%d ", len(b))
		h.Write(b)
		return b, err
	}
	if f.Certificate != "" || f.Key != "" {
		chain, err := read(f.Certificate)
		if err != nil {
			return nil, fmt.Errorf("rpc: certificate: %w", err)
		}
		key, err := read(f.Key)
		if err != nil {
			return nil, fmt.Errorf("rpc: key: %w", err)
		}
		cert, err := tls.X509KeyPair(chain, key)
		if err != nil {
			return nil, fmt.Errorf("rpc: certificate %s: %w", f.Certificate, err)
		}
		m.certificate = &cert
	}
	authority := func(path string) (roots, error) {
		b, err := read(path)
		if err != nil {
			return nil, fmt.Errorf("rpc: authority: %w", err)
		}
		r, err := pki.ParseCertificates(b)
		if err != nil {
			return nil, fmt.Errorf("rpc: authority %s: %w", path, err)
		}
		return r, nil
	}
	var err error
	if m.members, err = authority(f.CA); err != nil {
		return nil, err
	}
	m.clients = m.members
	if f.ClientCA != "" {
		if m.clients, err = authority(f.ClientCA); err != nil {
			return nil, err
		}
	}
	m.sum = [32]byte(h.Sum(nil))
	return m, nil
}

// Reload reads the files again and reports whether they changed. If they cannot be used (for
// example because a certificate's key has not been replaced yet, or it names another identity, or
// it is not valid now), Reload returns an error and keeps the previous content. New connections use
// the new content; calls on old connections are checked against the current authorities.
func (c *Credentials) Reload() (changed bool, err error) {
	old := c.current.Load()
	m, err := c.files.load()
	if err != nil || m.sum == old.sum {
		return false, err
	}
	if was, is := old.certificate, m.certificate; was != nil {
		if a, b := Names(was.Leaf), Names(is.Leaf); !slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))) {
			return false, fmt.Errorf("rpc: certificate %s: names %q, but the one in use names %q: restart the process to change its identity", c.files.Certificate, b, a)
		}
		if now := time.Now(); now.Before(is.Leaf.NotBefore) || now.After(is.Leaf.NotAfter) {
			return false, fmt.Errorf("rpc: certificate %s: valid from %s to %s", c.files.Certificate,
				is.Leaf.NotBefore.UTC().Format(time.RFC3339), is.Leaf.NotAfter.UTC().Format(time.RFC3339))
		}
	}
	c.current.Store(m)
	return true, nil
}

// reloadEvery is the interval at which Watch reads the four small files.
const reloadEvery = 10 * time.Second

// Watch reloads changed files until ctx is done. It logs each reload, and each new fault once.
func (c *Credentials) Watch(ctx context.Context, log *slog.Logger) { c.watch(ctx, reloadEvery, log) }

func (c *Credentials) watch(ctx context.Context, every time.Duration, log *slog.Logger) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		changed, err := c.Reload()
		switch {
		case err != nil && err.Error() != said:
			said = err.Error()
			log.Error("the present certificate stays in use: the new files are unusable", "error", err)
		case err == nil:
			said = ""
		}
		if changed {
			log.Info("certificate and authorities reloaded", "certificate_until", c.NotAfter().UTC().Format(time.RFC3339))
		}
	}
}

// NotAfter returns when this process's certificate expires; zero without a certificate.
func (c *Credentials) NotAfter() time.Time {
	if cert := c.current.Load().certificate; cert != nil {
		return cert.Leaf.NotAfter
	}
	return time.Time{}
}

// Server returns the TLS configuration of a server: TLS 1.3, and a verified certificate from every
// caller. If the server accepts tokens, a caller may connect without a certificate.
func (c *Credentials) Server(tokens bool) *tls.Config {
	//lodge:check rpc/server/caller [swap=tls.RequireAndVerifyClientCert=>tls.RequestClientCert]
	//  [run=TestWhoMayCall|TestNoTLS|TestNoTokens|TestClient] a caller without a certificate is
	//  accepted
	auth := tls.RequireAndVerifyClientCert
	if tokens {
		auth = tls.VerifyClientCertIfGiven
	}
	return c.server(auth, "h2")
}

// Browser returns the TLS configuration of a server for browsers: TLS 1.3, and a verified
// certificate from a browser that presents one.
func (c *Credentials) Browser() *tls.Config {
	return c.server(tls.VerifyClientCertIfGiven, "h2", "http/1.1")
}

func (c *Credentials) server(auth tls.ClientAuthType, protocols ...string) *tls.Config {
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		ClientAuth:             auth,
		NextProtos:             protocols,
		SessionTicketsDisabled: true,
	}
	out := config.Clone()
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		m := c.current.Load()
		now := config.Clone()
		now.Certificates, now.ClientCAs = []tls.Certificate{*m.certificate}, pool(m.members, m.clients)
		return now, nil
	}
	return out
}

// Client returns the TLS configuration for calling the member with this identity: TLS 1.3, this
// process's certificate if it has one, and verification of the server's chain and pinned identity.
// The dialled address is not checked: the roster pins the name.
func (c *Credentials) Client(identity string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if cert := c.current.Load().certificate; cert != nil {
				return cert, nil
			}
			return new(tls.Certificate), nil
		},
		NextProtos: []string{"h2"},
		// VerifyConnection verifies chain and name. Only the comparison with the dialled host name
		// is replaced.
		InsecureSkipVerify: true,
		VerifyConnection: func(s tls.ConnectionState) error {
			return verifyServer(s, pool(c.current.Load().members), identity)
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
	//lodge:check rpc/server/chain [tests=./services/session/exchange] [run=TestStrangers] a server
	//  certificate of another authority is accepted
	if err != nil {
		return fmt.Errorf("rpc: the server's certificate: %w", err)
	}
	//lodge:check rpc/server/name [run=TestClientPins] a server other than the pinned one is
	//  accepted
	if !slices.Contains(Names(leaf), identity) {
		return fmt.Errorf("rpc: the server's certificate names %q, not %q as pinned by the roster", Names(leaf), identity)
	}
	return nil
}
