package rpc

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	popkv1 "github.com/lodge-mpc/lodge/proto/lodge/popk/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/pki"
)

const (
	statusMethod = "/lodge.status.v1.StatusService/GetStatus"
	alice        = "spiffe://lodge/party/alice"
	coord        = "coordinator.lodge.example"
)

// handler implements GetStatus with the test's function.
type handler struct {
	statusv1.UnimplementedStatusServiceServer
	get func(ctx context.Context) (*statusv1.GetStatusResponse, error)
}

func (h handler) GetStatus(ctx context.Context, _ *statusv1.GetStatusRequest) (*statusv1.GetStatusResponse, error) {
	return h.get(ctx)
}

type world struct {
	t      *testing.T
	dir    string
	ca     *pki.Authority
	caFile string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ca, err := pki.NewAuthority("test", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, dir: t.TempDir(), ca: ca}
	w.caFile = w.write("ca.pem", ca.PEM())
	return w
}

func (w *world) write(name string, b []byte) string {
	p := filepath.Join(w.dir, name)
	if err := os.WriteFile(p, b, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return p
}

// credentials returns credentials with a certificate from issuer, which trust w's authority.
func (w *world) credentials(issuer *pki.Authority, l pki.Leaf) *Credentials {
	w.t.Helper()
	if l.Lifetime == 0 {
		l.Lifetime = time.Hour
	}
	cert, key, err := issuer.Issue(l)
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := LoadCredentials(Files{Certificate: w.write("c.pem", cert), Key: w.write("k.pem", key), CA: w.caFile})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

func (w *world) serve(o Options, get func(ctx context.Context) (*statusv1.GetStatusResponse, error)) (string, *Server) {
	w.t.Helper()
	if o.Credentials == nil {
		o.Credentials = w.credentials(w.ca, pki.Leaf{Identity: alice})
	}
	if o.Directory == nil {
		o.Directory = NewDirectory()
		for id, p := range map[string]Principal{
			"spiffe://lodge/party/bob":   {Role: Peer, Name: "bob", Party: 1},
			coord:                        {Role: Coordinator, Name: "coordinator", Party: -1},
			"spiffe://lodge/client/mpc":  {Role: Client, Name: "mpc", Party: -1, Permissions: []string{"status"}},
			"spiffe://lodge/client/lone": {Role: Client, Name: "lone", Party: -1},
		} {
			if err := o.Directory.Add(id, p); err != nil {
				w.t.Fatal(err)
			}
		}
	}
	if o.Rules == nil {
		o.Rules = Rules{statusMethod: Allow(Peer, Client).With("status")}
	}
	o.Rules = maps.Clone(o.Rules)
	for _, method := range []string{"SetLogLevel", "WatchStatus", "ListAuditEntries"} {
		o.Rules["/lodge.status.v1.StatusService/"+method] = Allow(Self)
	}
	s, err := NewServer(o)
	if err != nil {
		w.t.Fatal(err)
	}
	statusv1.RegisterStatusServiceServer(s, handler{get: get})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		w.t.Fatal(err)
	}
	go func() {
		if err := s.Serve(l); err != nil {
			w.t.Error(err)
		}
	}()
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s.Stop(ctx)
	})
	return l.Addr().String(), s
}

