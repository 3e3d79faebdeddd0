package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
	statusv1 "github.com/lodge-mpc/lodge/proto/lodge/status/v1"
	"github.com/lodge-mpc/lodge/services/host/audit"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/status"
	"github.com/lodge-mpc/lodge/services/store/disk"
)

const (
	party  = "spiffe://lodge/party/alice"
	prefix = "spiffe://lodge/client/"
)

// world is a process with a status service and a console, and the authorities of its callers.
type world struct {
	t                testing.TB
	dir              string
	members, clients *pki.Authority
	credentials      *rpc.Credentials
	console          *Console
	metrics          *metrics.Metrics
	issuer           *oidctest.Issuer
	clock            *clock
	log              *logged
	grpc, web        string // addresses
}

// clock is the machine's clock with an offset.
type clock struct {
	mu  sync.Mutex
	off time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.off)
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off += d
}

// logged records a log.
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

// setting changes a world before it starts.
type setting func(*world, *config.Console)

// withIssuer adds a real issuer, which knows the console as a client.
func withIssuer(scopes ...string) setting {
	return func(w *world, f *config.Console) {
		f.URL, f.Scopes, f.ClientSecretFile = "https://"+w.web, scopes, w.write("secret", []byte("s3cret"))
		w.issuer = oidctest.New(w.t, oidctest.Client{ID: "lodge-alice", Secret: "s3cret", Redirect: f.URL + callbackPath})
	}
}

// newWorld starts a process. Its clients are anna (status and operate, tenant a), ben (status,
// tenant b), cleo (nothing), and the subject that oidctest.User has (status, tenant a).
func newWorld(t testing.TB, settings ...setting) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), clock: &clock{}, log: &logged{}}
	w.members, w.clients = w.authority("members"), w.authority("clients")
	l := w.listen()
	w.web = l.Addr().String()
	f := config.Console{
		Listen: w.web, SessionTime: config.Duration(8 * time.Hour), MaxSessions: 256, MaxStreams: 512, History: config.Duration(time.Minute),
	}
	for _, s := range settings {
		s(w, &f)
	}
	w.leaf(w.members, "alice", party)
	w.leaf(w.members, "bob", "spiffe://lodge/party/bob")
	for _, name := range []string{"anna", "ben", "cleo", "stranger"} {
		w.leaf(w.clients, name, prefix+name)
	}
	w.leaf(w.clients, "forged", party) // the clients' authority must not make members
	w.start(l, f)
	return w
}

func (w *world) start(l net.Listener, f config.Console) {
	t := w.t
	var err error
	w.credentials, err = rpc.LoadCredentials(rpc.Files{
		Certificate: w.path("alice.pem"), Key: w.path("alice.key"), CA: w.path("members.pem"), ClientCA: w.path("clients.pem"),
	})
	w.must(err)
	log := slog.New(slog.NewTextHandler(w.log, nil))
	var tokens rpc.Tokens
	if w.issuer != nil {
		tokens, err = oidc.New(oidc.Options{Issuer: w.issuer.URL, Audience: "lodge-alice", CA: w.issuer.CA, Now: w.clock.now, Log: log})
		w.must(err)
	}
	w.metrics = metrics.New("v1", metrics.Party)
	rules := rpc.Rules{}
	for _, more := range []rpc.Rules{status.Rules, Rules} {
		for m, r := range more {
			rules[m] = r
		}
	}
	s, err := rpc.NewServer(w.metrics.Server(rpc.Options{
		Credentials: w.credentials, Directory: w.directory(), Tokens: tokens, Rules: rules, Log: log, Gateway: Gateway(f),
	}))
	w.must(err)
	w.console, err = Register(s, Options{
		Config: f, Name: "alice", Role: "party", Version: "v1", Credentials: w.credentials, Tokens: tokens, Metrics: w.metrics, Log: log, Now: w.clock.now,
	})
	w.must(err)
	chain, err := audit.Open(filepath.Join(w.dir, "audit"), audit.Options{Party: "alice"})
	w.must(err)
	for _, e := range []audit.Entry{
		{Event: audit.Delivered, Actor: "anna", Tenant: "a", Objects: []string{"batch/of-a"}}, {Event: audit.Delivered, Actor: "ben", Tenant: "b", Objects: []string{"batch/of-b"}},
	} {
		_, err := chain.Append(e)
		w.must(err)
	}
	statusv1.RegisterStatusServiceServer(s, &status.Service{
		Name: "alice", Version: "v1", Started: time.Now(), Log: log, Ready: s.Ready, Running: func() int { return 0 },
		Certificate: w.credentials.NotAfter, Disks: disk.New(0, disk.Volume{Name: disk.Audit, Dir: w.dir}), Audit: chain,
	})
	s.SetReady(true)
	gl := w.listen()
	w.grpc = gl.Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := s.Serve(gl); err != nil && !errors.Is(err, grpc.ErrServerStopped) { // a short test
			t.Error(err)
		}
	})
	serving.Go(func() {
		if err := w.console.Serve(ctx, l); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		cancel()
		s.Stop(ctx)
		serving.Wait()
		chain.Close()
	})
}

