// Package oidctest runs a real OpenID Connect issuer for tests: the certified provider of
// zitadel/oidc, with its login page, over HTTPS on this machine.
package oidctest

import (
	"context"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// The users of an issuer, and their password. Subjects are what tokens name.
const (
	User         = "test-user@127.0.0.1"
	Subject      = "id1"
	OtherUser    = "test-user2"
	OtherSubject = "id2"
	Password     = "verysecure"
)

// Issuer is an issuer with one client.
type Issuer struct {
	URL    string
	CA     string // file of its authority
	Server *httptest.Server

	storage *storage.Storage
	client  string
}

// Client is the client that an issuer knows.
type Client struct {
	ID       string
	Secret   string // empty: a public client
	Redirect string
}

// New starts an issuer.
func New(t testing.TB, c Client) *Issuer {
	t.Helper()
	s := httptest.NewUnstartedServer(nil)
	i := &Issuer{URL: "https://" + s.Listener.Addr().String(), Server: s, client: c.ID}
	client := storage.NativeClient(c.ID, c.Redirect)
	if c.Secret != "" {
		client = storage.WebClient(c.ID, c.Secret, c.Redirect)
	}
	i.storage = storage.NewStorageWithClients(storage.NewUserStore(i.URL), map[string]*storage.Client{c.ID: client})
	s.Config.Handler = exampleop.SetupServer(i.URL, i.storage, nil, false)
	s.StartTLS()
	t.Cleanup(s.Close)
	i.CA = filepath.Join(t.TempDir(), "issuer.pem")
	if err := os.WriteFile(i.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return i
}

// End ends everything that the issuer remembers of a refresh token, as its administrator would.
func (i *Issuer) End(t testing.TB, refresh string) {
	t.Helper()
	if err := i.storage.RevokeToken(op.ContextWithIssuer(context.Background(), i.URL), refresh, "", i.client); err != nil {
		t.Fatal(err)
	}
}

var request = regexp.MustCompile(`name="id" value="([^"]*)"`)

// Login opens an address of the issuer in a browser, and logs in on its page. It returns the
// response of the page to which the issuer sends the browser back; redirections are followed as far
// as the browser does.
func Login(t testing.TB, browser *http.Client, address, user, password string) *http.Response {
	t.Helper()
	page, err := browser.Get(address)
	if err != nil {
		t.Fatal(err)
	}
	defer page.Body.Close()
	body := make([]byte, 64<<10)
	n := 0
	for n < len(body) {
		k, err := page.Body.Read(body[n:])
		n += k
		if err != nil {
			break
		}
	}
	id := request.FindSubmatch(body[:n])
	if id == nil {
		t.Fatalf("%s: no login form: %s, %.500s", page.Request.URL, page.Status, body[:n])
	}
	answer, err := browser.PostForm(page.Request.URL.ResolveReference(&url.URL{Path: "/login/username"}).String(),
		url.Values{"username": {user}, "password": {password}, "id": {string(id[1])}})
	if err != nil {
		t.Fatal(err)
	}
	return answer
}
