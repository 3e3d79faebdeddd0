// Package console serves a process's console: read-only pages for browsers, over HTTPS with the
// process's certificate. A browser signs in with a client certificate, at the issuer of the
// process's bearer tokens, or with a link that a client has requested over gRPC. The data of the
// pages comes from the process's own gRPC services, as the identity that signed in, and from the
// recent values of its metrics. Nothing here changes the state of the process.
package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"google.golang.org/grpc"

	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
	"github.com/lodge-mpc/lodge/services/console/history"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/metrics"
	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Limits on the server.
const (
	attemptRate  = 10 // sign-ins per second
	attemptBurst = 50
	headerTime   = 10 * time.Second // for a handshake, and for the headers of a request
	idleTime     = 2 * time.Minute
	maxHeaders   = 32 << 10
	stopTime     = 2 * time.Second
)

// Options configure a console. All fields are required unless noted.
type Options struct {
	Config  config.Console
	Name    string // of the process
	Role    string // "party" or "coordinator"
	Version string

	Credentials *rpc.Credentials
	// Identify returns the caller that a proof belongs to now.
	Identify func(context.Context, rpc.Proof) (rpc.Principal, *rpc.Error)
	// Gateway serves Methods for the holder of the proof in the context of a request.
	Gateway *grpc.Server
	// Tokens verifies bearer tokens; nil if the process accepts none.
	Tokens rpc.Tokens

	Metrics *metrics.Metrics
	Log     *slog.Logger
	Now     func() time.Time // nil means the machine's clock
}

// Console is the console of a process. Without a listen address it serves nothing.
type Console struct {
	consolev1.UnimplementedConsoleServiceServer
	opts     Options
	now      func() time.Time
	files    fs.FS
	sessions *sessions
	links    *links
	attempts *rate.Limiter
	flow     *oidc.Flow // nil without sign-in at an issuer
	ring     *history.Ring
	older    *older        // nil without Prometheus
	port     atomic.Uint32 // of the listener
}

// New returns a console. Its services must be registered on the process's server before Serve.
func New(o Options) (*Console, error) {
	c := &Console{opts: o, now: o.Now, files: assets(), attempts: rate.NewLimiter(attemptRate, attemptBurst)}
	if c.now == nil {
		c.now = time.Now
	}
	c.links = &links{now: c.now, list: map[digest]link{}}
	c.sessions = &sessions{
		most: o.Config.MaxSessions, calls: o.Config.MaxStreams, span: time.Duration(o.Config.SessionTime), now: c.now, list: map[digest]*session{},
		change: func(sessions, running int) {
			o.Metrics.Add(metrics.ConsoleSessions, sessions)
			o.Metrics.Add(metrics.ConsoleRequests, running)
		},
	}
	if !c.enabled() {
		return c, nil
	}
	c.sessions.change(0, 0)
	var registry prometheus.Gatherer = o.Metrics.Registry()
	c.ring = history.New(registry, time.Duration(o.Config.History), o.Log)
	var err error
	if v, ok := o.Tokens.(*oidc.Verifier); ok && o.Config.URL != "" {
		c.flow, err = oidc.NewFlow(v, oidc.FlowOptions{
			Redirect: o.Config.URL + callbackPath, SecretFile: o.Config.ClientSecretFile, Scopes: o.Config.Scopes,
		})
		if err != nil {
			return nil, err
		}
	}
	if c.older, err = newOlder(o.Config.Prometheus); err != nil {
		return nil, err
	}
	return c, nil
}

// callbackPath is where the issuer sends browsers back.
const callbackPath = "/signin/oidc/callback"

// enabled reports whether the process has a console.
func (c *Console) enabled() bool { return c.opts.Config.Listen != "" }