func (w *world) call(addr, identity string, c *Credentials) (*statusv1.GetStatusResponse, error) {
	w.t.Helper()
	conn, err := Dial(addr, identity, c)
	if err != nil {
		w.t.Fatal(err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
}

func whoami(ctx context.Context) (*statusv1.GetStatusResponse, error) {
	p, _ := Caller(ctx)
	return &statusv1.GetStatusResponse{Name: p.Name}, nil
}

func TestWhoMayCall(t *testing.T) {
	w := newWorld(t)
	stranger, err := pki.NewAuthority("stranger", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := w.serve(Options{}, whoami)
	cases := []struct {
		name   string
		issuer *pki.Authority
		leaf   pki.Leaf
		want   string // name, or
		code   Code
		what   string
	}{
		{name: "peer", leaf: pki.Leaf{Identity: "spiffe://lodge/party/bob"}, want: "bob"},
		{name: "client with permission", leaf: pki.Leaf{Identity: "spiffe://lodge/client/mpc"}, want: "mpc"},
		{name: "client without permission", leaf: pki.Leaf{Identity: "spiffe://lodge/client/lone"}, code: Forbidden, what: "lacks the permission"},
		{name: "wrong role", leaf: pki.Leaf{Identity: coord}, code: Forbidden, what: "may not call"},
		{name: "unknown identity", leaf: pki.Leaf{Identity: "spiffe://lodge/party/mallory"}, code: Forbidden, what: "no identity of the certificate is known here"},
		{name: "two identities", leaf: pki.Leaf{Identity: "spiffe://lodge/party/bob", Hosts: []string{coord}}, code: Forbidden, what: "2 members"},
		{name: "another authority", issuer: stranger, leaf: pki.Leaf{Identity: "spiffe://lodge/party/bob"}, code: Unavailable},
		{name: "expired", leaf: pki.Leaf{Identity: "spiffe://lodge/party/bob", Lifetime: -time.Second}, code: Unavailable},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			if c.issuer == nil {
				c.issuer = w.ca
			}
			r, err := w.call(addr, alice, w.credentials(c.issuer, c.leaf))
			if c.want != "" {
				if err != nil || r.GetName() != c.want {
					t.Fatalf("got %v, %v", r, err)
				}
				return
			}
			e := FromError(err)
			if e == nil || e.Code != c.code || !strings.Contains(e.What, c.what) {
				t.Fatalf("got %v, want %s ... %s", e, c.code, c.what)
			}
		})
	}
}

func TestClientPinsTheServer(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.serve(Options{}, whoami)
	_, err := w.call(addr, "spiffe://lodge/party/carol", w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"}))
	if err == nil || !strings.Contains(err.Error(), "as pinned by the roster") {
		t.Fatalf("got %v", err)
	}
}

func TestClientAuthorityCannotNameMembers(t *testing.T) {
	w := newWorld(t)
	clients, err := pki.NewAuthority("clients", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := w.ca.Issue(pki.Leaf{Identity: alice, Lifetime: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	creds, err := LoadCredentials(Files{
		Certificate: w.write("s.pem", cert), Key: w.write("sk.pem", key),
		CA: w.caFile, ClientCA: w.write("clients.pem", clients.PEM()),
	})
	if err != nil {
		t.Fatal(err)
	}
	addr, _ := w.serve(Options{Credentials: creds}, whoami)
	if r, err := w.call(addr, alice, w.credentials(clients, pki.Leaf{Identity: "spiffe://lodge/client/mpc"})); err != nil || r.GetName() != "mpc" {
		t.Fatalf("client: %v, %v", r, err)
	}
	_, err = w.call(addr, alice, w.credentials(clients, pki.Leaf{Identity: "spiffe://lodge/party/bob"}))
	if e := FromError(err); e == nil || e.Code != Forbidden || !strings.Contains(e.What, "authority") {
		t.Fatalf("forged member: %v", err)
	}
	_, err = w.call(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc"}))
	if e := FromError(err); e == nil || e.Code != Forbidden {
		t.Fatalf("client from the members' authority: %v", err)
	}
}

func TestNoTLSNoService(t *testing.T) {
	if _, err := NewServer(Options{Directory: NewDirectory()}); err == nil {
		t.Fatal("a server without TLS was made")
	}
	if _, err := NewServer(Options{Credentials: &Credentials{}}); err == nil {
		t.Fatal("a server without a directory was made")
	}
	if _, err := Dial("127.0.0.1:1", alice, nil); err == nil {
		t.Fatal("dialled without TLS")
	}
	w := newWorld(t)
	addr, _ := w.serve(Options{}, whoami)
	creds := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"})
	for name, change := range map[string]func(*tls.Config){
		"no certificate": func(c *tls.Config) { c.GetClientCertificate = nil },
		"TLS 1.2":        func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS12, tls.VersionTLS12 },
	} {
		cfg := creds.Client(alice)
		change(cfg)
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(credentials.NewTLS(cfg)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		_, err = statusv1.NewStatusServiceClient(conn).GetStatus(ctx, &statusv1.GetStatusRequest{})
		cancel()
		conn.Close()
		if err == nil {
			t.Errorf("%s: served", name)
		}
	}
}

func TestErrorsSurviveTheWire(t *testing.T) {
	w := newWorld(t)
	var out error
	addr, _ := w.serve(Options{UnaryTimeout: 50 * time.Millisecond}, func(ctx context.Context) (*statusv1.GetStatusResponse, error) {
		if out == nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if out.Error() == "panic" {
			panic("secret value")
		}
		return nil, out
	})
	creds := w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"})
	get := func() *Error {
		_, err := w.call(addr, alice, creds)
		return FromError(err)
	}
	for code := range grpcCodes {
		out = &Error{Code: code, What: "what it was", Next: "what to do"}
		if e := get(); *e != *out.(*Error) {
			t.Errorf("%s: got %v", code, e)
		}
	}
	for _, hidden := range []error{errors.New("secret path"), errors.New("panic")} {
		out = hidden
		if e := get(); e.Code != Internal || strings.Contains(e.What, "secret") {
			t.Errorf("got %v", e)
		}
	}
	out = nil
	if e := get(); e.Code != TimedOut {
		t.Errorf("deadline: got %v", e)
	}
	if !errors.Is(&Error{Code: Busy, What: "x"}, &Error{Code: Busy}) || errors.Is(&Error{Code: Busy}, &Error{Code: Burnt}) {
		t.Error("errors.Is does not compare codes")
	}
}

func TestEveryMethodNeedsARule(t *testing.T) {
	w := newWorld(t)
	creds := w.credentials(w.ca, pki.Leaf{Identity: alice})
	for name, rules := range map[string]Rules{
		"missing":     {},
		"superfluous": {statusMethod: Anyone, "/lodge.status.v1.StatusService/Other": Anyone},
	} {
		s, err := NewServer(Options{Credentials: creds, Directory: NewDirectory(), Rules: rules})
		if err != nil {
			t.Fatal(err)
		}
		statusv1.RegisterStatusServiceServer(s, handler{get: whoami})
		if err := s.Serve(nil); err == nil || !strings.Contains(err.Error(), "rule") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOversizedMessage(t *testing.T) {
	w := newWorld(t)
	o := Options{Rules: Rules{statusMethod: Anyone}}
	for _, m := range []string{"Start", "GetStatus", "Watch", "Cancel", "Activate", "Prove", "Verify"} {
		o.Rules["/lodge.popk.v1.PopkService/"+m] = Anyone
	}
	o.Credentials = w.credentials(w.ca, pki.Leaf{Identity: alice})
	o.Directory = NewDirectory()
	if err := o.Directory.Add("spiffe://lodge/party/bob", Principal{Role: Peer, Name: "bob"}); err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{"SetLogLevel", "WatchStatus", "ListAuditEntries"} {
		o.Rules["/lodge.status.v1.StatusService/"+method] = Allow(Self)
	}
	s, err := NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	statusv1.RegisterStatusServiceServer(s, handler{get: whoami})
	popkv1.RegisterPopkServiceServer(s, popkv1.UnimplementedPopkServiceServer{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Stop(t.Context())
	conn, err := Dial(l.Addr().String(), alice, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	// The client refuses to send it. If the client does not limit messages, the server refuses it.
	req := &jobv1.CancelRequest{Reason: strings.Repeat("x", MaxMessage)}
	for _, opt := range [][]grpc.CallOption{nil, {grpc.MaxCallSendMsgSize(2 * MaxMessage)}} {
		_, err = popkv1.NewPopkServiceClient(conn).Cancel(t.Context(), req, opt...)
		if e := FromError(err); e == nil || e.Code != TooLarge {
			t.Fatalf("got %v", err)
		}
	}
}

func TestHealthAndStop(t *testing.T) {
	w := newWorld(t)
	entered, leave := make(chan struct{}), make(chan struct{})
	addr, s := w.serve(Options{Reflection: true}, func(ctx context.Context) (*statusv1.GetStatusResponse, error) {
		close(entered)
		<-leave
		return &statusv1.GetStatusResponse{Name: "late"}, nil
	})
	conn, err := Dial(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/party/bob"}))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	check := func() healthpb.HealthCheckResponse_ServingStatus {
		r, err := healthpb.NewHealthClient(conn).Check(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		return r.GetStatus()
	}
	if st := check(); st != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("before ready: %v", st)
	}
	s.SetReady(true)
	if st := check(); st != healthpb.HealthCheckResponse_SERVING {
		t.Fatalf("when ready: %v", st)
	}
	result := make(chan error, 1)
	go func() {
		_, err := statusv1.NewStatusServiceClient(conn).GetStatus(context.Background(), &statusv1.GetStatusRequest{})
		result <- err
	}()
	<-entered
	stopped := make(chan struct{})
	go func() { s.Stop(t.Context()); close(stopped) }()
	time.Sleep(20 * time.Millisecond)
	close(leave)
	if err := <-result; err != nil {
		t.Fatalf("a running call was cut: %v", err)
	}
	<-stopped
}

func TestDirectoryRefusesDuplicatesAndPatterns(t *testing.T) {
	d := NewDirectory()
	if err := d.Add("a.example", Principal{Name: "a"}); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"a.example", "", "*.example", "a b"} {
		if err := d.Add(id, Principal{Name: "b"}); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
}

// A call fails if the certificate has expired since the connection was made.
func TestCertificateExpiresOnAConnection(t *testing.T) {
	w := newWorld(t)
	addr, _ := w.serve(Options{}, whoami)
	conn, err := Dial(addr, alice, w.credentials(w.ca, pki.Leaf{Identity: "spiffe://lodge/client/mpc", Lifetime: 2 * time.Second})) // in whole seconds
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	call := func() error {
		_, err := statusv1.NewStatusServiceClient(conn).GetStatus(t.Context(), &statusv1.GetStatusRequest{})
		return err
	}
	if err := call(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2100 * time.Millisecond)
	if e := FromError(call()); e == nil || e.Code != Unauthenticated || !strings.Contains(e.What, "has expired") {
		t.Errorf("with an expired certificate: %v", e)
	}
}

// A chain is valid until the first of its certificates expires.
func TestUntilTheFirstExpires(t *testing.T) {
	day := func(d int) *x509.Certificate { return &x509.Certificate{NotAfter: time.Unix(0, 0).AddDate(0, 0, d)} }
	for _, chain := range [][]*x509.Certificate{{day(1)}, {day(1), day(2)}, {day(2), day(1)}, {day(3), day(2), day(1)}, {day(2), day(1), day(3)}} {
		if got := until(chain); !got.Equal(day(1).NotAfter) {
			t.Errorf("a chain of %d ends at %s", len(chain), got)
		}
	}
}