func (w *world) directory() *rpc.Directory {
	d := rpc.NewDirectory()
	w.must(d.Add(party, rpc.Principal{Role: rpc.Self, Name: "alice", Party: 0}))
	w.must(d.Add("spiffe://lodge/party/bob", rpc.Principal{Role: rpc.Peer, Name: "bob", Party: 1}))
	for _, p := range []rpc.Principal{
		{Name: "anna", Permissions: []string{config.PermStatus, config.PermOperate}, Tenants: []string{"a"}},
		{Name: "ben", Permissions: []string{config.PermStatus}, Tenants: []string{"b"}},
		{Name: "cleo"},
	} {
		p.Role, p.Party, p.Identity = rpc.Client, -1, prefix+p.Name
		w.must(d.Add(p.Identity, p))
	}
	w.must(d.AddSubject(oidctest.Subject, nil, rpc.Principal{
		Role: rpc.Client, Name: "olga", Party: -1, Permissions: []string{config.PermStatus}, Tenants: []string{"a"},
	}))
	return d
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) path(name string) string { return filepath.Join(w.dir, name) }

func (w *world) write(name string, b []byte) string {
	w.must(os.WriteFile(w.path(name), b, 0o600))
	return w.path(name)
}

func (w *world) listen() net.Listener {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	return l
}

func (w *world) authority(name string) *pki.Authority {
	a, err := pki.NewAuthority(name, time.Hour)
	w.must(err)
	w.write(name+".pem", a.PEM())
	return a
}

func (w *world) leaf(a *pki.Authority, name, identity string) {
	cert, key, err := a.Issue(pki.Leaf{Identity: identity, Hosts: []string{"127.0.0.1"}, Lifetime: 50 * time.Minute})
	w.must(err)
	w.write(name+".pem", cert)
	w.write(name+".key", key)
}

// dial connects to the gRPC server with a certificate.
func (w *world) dial(name string) *grpc.ClientConn {
	c, err := rpc.LoadCredentials(rpc.Files{Certificate: w.path(name + ".pem"), Key: w.path(name + ".key"), CA: w.path("members.pem")})
	w.must(err)
	conn, err := rpc.Dial(w.grpc, party, c)
	w.must(err)
	w.t.Cleanup(func() { conn.Close() })
	return conn
}

// link returns a link of a client.
func (w *world) link(name string) string {
	w.t.Helper()
	r, err := consolev1.NewConsoleServiceClient(w.dial(name)).CreateLink(w.t.Context(), &consolev1.CreateLinkRequest{})
	w.must(err)
	return r.GetPath()
}

// browser sends requests as the pages of the console do.
type browser struct {
	*world
	http *http.Client
}

// browser returns a browser that has the certificate of a client, or none.
func (w *world) browser(name string) *browser {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.members.PEM())
	if w.issuer != nil {
		roots.AddCert(w.issuer.Server.Certificate())
	}
	c := &tls.Config{RootCAs: roots}
	if name != "" {
		cert, err := tls.LoadX509KeyPair(w.path(name+".pem"), w.path(name+".key"))
		w.must(err)
		c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &cert, nil }
	}
	jar, err := cookiejar.New(nil)
	w.must(err)
	transport := &http.Transport{TLSClientConfig: c, ForceAttemptHTTP2: true}
	w.t.Cleanup(transport.CloseIdleConnections)
	return &browser{w, &http.Client{Jar: jar, Transport: transport}}
}

// in returns a browser that has signed in with a certificate.
func (w *world) in(name string) *browser {
	w.t.Helper()
	b := w.browser(name)
	if a := b.post("/signin/certificate", ""); a.status != http.StatusNoContent {
		w.t.Fatalf("%s: %d %s", name, a.status, a.body)
	}
	return b
}

// answer is a response.
type answer struct {
	status int
	header http.Header
	body   []byte
	from   *url.URL // after redirections
}

// code returns the code of an error.
func (a answer) code() string {
	var f failure
	json.Unmarshal(a.body, &f)
	return string(f.Code)
}

// send sends a request with headers, NAME and VALUE in turn.
func (b *browser) send(method, path, body string, headers ...string) answer {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), method, "https://"+b.web+path, bytes.NewReader([]byte(body)))
	b.must(err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i+1] == "" {
			r.Header.Del(headers[i])
		}
	}
	w, err := b.http.Do(r)
	b.must(err)
	defer w.Body.Close()
	out, err := io.ReadAll(w.Body)
	b.must(err)
	return answer{w.StatusCode, w.Header, out, w.Request.URL}
}

func (b *browser) get(path string, headers ...string) answer {
	b.t.Helper()
	return b.send(http.MethodGet, path, "", headers...)
}

func (b *browser) post(path, body string, headers ...string) answer {
	b.t.Helper()
	return b.send(http.MethodPost, path, body, headers...)
}

// call calls a method of the process.
func (b *browser) call(method, body string) answer {
	b.t.Helper()
	return b.post(rpcPath+method, body, "Content-Type", "application/json", "Connect-Protocol-Version", "1")
}

// signedIn reports whether the browser has a session.
func (b *browser) signedIn() bool {
	b.t.Helper()
	return b.get("/api/session").status == http.StatusOK
}

// stream opens a stream of a method of the process.
func (b *browser) stream(method string) *stream {
	b.t.Helper()
	body := append([]byte{0, 0, 0, 0, 2}, "{}"...)
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, "https://"+b.web+rpcPath+method, bytes.NewReader(body))
	b.must(err)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/connect+json")
	r.Header.Set("Connect-Protocol-Version", "1")
	w, err := b.http.Do(r)
	b.must(err)
	b.t.Cleanup(func() { w.Body.Close() })
	return &stream{w}
}

// stream reads the messages of a streaming call.
type stream struct{ *http.Response }

// next returns the next message, or the end of the stream.
func (s *stream) next() (message []byte, end bool, err error) {
	var head [5]byte
	if _, err := io.ReadFull(s.Body, head[:]); err != nil {
		return nil, false, err
	}
	message = make([]byte, binary.BigEndian.Uint32(head[1:]))
	_, err = io.ReadFull(s.Body, message)
	return message, head[0]&2 != 0, err
}
