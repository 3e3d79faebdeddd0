package console

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/services/host/config"
)

const statusRPC = "lodge.status.v1.StatusService/"

// Without a session a browser gets the page that asks it to sign in, and no data.
func TestNoSession(t *testing.T) {
	w := newWorld(t)
	b := w.browser("anna") // a certificate alone is no session
	for _, path := range []string{"/", "/cluster", "/jobs", "/jobs/j1", "/stock", "/keys", "/network", "/conduct", "/audit", "/process"} {
		if a := b.get(path); a.status != http.StatusOK || !strings.Contains(string(a.body), "Lodge console") {
			t.Errorf("%s: %d", path, a.status)
		}
	}
	check := func(what string, a answer) {
		t.Helper()
		var got struct {
			Code, Reason, Next string
			Ways               []string
		}
		if err := json.Unmarshal(a.body, &got); a.status != http.StatusUnauthorized || err != nil || got.Code != "unauthenticated" || got.Next == "" || len(got.Ways) != 2 {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	for _, cookie := range []string{"", w.console.cookie() + "=", w.console.cookie() + "=x", w.console.cookie() + "=" + strings.Repeat("A", 43), "__Host-lodge-bob=x"} {
		for _, path := range []string{"/api/session", "/api/series", "/api/history?series=lodge_build_info&since=60", "/api/x", "/api/"} {
			check(path, b.get(path, "Cookie", cookie))
		}
		for _, method := range Methods {
			check(method, b.post(rpcPath+method[1:], "{}", "Cookie", cookie, "Content-Type", "application/json"))
		}
	}
	for _, path := range []string{"/api/session", "/signin"} {
		if a := b.get(path); strings.Contains(string(a.body), "v1") {
			t.Errorf("strangers see the version: %s", a.body)
		}
	}
	if a := b.get("/signin"); string(a.body) != `{"signed_in":false,"ways":["certificate","link"],"process":{"role":"party","name":"alice"}}` {
		t.Errorf("strangers see %s", a.body)
	}
	if a := w.in("anna").get("/signin"); a.status != http.StatusOK || !strings.Contains(string(a.body), `"signed_in":true`) {
		t.Errorf("a signed-in browser sees %d %s", a.status, a.body)
	}
	for _, path := range []string{"/assets/x.js", "/assets/", "/assets/../index.html", "/web", "/metrics"} {
		if a := b.get(path); a.status != http.StatusNotFound && a.from.Path != "/index.html" {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// Every response forbids inline scripts, other sites' requests, frames and caches.
func TestHeaders(t *testing.T) {
	w := newWorld(t)
	in, out := w.in("anna"), w.browser("")
	list := map[string]answer{
		"page": out.get("/"), "missing": out.get("/x"), "no session": out.get("/api/session"), "session": in.get("/api/session"),
		"link": out.get(linkPath + "x"), "call": in.call(statusRPC+"GetStatus", "{}"), "refused": in.call(statusRPC+"SetLogLevel", "{}"),
		"other site": out.get("/api/session", "Sec-Fetch-Site", "cross-site"), "method": out.send(http.MethodPut, "/cluster", ""),
		"sign-out": in.post("/signout", ""),
	}
	for what, a := range list {
		for name, want := range headers {
			if got := a.header.Values(name); len(got) != 1 || got[0] != want {
				t.Errorf("%s: %s is %q", what, name, got)
			}
		}
		for name := range a.header {
			if strings.HasPrefix(name, "Access-Control-") || name == "Server" {
				t.Errorf("%s: %s", what, name)
			}
		}
	}
	policy := headers["Content-Security-Policy"]
	for _, directive := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'", "connect-src 'self'"} {
		if !strings.Contains(policy, directive) {
			t.Errorf("the policy lacks %s", directive)
		}
	}
	if strings.Contains(policy, "unsafe") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Error(policy)
	}
}

// Pages of other sites, and of other ports of the host, can neither read nor change anything.
func TestOtherOrigins(t *testing.T) {
	w := newWorld(t)
	b := w.in("anna")
	for _, c := range []struct {
		what    string
		headers []string
	}{
		{"another site", []string{"Sec-Fetch-Site", "cross-site"}},
		{"another port", []string{"Sec-Fetch-Site", "same-site"}},
		{"another origin", []string{"Sec-Fetch-Site", "", "Origin", "https://evil.example"}},
		{"the same host without TLS", []string{"Sec-Fetch-Site", "", "Origin", "http://" + w.web}},
		{"a sandbox", []string{"Sec-Fetch-Site", "", "Origin", "null"}},
		{"a contradiction", []string{"Sec-Fetch-Site", "same-origin", "Origin", "https://evil.example"}},
	} {
		for path, a := range map[string]answer{
			"session": b.get("/api/session", c.headers...), "series": b.get("/api/series", c.headers...),
			"status":   b.post(rpcPath+statusRPC+"GetStatus", "{}", append(c.headers, "Content-Type", "application/json")...),
			"sign-in":  b.post("/signin/certificate", "", c.headers...),
			"sign-out": b.post("/signout", "", c.headers...),
		} {
			if a.status != http.StatusForbidden || a.code() != "forbidden" {
				t.Errorf("%s, %s: %d %s", c.what, path, a.status, a.body)
			}
		}
	}
	if a := b.post("/signout", "", "Sec-Fetch-Site", ""); a.status != http.StatusForbidden {
		t.Errorf("no origin: %d", a.status)
	}
	if a := b.post("/signout", "", "Sec-Fetch-Site", "none"); a.status != http.StatusForbidden {
		t.Errorf("no site: %d", a.status)
	}
	if !b.signedIn() {
		t.Fatal("another site has signed the browser out")
	}
	navigation := []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}
	if a := b.get("/jobs", navigation...); a.status != http.StatusOK {
		t.Errorf("a link of another site to a page: %d", a.status)
	}
	if a := b.get("/jobs", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"); a.status != http.StatusForbidden {
		t.Errorf("a frame: %d", a.status)
	}
	if a := b.post("/signout", "", "Sec-Fetch-Site", "", "Origin", "https://"+w.web); a.status != http.StatusNoContent {
		t.Errorf("an old browser signs out: %d", a.status)
	}
}

// A page calls methods as the identity that signed in, with its permissions.
func TestCalls(t *testing.T) {
	w := newWorld(t)
	var got struct {
		Name    string
		Audit   struct{ Sequence string }
		Entries []struct{ Tenant string }
	}
	call := func(name, method, body string) (answer, map[string]bool) {
		got.Name, got.Audit.Sequence, got.Entries = "", "", nil
		a := w.in(name).call(statusRPC+method, body)
		json.Unmarshal(a.body, &got)
		tenants := map[string]bool{}
		for _, e := range got.Entries {
			tenants[e.Tenant] = true
		}
		return a, tenants
	}
	if a, _ := call("anna", "GetStatus", "{}"); a.status != http.StatusOK || got.Name != "alice" || got.Audit.Sequence != "2" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a, _ := call("cleo", "GetStatus", "{}"); a.status != http.StatusOK || got.Name != "alice" || got.Audit.Sequence != "" {
		t.Errorf("a client without permissions sees details: %d %s", a.status, a.body)
	}
	if a, tenants := call("anna", "ListAuditEntries", "{}"); a.status != http.StatusOK || fmt.Sprint(tenants) != "map[a:true]" {
		t.Errorf("anna sees entries of %v: %d %s", tenants, a.status, a.body)
	}
	if a, tenants := call("alice", "ListAuditEntries", "{}"); fmt.Sprint(tenants) != "map[a:true b:true]" {
		t.Errorf("the party's operator sees entries of %v: %s", tenants, a.body)
	}
	for _, name := range []string{"ben", "cleo", "bob"} {
		a, _ := call(name, "ListAuditEntries", "{}")
		var e struct {
			Code, Message string
			Details       []struct{ Type string }
		}
		json.Unmarshal(a.body, &e)
		if a.status != http.StatusForbidden || e.Code != "permission_denied" || !strings.HasPrefix(e.Message, "forbidden: ") || len(e.Details) == 0 || e.Details[0].Type != "lodge.status.v1.ErrorDetail" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
}

// Methods that change something are refused for every identity.
func TestWriteMethods(t *testing.T) {
	w := newWorld(t)
	b := w.in("alice")
	for _, method := range []string{
		statusRPC + "SetLogLevel", "lodge.console.v1.ConsoleService/CreateLink", "lodge.coordinator.v1.CoordinatorService/SubmitJob",
		"lodge.tuples.v1.TuplesService/Fetch", "grpc.health.v1.Health/Check", "x/y", statusRPC + "getstatus", statusRPC + "GetStatus%2F",
	} {
		if a := b.call(method, `{"level":"debug"}`); a.status != http.StatusForbidden || a.code() != "forbidden" {
			t.Errorf("%s: %d %s", method, a.status, a.body)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch} {
		if a := b.send(method, rpcPath+statusRPC+"GetStatus", "{}", "Content-Type", "application/json"); a.status != http.StatusForbidden {
			t.Errorf("%s: %d", method, a.status)
		}
	}
	for _, m := range Methods {
		name := m[strings.LastIndexByte(m, '/')+1:]
		if !slices.ContainsFunc([]string{"Get", "List", "Watch", "Estimate"}, func(verb string) bool { return strings.HasPrefix(name, verb) }) {
			t.Errorf("%s does not look like a method that only reads", m)
		}
	}
}

// Only small calls in JSON are read.
func TestContent(t *testing.T) {
	w := newWorld(t)
	b := w.in("anna")
	at := rpcPath + statusRPC + "GetStatus"
	for _, content := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/grpc", "application/grpc-web+proto", "application/proto", "application/json; x"} {
		if a := b.post(at, "{}", "Content-Type", content); a.status != http.StatusBadRequest || a.code() != "invalid_request" {
			t.Errorf("%q: %d %s", content, a.status, a.body)
		}
	}
	if a := b.post(at, "{}", "Content-Type", "application/json", "Content-Encoding", "gzip"); a.code() != "invalid_request" {
		t.Errorf("compressed: %d %s", a.status, a.body)
	}
	if a := b.post(at, `{"x":"`+strings.Repeat("x", maxRequest)+`"}`, "Content-Type", "application/json"); a.status != http.StatusRequestEntityTooLarge || a.code() != "too_large" {
		t.Errorf("large: %d %s", a.status, a.body)
	}
	if a := b.post(at, `{`, "Content-Type", "application/json"); a.status != http.StatusBadRequest {
		t.Errorf("malformed: %d %s", a.status, a.body)
	}
}

// A stream shows changes until the browser signs out.
func TestSignOut(t *testing.T) {
	w := newWorld(t)
	b := w.in("anna")
	s := b.stream(statusRPC + "WatchStatus")
	message, end, err := s.next()
	if err != nil || end || !strings.Contains(string(message), `"name":"alice"`) {
		t.Fatalf("%s, %v, %v", message, end, err)
	}
	if a := b.post("/signout", ""); a.status != http.StatusNoContent {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if b.signedIn() {
		t.Error("the session continues after sign-out")
	}
	ends(t, s)
}

// ends waits for the end of a stream, by its server.
func ends(t *testing.T, s *stream) {
	t.Helper()
	done := make(chan bool)
	go func() {
		defer close(done)
		for {
			if _, end, err := s.next(); end || err != nil {
				return
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("the stream continues")
	}
}

// A session ends in time, and with it its streams.
func TestSessionEnds(t *testing.T) {
	w := newWorld(t, func(_ *world, f *config.Console) { f.SessionTime = config.Duration(20 * time.Minute) })
	b := w.in("anna")
	s := b.stream(statusRPC + "WatchStatus")
	w.clock.add(19 * time.Minute)
	if !b.signedIn() {
		t.Error("the session ends early")
	}
	w.clock.add(time.Minute)
	if b.signedIn() {
		t.Error("the session continues")
	}
	ends(t, s)
	if n := len(w.console.sessions.all()); n != 0 {
		t.Errorf("%d sessions are kept", n)
	}
}

// A session ends when its identity is no longer valid: here, because the process does not trust the
// authority of its certificate any more.
func TestRevoked(t *testing.T) {
	w := newWorld(t)
	anna, self := w.in("anna"), w.in("alice")
	byLink := w.browser("")
	byLink.get(w.link("ben"))
	s := anna.stream(statusRPC + "WatchStatus")
	if !byLink.signedIn() {
		t.Fatal("not signed in")
	}
	w.authority("clients") // replaces the file
	if changed, err := w.credentials.Reload(); !changed || err != nil {
		t.Fatal(changed, err)
	}
	if anna.signedIn() || byLink.signedIn() {
		t.Error("the session of a revoked identity continues")
	}
	if !self.signedIn() {
		t.Error("another session has ended")
	}
	ends(t, s)
}

// One identity has a limited number of sessions, and so have all together.
func TestTooManySessions(t *testing.T) {
	w := newWorld(t, func(_ *world, f *config.Console) { f.MaxSessions = sessionsOne + 2 })
	first := w.in("anna")
	for range sessionsOne - 1 {
		w.console.attempts.SetBurst(1000)
		w.console.attempts.SetLimit(1000)
		w.in("anna")
	}
	refused := func(name string) {
		t.Helper()
		if a := w.browser(name).post("/signin/certificate", ""); a.status != http.StatusTooManyRequests || a.code() != "busy" {
			t.Errorf("%s: %d %s", name, a.status, a.body)
		}
	}
	refused("anna")
	w.in("ben")
	w.in("cleo")
	refused("alice")
	if first.post("/signout", ""); first.signedIn() {
		t.Fatal("not signed out")
	}
	w.in("alice")
}

// One session has a limited number of streams, and so have all together.
func TestTooManyStreams(t *testing.T) {
	w := newWorld(t, func(_ *world, f *config.Console) { f.MaxStreams = callsOne + 3 })
	anna, ben, alice := w.in("anna"), w.in("ben"), w.in("alice")
	var open []*stream
	for range callsOne {
		s := anna.stream(statusRPC + "WatchStatus")
		if _, _, err := s.next(); err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	refused := func(what string, b *browser) {
		t.Helper()
		if a := b.get("/api/session"); a.status != http.StatusTooManyRequests || a.code() != "busy" {
			t.Errorf("%s: %d %s", what, a.status, a.body)
		}
	}
	refused("one session", anna)
	for range 3 {
		s := ben.stream(statusRPC + "WatchStatus")
		if _, _, err := s.next(); err != nil {
			t.Fatal(err)
		}
	}
	refused("all sessions", alice)
	open[0].Body.Close()
	for until := time.Now().Add(10 * time.Second); !alice.signedIn(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a closed stream still counts")
		}
	}
}

// One session makes a limited number of requests in a second.
func TestTooManyRequests(t *testing.T) {
	w := newWorld(t)
	b := w.in("anna")
	codes := map[int]int{}
	for range callBurst + 50 {
		a := b.get("/api/session")
		codes[a.status]++
	}
	if codes[http.StatusOK] < callBurst || codes[http.StatusTooManyRequests] == 0 {
		t.Errorf("%v", codes)
	}
}

// Connections of strangers do not keep browsers away.
func TestStrangeConnections(t *testing.T) {
	w := newWorld(t)
	b := w.in("anna")
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(w.members.PEM())
	var list []net.Conn
	for i := range mostStrange + 10 {
		c, err := net.Dial("tcp", w.web)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if i%16 == 0 {
			c = tls.Client(c, &tls.Config{RootCAs: roots, ServerName: "127.0.0.1", NextProtos: []string{"h2"}})
			if err := c.(*tls.Conn).Handshake(); err != nil {
				t.Fatal(err)
			}
		}
		list = append(list, c)
	}
	list[1].SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := list[1].Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the oldest connection is kept: %v", err)
	}
	if !b.signedIn() {
		t.Error("the browser's connection was closed for strangers")
	}
	w.in("ben")
}
