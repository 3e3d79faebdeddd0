package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

// proof returns the proof of a certificate of w's authority, as a TLS server verifies it.
func (w *world) proof(l pki.Leaf) Proof {
	w.t.Helper()
	c := w.credentials(w.ca, l)
	leaf := c.current.Load().certificate.Leaf
	chains, err := leaf.Verify(x509.VerifyOptions{Roots: pool(c.current.Load().members), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	if err != nil {
		w.t.Fatal(err)
	}
	return CertificateProof(&tls.ConnectionState{VerifiedChains: chains})
}

// The gateway serves the listed methods to the holder of the proof in a call's context, by the same
// rules. What the call itself says about its caller does not count.
func TestGateway(t *testing.T) {
	w := newWorld(t)
	_, s := w.serve(Options{Gateway: []string{statusMethod}}, func(ctx context.Context) (*statusv1.GetStatusResponse, error) {
		p, _ := Caller(ctx)
		return &statusv1.GetStatusResponse{Name: p.Name}, nil
	})
	var proof Proof
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		s.Gateway().ServeHTTP(rw, r.WithContext(WithProof(r.Context(), proof)))
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	conn, err := grpc.NewClient(server.Listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{InsecureSkipVerify: true})))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := statusv1.NewStatusServiceClient(conn)
	const mpc, lone = "spiffe://lodge/client/mpc", "spiffe://lodge/client/lone"
	for _, c := range []struct {
		who   string
		proof Proof
		want  string
	}{
		{"a client", w.proof(pki.Leaf{Identity: mpc}), "mpc"},
		{"a client without the permission", w.proof(pki.Leaf{Identity: lone}), "forbidden"},
		{"a member without the role", w.proof(pki.Leaf{Identity: coord}), "forbidden"},
		{"a stranger", w.proof(pki.Leaf{Identity: "spiffe://lodge/client/x"}), "forbidden"},
		{"nobody", Proof{}, "unauthenticated"},
		{"no certificate", CertificateProof(&tls.ConnectionState{}), "unauthenticated"},
		{"no connection", CertificateProof(nil), "unauthenticated"},
		{"an empty chain", CertificateProof(&tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{}}}), "unauthenticated"},
		{"a token where none is accepted", TokenProof("a.b.c"), "unauthenticated"},
	} {
		proof = c.proof
		r, err := client.GetStatus(t.Context(), &statusv1.GetStatusRequest{})
		got := r.GetName()
		if err != nil {
			got = string(FromError(err).Code)
		}
		if got != c.want {
			t.Errorf("%s: %s", c.who, got)
		}
	}
	proof = w.proof(pki.Leaf{Identity: mpc})
	if _, err := client.SetLogLevel(t.Context(), &statusv1.SetLogLevelRequest{}); err == nil || !strings.Contains(err.Error(), "Unimplemented") {
		t.Errorf("a method that is not listed: %v", err)
	}
	if _, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{}); err == nil || !strings.Contains(err.Error(), "Unimplemented") {
		t.Errorf("a service that is not listed: %v", err)
	}
	for _, text := range []string{fmt.Sprint(TokenProof("secret")), fmt.Sprintf("%v %s", TokenProof("secret"), TokenProof("secret"))} {
		if strings.Contains(text, "secret") {
			t.Errorf("a printed proof shows its token: %s", text)
		}
	}
	short := w.proof(pki.Leaf{Identity: mpc, Lifetime: time.Minute})
	if left := time.Until(short.Until()); left <= 0 || left > time.Minute || !TokenProof("x").Until().IsZero() {
		t.Errorf("valid for %s", left)
	}
}

// A server without such methods has no gateway.
func TestNoGateway(t *testing.T) {
	w := newWorld(t)
	s, err := NewServer(Options{Credentials: w.credentials(w.ca, pki.Leaf{Identity: alice}), Directory: NewDirectory()})
	if err != nil {
		t.Fatal(err)
	}
	if s.Gateway() != nil {
		t.Error("there is a gateway")
	}
}
