package oidc

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

const party = "spiffe://lodge/party/alice"

type whoami struct {
	statusv1.UnimplementedStatusServiceServer
}

func (whoami) GetStatus(ctx context.Context, _ *statusv1.GetStatusRequest) (*statusv1.GetStatusResponse, error) {
	p, _ := rpc.Caller(ctx)
	return &statusv1.GetStatusResponse{Name: p.Name + " by " + string(p.Auth)}, nil
}

// A client without a certificate presents the token that its file contains at the time of the call.
func TestServer(t *testing.T) {
	i := newIssuer(t)
	k := newKey(t, "1", jose.EdDSA)
	i.publish(k)
	v, clock, _ := i.verifier()

	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ca, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, private, err := ca.Issue(pki.Leaf{Identity: party, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	caFile := write("ca.pem", ca.PEM())
	credentials, err := rpc.LoadCredentials(rpc.Files{Certificate: write("c.pem", cert), Key: write("k.pem", private), CA: caFile})
	if err != nil {
		t.Fatal(err)
	}
	d := rpc.NewDirectory()
	if err := d.AddSubject("sub-mpc", map[string]string{"groups": "mpc"}, rpc.Principal{Role: rpc.Client, Name: "mpc"}); err != nil {
		t.Fatal(err)
	}
	log := &logged{}
	s, err := rpc.NewServer(rpc.Options{
		Credentials: credentials, Directory: d, Tokens: v, Log: slog.New(slog.NewTextHandler(log, nil)),
		Rules: rpc.Rules{
			"/lodge.status.v1.StatusService/GetStatus":        rpc.Allow(rpc.Client),
			"/lodge.status.v1.StatusService/WatchStatus":      {},
			"/lodge.status.v1.StatusService/ListAuditEntries": {},
			"/lodge.status.v1.StatusService/SetLogLevel":      {},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	statusv1.RegisterStatusServiceServer(s, whoami{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	t.Cleanup(func() { s.Stop(context.Background()) })

	bare, err := rpc.LoadCredentials(rpc.Files{CA: caFile})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "token")
	conn, err := rpc.Dial(l.Addr().String(), party, bare, rpc.WithToken(rpc.TokenFile(file)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })

	var secrets []string
	claims := func(change map[string]any) map[string]any { return i.claims(clock.now(), change) }
	for _, c := range []struct {
		name, token string
		before      func()
		code        rpc.Code // empty: served
		what        string
	}{
		{name: "good", token: sign(t, k, claims(nil))},
		{name: "expired", token: sign(t, k, claims(map[string]any{"exp": clock.now().Add(-time.Second).Unix()})), code: rpc.Unauthenticated, what: "has expired"},
		{name: "renewed", token: sign(t, k, claims(map[string]any{"jti": "2"}))},
		{name: "unknown subject", token: sign(t, k, claims(map[string]any{"sub": "sub-secret"})), code: rpc.Forbidden, what: "not known here"},
		{name: "no group", token: sign(t, k, claims(map[string]any{"groups": []string{"secret"}})), code: rpc.Forbidden, what: "lacks the required claim groups"},
		{name: "wrong key", token: sign(t, newKey(t, "1", jose.EdDSA), claims(nil)), code: rpc.Unauthenticated, what: "not signed"},
		{name: "not a token", token: "secret", code: rpc.Unauthenticated, what: "compact form"},
		{name: "oversized", token: sign(t, k, claims(map[string]any{"x": strings.Repeat("x", 12<<10)})), code: rpc.Unauthenticated, what: "more than 16384"},
		{name: "issuer down", before: func() { i.server.Close(); clock.add(retryEvery) }, token: sign(t, k, claims(map[string]any{"jti": "3"}))},
		{name: "issuer down, new key", token: sign(t, newKey(t, "2", jose.EdDSA), claims(nil)), code: rpc.Unavailable, what: "cannot be fetched"},
	} {
		if c.before != nil {
			c.before()
		}
		write("token", []byte(c.token+"\n"))
		secrets = append(secrets, c.token)
		r, err := statusv1.NewStatusServiceClient(conn).GetStatus(t.Context(), &statusv1.GetStatusRequest{})
		e := rpc.FromError(err)
		if c.code == "" && (err != nil || r.GetName() != "mpc by token") || c.code != "" && (e == nil || e.Code != c.code || !strings.Contains(e.What, c.what)) {
			t.Errorf("%s: %v, %v", c.name, r, e)
		}
	}
	for _, secret := range append(secrets, "sub-secret") {
		for _, part := range strings.Split(secret, ".") {
			if len(part) > 5 && strings.Contains(log.text(), part) {
				t.Errorf("the log shows %s", part)
			}
		}
	}
	if !strings.Contains(log.text(), "has expired") {
		t.Errorf("the log does not say who was refused: %s", log.text())
	}
}