// Serve serves the console on l until ctx is done. All services of the process must be registered.
func (c *Console) Serve(ctx context.Context, l net.Listener) error {
	api, err := c.gateway()
	if err != nil {
		return errors.Join(err, l.Close())
	}
	if a, ok := l.Addr().(*net.TCPAddr); ok {
		c.port.Store(uint32(a.Port))
	}
	conns := newConnections()
	s := &http.Server{
		Handler: c.routes(api, conns), TLSConfig: c.opts.Credentials.Browser(), ConnContext: conns.context,
		ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeaders,
		ErrorLog: slog.NewLogLogger(c.opts.Log.Handler(), slog.LevelDebug),
		HTTP2: &http.HTTP2Config{
			MaxConcurrentStreams: 2 * callsOne, MaxReceiveBufferPerStream: maxRequest, MaxReceiveBufferPerConnection: 4 * maxRequest,
			SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second, WriteByteTimeout: writeTime,
		},
	}
	ctx, cancel := context.WithCancel(ctx)
	var keeping sync.WaitGroup
	keeping.Go(func() { c.ring.Run(ctx) })
	keeping.Go(func() { c.each(ctx, func(s *session) { c.sweep(ctx, s) }) })
	keeping.Go(func() { c.each(ctx, func(s *session) { c.renew(ctx, s) }) })
	keeping.Go(func() {
		<-ctx.Done()
		for _, s := range c.sessions.all() { // also ends their streams
			c.sessions.stop(s)
		}
		drain, stop := context.WithTimeout(context.Background(), stopTime)
		defer stop()
		if s.Shutdown(drain) != nil {
			s.Close()
		}
	})
	c.opts.Log.Info("console is ready", "listen", l.Addr().String())
	err = s.ServeTLS(conns.listener(l), "", "")
	cancel()
	keeping.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// routes returns the handler of all requests.
func (c *Console) routes(api http.Handler, conns *connections) http.Handler {
	mux := http.NewServeMux()
	for _, p := range pages {
		mux.HandleFunc("GET "+p, c.page)
	}
	mux.HandleFunc("GET /assets/", c.asset)
	mux.HandleFunc("GET /favicon.svg", c.asset)
	mux.HandleFunc("GET /signin", c.entrance)
	mux.HandleFunc("POST /signin/certificate", c.withCertificate)
	mux.HandleFunc("GET "+linkPath+"{secret}", c.withLink)
	mux.HandleFunc("GET /signin/oidc", c.toIssuer)
	mux.HandleFunc("GET "+callbackPath, c.fromIssuer)
	mux.HandleFunc("POST /signout", c.signOut)
	inside := http.NewServeMux()
	inside.HandleFunc("GET /api/session", c.session)
	inside.HandleFunc("GET /api/series", c.series)
	inside.HandleFunc("GET /api/history", c.history)
	inside.HandleFunc("POST "+rpcPath+"{service}/{method}", c.call(api))
	inside.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, rpc.Errorf(rpc.Forbidden, "", "the console does not serve %.20q %.200q", r.Method, r.URL.Path))
	})
	mux.Handle("/api/", c.within(inside, conns))
	return secured(mux)
}

// callerKey is the key of the identity and the session of a request.
type callerKey struct{}

// caller is who sent a request.
type caller struct {
	rpc.Principal
	session *session
}

// within serves requests that need a session.
func (c *Console) within(h http.Handler, conns *connections) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := c.sessions.find(r, c.cookie())
		//lodge:check console/session [run=TestNoSession] data is shown to browsers that have not
		//  signed in
		if s == nil {
			c.unauthenticated(w)
			return
		}
		p, refused := c.identify(r.Context(), s)
		if refused != nil && (refused.Code == rpc.Unauthenticated || refused.Code == rpc.Forbidden) {
			c.unauthenticated(w)
			return
		}
		if refused != nil {
			fail(w, refused)
			return
		}
		conns.isKnown(r.Context())
		done, refused := c.sessions.begin(s)
		if refused != nil {
			fail(w, refused)
			return
		}
		defer done()
		ctx, cancel := context.WithCancel(context.WithValue(r.Context(), callerKey{}, caller{p, s}))
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		h.ServeHTTP(w, r.WithContext(ctx))
	})
}

