package oidc

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"
)

const audience = "lodge-alice"

// issuer is an HTTPS server that publishes keys and signs with them.
type issuer struct {
	t       testing.TB
	server  *httptest.Server
	caFile  string
	fetches atomic.Int64 // of keys

	mu   sync.Mutex
	keys []jose.JSONWebKey
	// Responses to use instead, if set.
	discovery map[string]any
	published any
	wait      chan struct{} // before it answers
	status    int
}

func newIssuer(t testing.TB) *issuer {
	t.Helper()
	i := &issuer{t: t, status: http.StatusOK}
	mux := http.NewServeMux()
	mux.HandleFunc("/realm/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		answer := map[string]any{"issuer": i.url(), "jwks_uri": i.url() + "/keys", "id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		for k, v := range i.discovery {
			answer[k] = v
		}
		i.answer(w, answer)
	})
	mux.HandleFunc("/realm/keys", func(w http.ResponseWriter, _ *http.Request) {
		i.fetches.Add(1)
		i.mu.Lock()
		wait := i.wait
		i.mu.Unlock()
		if wait != nil {
			<-wait
		}
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.published != nil {
			i.answer(w, i.published)
			return
		}
		i.answer(w, jose.JSONWebKeySet{Keys: i.keys})
	})
	mux.HandleFunc("/realm/elsewhere", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/realm/keys", http.StatusFound) })
	i.server = httptest.NewTLSServer(mux)
	t.Cleanup(i.server.Close)
	i.caFile = filepath.Join(t.TempDir(), "issuer-ca.pem")
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: i.server.Certificate().Raw})
	if err := os.WriteFile(i.caFile, ca, 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

func (i *issuer) url() string { return i.server.URL + "/realm" }

func (i *issuer) answer(w http.ResponseWriter, v any) {
	w.WriteHeader(i.status)
	if err := json.NewEncoder(w).Encode(v); err != nil {
		i.t.Error(err)
	}
}

// change replaces the issuer's responses.
func (i *issuer) change(f func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	f()
}

// key is a private key with its name and algorithm.
type key struct {
	id      string
	alg     jose.SignatureAlgorithm
	private crypto.Signer
}

func newKey(t testing.TB, id string, alg jose.SignatureAlgorithm) key {
	t.Helper()
	k := key{id: id, alg: alg}
	var err error
	switch alg {
	case jose.RS256, jose.PS256, jose.RS512:
		k.private, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		k.private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case jose.ES384:
		k.private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case jose.EdDSA:
		_, k.private, err = ed25519.GenerateKey(rand.Reader)
	default:
		t.Fatalf("no key for %s", alg)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (k key) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: k.private.Public(), KeyID: k.id, Use: "sig"}
}

// publish replaces the keys of the issuer.
func (i *issuer) publish(keys ...key) {
	i.change(func() {
		i.keys = nil
		for _, k := range keys {
			i.keys = append(i.keys, k.public())
		}
	})
}

// claims returns the claims of a valid token; a nil value removes a claim.
func (i *issuer) claims(now time.Time, change map[string]any) map[string]any {
	c := map[string]any{
		"iss": i.url(), "sub": "sub-mpc", "aud": audience, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(10 * time.Minute).Unix(),
		"groups": []string{"mpc"},
	}
	for k, v := range change {
		if c[k] = v; v == nil {
			delete(c, k)
		}
	}
	return c
}

func sign(t testing.TB, k key, claims any) string {
	t.Helper()
	s, err := jose.NewSigner(jose.SigningKey{Algorithm: k.alg, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := s.Sign(body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := token.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// assemble makes a token from any header, body and signature.
func assemble(t testing.TB, header, claims any, signature func(signed string) []byte) string {
	t.Helper()
	var parts []byte
	for _, v := range []any{header, claims} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(append(parts, '.'), base64.RawURLEncoding.EncodeToString(b)...)
	}
	signed := string(parts[1:])
	return signed + "." + base64.RawURLEncoding.EncodeToString(signature(signed))
}

// clock is a clock that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// logged records a log for a test.
type logged struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logged) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// verifier returns a verifier for the issuer, with a clock and a log.
func (i *issuer) verifier() (*Verifier, *clock, *logged) {
	i.t.Helper()
	c, l := &clock{at: time.Now()}, &logged{}
	v, err := New(Options{Issuer: i.url(), Audience: audience, CA: i.caFile, Now: c.now, Log: slog.New(slog.NewTextHandler(l, nil))})
	if err != nil {
		i.t.Fatal(err)
	}
	return v, c, l
}

// publicPEM returns a public key in PEM. A confused verifier might use it as the secret of HS256.
func publicPEM(t testing.TB, k key) []byte {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.private.Public())
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
}
