package oidc

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const redirect = "https://console.example/signin/oidc/callback"

// flowAt returns a flow with a real issuer, its clock, and a browser that stops where the issuer
// sends it back.
func flowAt(t *testing.T, secret string, scopes ...string) (*Flow, *oidctest.Issuer, *clock, *http.Client) {
	t.Helper()
	i := oidctest.New(t, oidctest.Client{ID: audience, Secret: secret, Redirect: redirect})
	c := &clock{at: time.Now()}
	v, err := New(Options{Issuer: i.URL, Audience: audience, CA: i.CA, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	o := FlowOptions{Redirect: redirect, Scopes: scopes}
	if secret != "" {
		o.SecretFile = filepath.Join(t.TempDir(), "secret")
		if err := os.WriteFile(o.SecretFile, []byte(secret+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f, err := NewFlow(v, o)
	if err != nil {
		t.Fatal(err)
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(i.Server.Certificate())
	return f, i, c, &http.Client{
		Jar: jar, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}},
		CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			if strings.HasPrefix(r.URL.String(), redirect) {
				return http.ErrUseLastResponse
			}
			return nil
		},
	}
}

// signIn begins a sign-in and logs in at the issuer.
func signIn(t *testing.T, f *Flow, browser *http.Client) (state, code, ticket string) {
	t.Helper()
	address, ticket, refused := f.Begin(t.Context())
	if refused != nil {
		t.Fatal(refused)
	}
	answer := oidctest.Login(t, browser, address, oidctest.User, oidctest.Password)
	answer.Body.Close()
	back, err := url.Parse(answer.Header.Get("Location"))
	if err != nil || back.Query().Get("code") == "" {
		t.Fatalf("the issuer sends the browser to %q (%v)", answer.Header.Get("Location"), err)
	}
	return back.Query().Get("state"), back.Query().Get("code"), ticket
}

// A browser signs in at a real issuer, as a public client and with a secret. Nobody else's state,
// ticket, code or nonce is accepted.
func TestFlow(t *testing.T) {
	for _, secret := range []string{"", "s3cret"} {
		f, _, clock, browser := flowAt(t, secret)
		state, code, ticket := signIn(t, f, browser)
		tokens, refused := f.Finish(t.Context(), state, code, ticket)
		if refused != nil {
			t.Fatal(refused)
		}
		if tokens.Subject != oidctest.Subject || tokens.Expires.Before(clock.now()) {
			t.Errorf("%+v", tokens)
		}
		if got, refused := f.verifier.Verify(t.Context(), tokens.ID); refused != nil || got.Subject != oidctest.Subject {
			t.Errorf("the ID token is no bearer token: %v, %v", got, refused)
		}
		if _, refused := f.Finish(t.Context(), state, code, ticket); refused == nil {
			t.Error("a code is accepted twice")
		}
		otherState, otherCode, otherTicket := signIn(t, f, browser)
		refuses := func(what, state, code, ticket, want string) {
			t.Helper()
			_, refused := f.Finish(t.Context(), state, code, ticket)
			if refused == nil || refused.Code != rpc.Unauthenticated || !strings.Contains(refused.What, want) {
				t.Errorf("%s: %v", what, refused)
			}
		}
		refuses("another browser's state", state, otherCode, otherTicket, "begun elsewhere")
		refuses("no state", "", otherCode, otherTicket, "begun elsewhere")
		refuses("another browser's code", state, otherCode, ticket, "refused the sign-in") // its PKCE verifier is another one
		refuses("no ticket", otherState, otherCode, "", "has not begun")
		changed := "A" + otherTicket[1:]
		if changed == otherTicket {
			changed = "B" + otherTicket[1:]
		}
		refuses("a changed ticket", otherState, otherCode, changed, "has not begun")
		state, code, ticket = signIn(t, f, browser)
		clock.add(FlowTime)
		refuses("late", state, code, ticket, "has not begun")
	}
}

// An ID token of an earlier sign-in, which an attacker might inject, does not finish this one.
func TestFlowNonce(t *testing.T) {
	f, _, _, browser := flowAt(t, "")
	state, code, ticket := signIn(t, f, browser)
	opened, ok := f.open(ticket)
	if !ok {
		t.Fatal("the ticket does not open")
	}
	tokens, refused := f.Finish(t.Context(), state, code, ticket)
	if refused != nil {
		t.Fatal(refused)
	}
	answer := (&oauth2.Token{}).WithExtra(map[string]any{"id_token": tokens.ID})
	if _, refused := f.read(t.Context(), answer, opened.Nonce, ""); refused != nil {
		t.Fatal(refused)
	}
	if _, refused := f.read(t.Context(), answer, "another", ""); refused == nil || !strings.Contains(refused.What, "not for this sign-in") {
		t.Errorf("a token of another sign-in: %v", refused)
	}
	state, code, ticket = signIn(t, f, browser)
	if opened, ok = f.open(ticket); !ok {
		t.Fatal("the ticket does not open")
	}
	opened.Nonce = "another"
	if ticket, err := f.seal(opened); err != nil {
		t.Fatal(err)
	} else if _, refused := f.Finish(t.Context(), state, code, ticket); refused == nil || !strings.Contains(refused.What, "not for this sign-in") {
		t.Errorf("a sign-in ends with the token of another one: %v", refused)
	}
	if _, refused := f.read(t.Context(), answer, "", "someone-else"); refused == nil || !strings.Contains(refused.What, "another subject") {
		t.Errorf("a token of another subject: %v", refused)
	}
}

// A session's token is renewed, until the issuer ends the session.
func TestFlowRefresh(t *testing.T) {
	f, i, _, browser := flowAt(t, "s3cret", "offline_access")
	state, code, ticket := signIn(t, f, browser)
	tokens, refused := f.Finish(t.Context(), state, code, ticket)
	if refused != nil || tokens.Refresh == "" {
		t.Fatal(tokens, refused)
	}
	fresh, refused := f.Refresh(t.Context(), tokens)
	if refused != nil || fresh.Subject != tokens.Subject || fresh.Refresh == "" {
		t.Fatal(fresh, refused)
	}
	if _, refused := f.Refresh(t.Context(), Tokens{Refresh: fresh.Refresh, Subject: "someone-else"}); refused == nil {
		t.Error("a renewed token turns into that of another client")
	}
	state, code, ticket = signIn(t, f, browser)
	if tokens, refused = f.Finish(t.Context(), state, code, ticket); refused != nil {
		t.Fatal(refused)
	}
	i.End(t, tokens.Refresh)
	if _, refused := f.Refresh(t.Context(), tokens); refused == nil || refused.Code != rpc.Unauthenticated {
		t.Errorf("after the end: %v", refused)
	}
	i.Server.Close()
	if _, refused := f.Refresh(t.Context(), tokens); refused == nil || refused.Code != rpc.Unavailable {
		t.Errorf("without an issuer: %v", refused)
	}
}

// Endpoints without TLS are refused, and an unreachable issuer is not asked again at once.
func TestFlowEndpoints(t *testing.T) {
	i := newIssuer(t)
	c := &clock{at: time.Now()}
	v, err := New(Options{Issuer: i.url(), Audience: audience, CA: i.caFile, Now: c.now})
	if err != nil {
		t.Fatal(err)
	}
	f, err := NewFlow(v, FlowOptions{Redirect: redirect})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() *rpc.Error {
		_, _, refused := f.Begin(t.Context())
		c.add(retryEvery)
		return refused
	}
	secure := i.url() + "/x"
	for _, bad := range [][2]string{{"http://issuer.example/x", secure}, {secure, "http://issuer.example/x"}, {secure, ""}} {
		i.change(func() { i.discovery = map[string]any{"authorization_endpoint": bad[0], "token_endpoint": bad[1]} })
		if refused := begin(); refused == nil || !strings.Contains(refused.What, "not https") {
			t.Errorf("%v: %v", bad, refused)
		}
	}
	i.change(func() { i.status = http.StatusInternalServerError })
	if refused := begin(); refused == nil || refused.Code != rpc.Unavailable {
		t.Error(refused)
	}
	i.change(func() {
		i.status, i.discovery = http.StatusOK, map[string]any{"authorization_endpoint": secure, "token_endpoint": secure}
	})
	c.add(-retryEvery)
	if refused := begin(); refused == nil || refused.Code != rpc.Unavailable {
		t.Errorf("the issuer was asked again at once: %v", refused)
	}
	if refused := begin(); refused != nil {
		t.Error(refused)
	}
}

// A secret that others can read, or that is missing or empty, is refused.
func TestFlowSecret(t *testing.T) {
	v, err := New(Options{Issuer: "https://issuer.example", Audience: audience})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "secret")
	if _, err := NewFlow(v, FlowOptions{SecretFile: file}); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, c := range []struct {
		text string
		mode os.FileMode
		want string
	}{{"s", 0o644, "can be read by others"}, {" \n", 0o600, "is empty"}, {"s", 0o600, ""}} {
		if err := os.WriteFile(file, []byte(c.text), c.mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(file, c.mode); err != nil {
			t.Fatal(err)
		}
		if _, err := NewFlow(v, FlowOptions{SecretFile: file}); c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
