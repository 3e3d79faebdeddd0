package rpc

import (
	"bytes"
	"context"
	"crypto/x509"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// renewable has the paths of TLS files that a test replaces.
type renewable struct {
	*world
	files Files
}

func (w *world) renewable(dir string) *renewable {
	dir = filepath.Join(w.dir, dir)
	if err := os.Mkdir(dir, 0o700); err != nil {
		w.t.Fatal(err)
	}
	return &renewable{w, Files{Certificate: filepath.Join(dir, "tls.pem"), Key: filepath.Join(dir, "tls.key"), CA: filepath.Join(dir, "ca.pem")}}
}

func (r *renewable) put(path string, b []byte) {
	r.t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		r.t.Fatal(err)
	}
}

// issue replaces the certificate, and its key if withKey is set.
func (r *renewable) issue(ca *pki.Authority, l pki.Leaf, withKey bool) *x509.Certificate {
	r.t.Helper()
	cert, key, err := ca.Issue(l)
	if err != nil {
		r.t.Fatal(err)
	}
	r.put(r.files.Certificate, cert)
	if withKey {
		r.put(r.files.Key, key)
	}
	parsed, err := pki.ParseCertificates(cert)
	if err != nil {
		r.t.Fatal(err)
	}
	return parsed[0]
}

func (r *renewable) load() *Credentials {
	r.t.Helper()
	c, err := LoadCredentials(r.files)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

func asked(conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	_, err := statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
	return err
}

// An authority is replaced while a server and a peer run: both first trust the old and the new
// authority, then get certificates from the new one, and then trust only the new one.
func TestAuthorityIsReplaced(t *testing.T) {
	w := newWorld(t)
	next, err := pki.NewAuthority("next", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	old, both := w.ca.PEM(), append(bytes.Clone(w.ca.PEM()), next.PEM()...)
	server, peer := w.renewable("server"), w.renewable("peer")
	identity := map[*renewable]string{server: alice, peer: "spiffe://lodge/party/bob"}
	for r, id := range identity {
		r.put(r.files.CA, old)
		r.issue(w.ca, pki.Leaf{Identity: id, Lifetime: time.Hour}, true)
	}
	serving, calling := server.load(), peer.load()
	addr, _ := w.serve(Options{Credentials: serving}, whoami)
	first, err := Dial(addr, alice, calling)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	works := func(step string) {
		t.Helper()
		fresh, err := Dial(addr, alice, calling)
		if err != nil {
			t.Fatal(err)
		}
		defer fresh.Close()
		if err := asked(fresh); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
	}
	reload := func(c *Credentials) {
		t.Helper()
		if changed, err := c.Reload(); err != nil || !changed {
			t.Fatalf("reloaded: %v, %v", changed, err)
		}
		if changed, err := c.Reload(); err != nil || changed {
			t.Fatalf("reloaded unchanged files: %v, %v", changed, err)
		}
	}
	if err := asked(first); err != nil {
		t.Fatal(err)
	}
	server.put(server.files.CA, both)
	reload(serving)
	works("the server trusts both")
	peer.put(peer.files.CA, both)
	reload(calling)
	leaf := peer.issue(next, pki.Leaf{Identity: identity[peer], Lifetime: time.Hour}, true)
	reload(calling)
	if !calling.NotAfter().Equal(leaf.NotAfter) {
		t.Errorf("the certificate ends at %s, not at %s", calling.NotAfter(), leaf.NotAfter)
	}
	works("the peer has a certificate from the next authority")
	server.issue(next, pki.Leaf{Identity: alice, Lifetime: time.Hour}, true)
	reload(serving)
	works("the server too")
	if err := asked(first); err != nil {
		t.Fatalf("a connection from before: %v", err)
	}
	server.put(server.files.CA, next.PEM())
	reload(serving)
	works("the server trusts only the new authority")
	if e := FromError(asked(first)); e == nil || e.Code != Forbidden {
		t.Errorf("a connection with a certificate from an authority that is no longer trusted: %v", e)
	}
	peer.put(peer.files.CA, old)
	reload(calling)
	fresh, err := Dial(addr, alice, calling)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if err := asked(fresh); err == nil {
		t.Error("a server was taken whose authority is not trusted")
	}
}

// Unusable files do not replace the certificate in use.
func TestReloadRefuses(t *testing.T) {
	w := newWorld(t)
	for name, x := range map[string]struct {
		change func(r *renewable)
		says   string
	}{
		"another key":         {func(r *renewable) { r.issue(w.ca, pki.Leaf{Identity: alice, Lifetime: time.Hour}, false) }, "private key"},
		"another name":        {func(r *renewable) { r.issue(w.ca, pki.Leaf{Identity: alice + "x", Lifetime: time.Hour}, true) }, "restart"},
		"expired":             {func(r *renewable) { r.issue(w.ca, pki.Leaf{Identity: alice, Lifetime: -time.Second}, true) }, "valid from"},
		"no certificate":      {func(r *renewable) { r.put(r.files.Certificate, nil) }, "certificate"},
		"half an authority":   {func(r *renewable) { r.put(r.files.CA, w.ca.PEM()[:100]) }, "authority"},
		"a key for authority": {func(r *renewable) { b, _ := os.ReadFile(r.files.Key); r.put(r.files.CA, b) }, "not only certificates"},
		"no file":             {func(r *renewable) { os.Remove(r.files.Key) }, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			r := w.renewable(strings.ReplaceAll(name, " ", "-"))
			r.put(r.files.CA, w.ca.PEM())
			r.issue(w.ca, pki.Leaf{Identity: alice, Lifetime: time.Hour}, true)
			c := r.load()
			before := c.current.Load()
			x.change(r)
			if changed, err := c.Reload(); changed || err == nil || !strings.Contains(err.Error(), x.says) {
				t.Errorf("%v, %v", changed, err)
			}
			if c.current.Load() != before {
				t.Error("the material changed")
			}
		})
	}
}

type lines struct {
	sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(b []byte) (int, error) {
	l.Lock()
	defer l.Unlock()
	return l.Buffer.Write(b)
}

func (l *lines) count(s string) int {
	l.Lock()
	defer l.Unlock()
	return strings.Count(l.String(), s)
}

// A fault is logged once, and repaired files are loaded.
func TestWatch(t *testing.T) {
	w := newWorld(t)
	r := w.renewable("watched")
	r.put(r.files.CA, w.ca.PEM())
	r.issue(w.ca, pki.Leaf{Identity: alice, Lifetime: time.Hour}, true)
	c, log := r.load(), new(lines)
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() { c.watch(ctx, time.Millisecond, slog.New(slog.NewTextHandler(log, nil))) })
	defer watching.Wait()
	defer cancel()
	until := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("%s: %s", what, log.String())
			}
		}
	}
	r.put(r.files.CA, nil)
	until("a fault", func() bool { return log.count("stays") > 0 })
	time.Sleep(20 * time.Millisecond)
	if n := log.count("stays"); n != 1 {
		t.Errorf("said %d times: %s", n, log.String())
	}
	r.put(r.files.CA, append(w.ca.PEM(), '\n'))
	until("reloaded", func() bool { return log.count("reloaded") == 1 })
}
