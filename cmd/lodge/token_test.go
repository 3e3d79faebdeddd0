package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jose "github.com/go-jose/go-jose/v4"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// With --token-file the client needs no certificate, and the file may change between two calls.
func TestJobsWithToken(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	var issuer *httptest.Server
	answers := map[string]func() any{
		"/.well-known/openid-configuration": func() any {
			return map[string]string{"issuer": issuer.URL, "jwks_uri": issuer.URL + "/keys"}
		},
		"/keys": func() any { return jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "1"}}} },
	}
	issuer = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := json.NewEncoder(w).Encode(answers[r.URL.Path]()); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(issuer.Close)
	dir := t.TempDir()
	file, ca := filepath.Join(dir, "token"), filepath.Join(dir, "issuer.pem")
	write := func(path string, b []byte) {
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issuer.Certificate().Raw}))
	token := func(subject string) {
		s, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: private, KeyID: "1"}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := json.Marshal(map[string]any{"iss": issuer.URL, "aud": "lodge", "sub": subject, "exp": time.Now().Add(time.Minute).Unix()})
		if err != nil {
			t.Fatal(err)
		}
		signed, err := s.Sign(body)
		if err != nil {
			t.Fatal(err)
		}
		text, err := signed.CompactSerialize()
		if err != nil {
			t.Fatal(err)
		}
		write(file, []byte(text+"\n"))
	}
	cluster := lodgetest.UnreachableCluster(t, func(f *config.CoordinatorFile) {
		f.OIDC = &config.OIDC{Issuer: issuer.URL, Audience: "lodge", CA: ca}
		f.Clients = append(f.Clients, config.Client{Name: "ci", OIDCSubject: "sub-ci", Permissions: []string{config.PermStatus}})
	})

	token("sub-ci")
	out, err := lodgetest.Run(t, "jobs", "list", "--cluster", cluster, "--token-file", file)
	if err != nil || out != "no jobs\n" {
		t.Errorf("%v: %s", err, out)
	}
	configuration := filepath.Join(dir, "client.yaml")
	roster, err := config.LoadRoster(filepath.Join(cluster, cli.RosterFile))
	if err != nil {
		t.Fatal(err)
	}
	write(configuration, fmt.Appendf(nil, "name: ci\ntls: {ca: %s}\ncoordinator: {address: %q, identity: %s, token_file: token}\n",
		filepath.Join(cluster, "ca.pem"), roster.Coordinator.Address, roster.Coordinator.Identity))
	if out, err := lodgetest.Run(t, "jobs", "list", "--client", configuration); err != nil || out != "no jobs\n" {
		t.Errorf("with a client's configuration: %v: %s", err, out)
	}
	token("sub-other")
	if _, err := lodgetest.Run(t, "jobs", "list", "--client", configuration); !errors.Is(err, &rpc.Error{Code: rpc.Forbidden}) {
		t.Errorf("with a client's configuration: %v", err)
	}
	if _, err := lodgetest.Run(t, "jobs", "list", "--cluster", cluster, "--token-file", file); !errors.Is(err, &rpc.Error{Code: rpc.Forbidden}) {
		t.Error(err)
	}
	token("sub-ci") // with the operator's certificate
	both := []string{"jobs", "list", "--cluster", cluster, "--token-file", file, "--identity", filepath.Join(cluster, "clients", "operator.pem")}
	if _, err := lodgetest.Run(t, both...); !errors.Is(err, &rpc.Error{Code: rpc.Forbidden}) || !strings.Contains(err.Error(), "the token does not") {
		t.Error(err)
	}
	if _, err := lodgetest.Run(t, "jobs", "list", "--cluster", cluster, "--token-file", ca+".none"); !errors.Is(err, &rpc.Error{Code: rpc.Unauthenticated}) {
		t.Error(err)
	}
}