// ways lists the ways to sign in.
func (c *Console) ways() []way {
	list := []way{byCertificate}
	if c.flow != nil {
		list = append(list, byOIDC)
	}
	return append(list, byLink)
}

// unauthenticated rejects a request without a session.
func (c *Console) unauthenticated(w http.ResponseWriter) {
	reply(w, http.StatusUnauthorized, struct {
		failure
		Ways    []way   `json:"ways"`
		Process process `json:"process"`
	}{failure{rpc.Unauthenticated, "not signed in, or the session has ended", "sign in", 0}, c.ways(), c.process()})
}

// entrance tells a page whether its browser is signed in, and if not, how it can. A page asks here
// first, so that a browser without a session makes no request that fails.
func (c *Console) entrance(w http.ResponseWriter, r *http.Request) {
	in := false
	if s := c.sessions.find(r, c.cookie()); s != nil {
		_, refused := c.identify(r.Context(), s)
		in = refused == nil || refused.Code != rpc.Unauthenticated && refused.Code != rpc.Forbidden
	}
	reply(w, http.StatusOK, struct {
		SignedIn bool    `json:"signed_in"`
		Ways     []way   `json:"ways"`
		Process  process `json:"process"`
	}{in, c.ways(), c.process()})
}

// process describes the process to everybody.
type process struct {
	Role string `json:"role"`
	Name string `json:"name"`
	// Version is for signed-in browsers only.
	Version string `json:"version,omitempty"`
}

func (c *Console) process() process { return process{Role: c.opts.Role, Name: c.opts.Name} }

// session describes the session to its browser.
func (c *Console) session(w http.ResponseWriter, r *http.Request) {
	who := r.Context().Value(callerKey{}).(caller)
	p := c.process()
	p.Version = c.opts.Version
	tenant := ""
	if len(who.Tenants) == 1 {
		tenant = who.Tenants[0]
	}
	reply(w, http.StatusOK, struct {
		Name        string    `json:"name"`
		Role        rpc.Role  `json:"role"`
		Kind        way       `json:"kind"`
		Tenant      string    `json:"tenant"` // if there is only one
		Tenants     []string  `json:"tenants"`
		Permissions []string  `json:"permissions"`
		Process     process   `json:"process"`
		Ends        time.Time `json:"ends"`
		Ways        []way     `json:"ways"`
		Prometheus  bool      `json:"prometheus"`
	}{
		who.Name, who.Role, who.session.way, tenant, append([]string{}, who.Tenants...), append([]string{}, who.Permissions...), p,
		who.session.until().UTC().Truncate(time.Second), c.ways(), c.older != nil,
	})
}

// failure is an error in JSON.
type failure struct {
	Code   rpc.Code `json:"code"`
	Reason string   `json:"reason"`
	Next   string   `json:"next,omitempty"`
	Retry  float64  `json:"retry_seconds,omitempty"`
}

// statuses has the HTTP status of the codes that the console returns; 500 for all others.
var statuses = map[rpc.Code]int{
	rpc.Unauthenticated: http.StatusUnauthorized, rpc.Forbidden: http.StatusForbidden, rpc.Invalid: http.StatusBadRequest,
	rpc.TooLarge: http.StatusRequestEntityTooLarge, rpc.RateLimited: http.StatusTooManyRequests, rpc.Busy: http.StatusTooManyRequests,
	rpc.NotFound: http.StatusNotFound, rpc.Conflict: http.StatusConflict, rpc.Unavailable: http.StatusServiceUnavailable, rpc.TimedOut: http.StatusGatewayTimeout,
}

// fail writes an error.
func fail(w http.ResponseWriter, e *rpc.Error) {
	reply(w, cmp.Or(statuses[e.Code], http.StatusInternalServerError), failure{e.Code, e.What, e.Next, e.Retry.Seconds()})
}

// reply writes a value as JSON.
func reply(w http.ResponseWriter, status int, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		status, b = http.StatusInternalServerError, []byte(`{"code":"internal","reason":"the response cannot be written"}`)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(b)
}
