package rpc

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/metadata"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// issued maps the text of tokens to their claims.
type issued map[string]Token

func (issued) Issuer() string { return "https://issuer.example" }

func (i issued) Verify(_ context.Context, raw string) (Token, *Error) {
	if t, ok := i[raw]; ok {
		return t, nil
	}
	return Token{}, Errorf(Unauthenticated, "", "no such token")
}

// callWith calls with a certificate, a token, both or neither.
func (w *world) callWith(addr string, c *Credentials, token string) (*statusv1.GetStatusResponse, error) {
	w.t.Helper()
	var more []DialOption
	if token != "" {
		more = append(more, WithToken(func(context.Context) (string, error) { return token, nil }))
	}
	conn, err := Dial(addr, alice, c, more...)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(w.t.Context(), 5*time.Second)
	defer cancel()
	return statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
}

// bare returns the credentials of a client without a certificate.
func (w *world) bare() *Credentials {
	w.t.Helper()
	c, err := LoadCredentials(Files{CA: w.caFile})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func TestCertificateOrToken(t *testing.T) {
	w := newWorld(t)
	d := NewDirectory()
	for _, err := range []error{
		d.Add("spiffe://lodge/party/bob", Principal{Role: Peer, Name: "bob", Party: 1}),
		d.Add("spiffe://lodge/client/mpc", Principal{Role: Client, Name: "mpc", Permissions: []string{"status"}}),
		d.AddSubject("sub-mpc", nil, Principal{Role: Client, Name: "mpc", Permissions: []string{"status"}}),
		d.AddSubject("sub-web", map[string]string{"groups": "mpc", "tenant": "demo", "checked": "true"}, Principal{Role: Client, Name: "web", Permissions: []string{"status"}}),
		d.AddSubject("sub-lone", nil, Principal{Role: Client, Name: "lone"}),
		d.AddSubject("spiffe://lodge/party/bob", nil, Principal{Role: Client, Name: "liar", Permissions: []string{"status"}}),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	good := map[string]any{"groups": []any{"x", "mpc"}, "tenant": "demo", "checked": true}
	without := func(claim string, value any) map[string]any {
		c := map[string]any{claim: value}
		for k, v := range good {
			if k != claim {
				c[k] = v
			}
		}
		return c
	}
	tokens := issued{
		"mpc": {Subject: "sub-mpc"}, "web": {Subject: "sub-web", Claims: good}, "lone": {Subject: "sub-lone"}, "unknown": {Subject: "sub-x"},
		"web-1": {Subject: "sub-web"}, "web-2": {Subject: "sub-web", Claims: without("groups", []any{"mpcx", 7})},
		"web-3": {Subject: "sub-web", Claims: without("tenant", []any{})}, "web-4": {Subject: "sub-web", Claims: without("checked", "false")},
		"web-5":    {Subject: "sub-web", Claims: without("tenant", map[string]any{"demo": true})},
		"like-bob": {Subject: "spiffe://lodge/party/bob"},
	}
	addr, _ := w.serve(Options{Directory: d, Tokens: tokens, Rules: Rules{statusMethod: Allow(Peer, Client).With("status")}},
		func(ctx context.Context) (*statusv1.GetStatusResponse, error) {
			p, _ := Caller(ctx)
			return &statusv1.GetStatusResponse{Name: string(p.Role) + " " + p.Name + " " + string(p.Auth)}, nil
		})
	none := w.bare()
	bob := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"})
	mpc := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc"})
	stranger := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/stranger"})
	for _, c := range []struct {
		name        string
		credentials *Credentials
		token       string
		want        string // who, or
		code        Code
		what, next  string
	}{
		{name: "token", credentials: none, token: "mpc", want: "client mpc token"},
		{name: "token with claims", credentials: none, token: "web", want: "client web token"},
		{name: "certificate", credentials: mpc, want: "client mpc certificate"},
		{name: "peer", credentials: bob, want: "peer bob certificate"},
		{name: "both", credentials: mpc, token: "mpc", want: "client mpc certificate+token"},
		{name: "neither", credentials: none, code: Unauthenticated, what: "neither", next: "bearer token of https://issuer.example"},
		{name: "bad token", credentials: none, token: "bad", code: Unauthenticated, what: "no such token"},
		{name: "unknown subject", credentials: none, token: "unknown", code: Forbidden, what: "not known here", next: "subject"},
		{name: "no permission", credentials: none, token: "lone", code: Forbidden, what: "lacks the permission"},
		{name: "no claims", credentials: none, token: "web-1", code: Forbidden, what: "lacks the required claim"},
		{name: "another group", credentials: none, token: "web-2", code: Forbidden, what: "lacks the required claim groups"},
		{name: "no tenant", credentials: none, token: "web-3", code: Forbidden, what: "lacks the required claim tenant"},
		{name: "not checked", credentials: none, token: "web-4", code: Forbidden, what: "lacks the required claim checked"},
		{name: "object", credentials: none, token: "web-5", code: Forbidden, what: "lacks the required claim tenant"},
		{name: "two clients", credentials: mpc, token: "web", code: Forbidden, what: "and the token does not"},
		{name: "certificate and bad token", credentials: mpc, token: "bad", code: Unauthenticated, what: "no such token"},
		{name: "unknown certificate and token", credentials: stranger, token: "mpc", code: Forbidden, what: "no identity of the certificate is known here"},
		{name: "peer with a token", credentials: bob, token: "mpc", code: Forbidden, what: "in addition to its certificate"},
		{name: "a peer's name as subject", credentials: none, token: "like-bob", want: "client liar token"},
		{name: "too long", credentials: none, token: strings.Repeat("x", MaxToken+1), code: Unauthenticated, what: "at most 16384"},
		{name: "far too long", credentials: none, token: strings.Repeat("x", 4*MaxToken), code: Internal, what: "header list size"},
		{name: "space", credentials: none, token: "mpc x", code: Unauthenticated, what: "no such token"},
		{name: "empty", credentials: none, token: " ", code: Unauthenticated, what: "no such token"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r, err := w.callWith(addr, c.credentials, c.token)
			if c.want != "" {
				if err != nil || r.GetName() != c.want {
					t.Fatalf("got %v, %v", r, err)
				}
				return
			}
			e := FromError(err)
			if e == nil || e.Code != c.code || !strings.Contains(e.What, c.what) || !strings.Contains(e.Next, c.next) {
				t.Fatalf("got %v", e)
			}
		})
	}
}

// A process without a token issuer refuses tokens, and connections without a certificate.
func TestNoTokensAreTaken(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.serve(Options{}, whoami)
	_, err := w.callWith(addr, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc"}), "mpc")
	if e := FromError(err); e == nil || e.Code != Unauthenticated || !strings.Contains(e.What, "this process accepts no tokens") {
		t.Errorf("got %v", e)
	}
	_, err = w.callWith(addr, w.bare(), "mpc")
	if e := FromError(err); e == nil || e.Code != Unavailable { // the handshake fails
		t.Errorf("got %v", e)
	}
	if _, err := NewServer(Options{Credentials: w.bare(), Directory: NewDirectory()}); err == nil {
		t.Error("a server without a certificate was made")
	}
}

func TestBearer(t *testing.T) {
	for _, c := range []struct {
		values []string
		want   string
		ok     bool
	}{
		{nil, "", true}, {[]string{"Bearer abc"}, "abc", true}, {[]string{"bearer abc"}, "abc", true}, {[]string{"Bearer"}, "", false},
		{[]string{"Bearer "}, "", false}, {[]string{"Basic abc"}, "", false}, {[]string{""}, "", false}, {[]string{"Bearer a", "Bearer a"}, "", false},
	} {
		got, refused := bearer(metadata.MD{"authorization": c.values})
		if got != c.want || (refused == nil) != c.ok {
			t.Errorf("%q: %q, %v", c.values, got, refused)
		}
	}
}

// The token file is read for every call, and errors about it do not reveal its content.
func TestTokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	source := TokenFile(path)
	for content, want := range map[string]string{"abc\n": "abc", "  def.ghi.jkl": "def.ghi.jkl", "": "", "secret one": "", "secret\x00": "", strings.Repeat("secret", MaxToken): ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := source(t.Context())
		if got != want || (err == nil) != (want != "") || err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%.20q: %q, %v", content, got, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	addr, _ := w.serve(Options{Tokens: issued{}}, whoami)
	conn, err := Dial(addr, alice, w.bare(), WithToken(source))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_, err = statusv1.NewStatusServiceClient(conn).GetStatus(t.Context(), &statusv1.GetStatusRequest{})
	if e := FromError(err); e == nil || e.Code != Unauthenticated || !strings.Contains(e.What, path) || e.Next == "" {
		t.Errorf("got %v", e)
	}
}

func TestDirectoryRefusesSubjects(t *testing.T) {
	d := NewDirectory()
	if err := d.AddSubject("s", nil, Principal{Role: Client, Name: "a"}); err != nil {
		t.Fatal(err)
	}
	for sub, p := range map[string]Principal{
		"s": {Role: Client, Name: "b"}, "": {Role: Client, Name: "b"}, "peer": {Role: Peer, Name: "b"}, "coordinator": {Role: Coordinator, Name: "b"},
	} {
		if err := d.AddSubject(sub, nil, p); err == nil {
			t.Errorf("%q was taken", sub)
		}
	}
}
