package console

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// said is the response of /api/session.
type said struct {
	Name, Role, Kind, Tenant string
	Permissions              []string
	Process                  struct{ Role, Name, Version string }
	Ends                     time.Time
	Ways                     []string
}

func (b *browser) session() (s said) {
	b.t.Helper()
	a := b.get("/api/session")
	if a.status != http.StatusOK {
		b.t.Fatalf("%d %s", a.status, a.body)
	}
	b.must(json.Unmarshal(a.body, &s))
	return s
}

// The identities of the roster and the clients sign in with their certificates, and nobody else
// does.
func TestSignIn(t *testing.T) {
	w := newWorld(t)
	for name, want := range map[string]string{"anna": "client anna", "alice": "self alice", "bob": "peer bob", "cleo": "client cleo"} {
		s := w.in(name).session()
		if got := s.Role + " " + s.Name; got != want || s.Kind != "certificate" || s.Process.Name != "alice" || s.Process.Version != "v1" || fmt.Sprint(s.Ways) != "[certificate link]" {
			t.Errorf("%s: %+v", name, s)
		}
	}
	if s := w.in("anna").session(); s.Tenant != "a" || fmt.Sprint(s.Permissions) != "[status operate]" ||
		time.Until(s.Ends) > 50*time.Minute || time.Until(s.Ends) < 40*time.Minute { // at the latest with the certificate
		t.Errorf("%+v", s)
	}
	for name, want := range map[string]int{"": http.StatusUnauthorized, "stranger": http.StatusForbidden, "forged": http.StatusForbidden} {
		b := w.browser(name)
		if a := b.post("/signin/certificate", ""); a.status != want || len(a.header.Values("Set-Cookie")) > 0 || b.signedIn() {
			t.Errorf("%q: %d %s", name, a.status, a.body)
		}
	}
}

// Scripts and other sites cannot use the cookie, plaintext connections do not carry it, and another
// process on the host has another one. A new sign-in ends the old session of the browser.
func TestCookie(t *testing.T) {
	w := newWorld(t)
	b := w.browser("anna")
	cookies := func() *http.Cookie {
		list := (&http.Response{Header: b.post("/signin/certificate", "").header}).Cookies()
		if len(list) != 1 {
			t.Fatalf("%d cookies", len(list))
		}
		return list[0]
	}
	c := cookies()
	if c.Name != "__Host-lodge-alice" || !c.HttpOnly || !c.Secure || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || len(c.Value) != 43 {
		t.Errorf("%+v", c)
	}
	if again := cookies(); again.Value == c.Value {
		t.Error("a sign-in keeps the old secret")
	}
	other := w.browser("")
	if a := other.get("/api/session", "Cookie", c.Name+"="+c.Value); a.status != http.StatusUnauthorized {
		t.Errorf("the old session continues: %d", a.status)
	}
	if strings.Contains(w.log.text(), c.Value) {
		t.Error("the log shows a cookie")
	}
}

// A link signs one browser in, once, within a minute.
func TestLink(t *testing.T) {
	w := newWorld(t)
	link, late := w.link("anna"), w.link("ben")
	b := w.browser("")
	if a := b.get(link, "Sec-Fetch-Site", "none"); a.status != http.StatusOK || !strings.Contains(string(a.body), `url=/cluster`) {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if s := b.session(); s.Name != "anna" || s.Kind != "link" {
		t.Errorf("%+v", s)
	}
	refused := func(what, link string) {
		t.Helper()
		b := w.browser("")
		if a := b.get(link); a.from.RequestURI() != "/?signin=link_used" || b.signedIn() {
			t.Errorf("%s: %s", what, a.from)
		}
	}
	refused("used", link)
	refused("unknown", linkPath+"x")
	w.clock.add(linkTime)
	refused("late", late)
	if strings.Contains(w.log.text(), strings.TrimPrefix(link, linkPath)) {
		t.Error("the log shows a link")
	}
}

// A program that only looks at a link does not use it up.
func TestLinkPreview(t *testing.T) {
	w := newWorld(t)
	link := w.link("anna")
	b := w.browser("")
	b.send(http.MethodHead, link, "")
	b.get(link, "Sec-Purpose", "prefetch;prerender")
	if b.signedIn() {
		t.Error("a preview signs in")
	}
	if b.get(link); !b.signedIn() {
		t.Error("a preview uses the link up")
	}
}

// Unused links are limited for each identity, and expire. A process without a console makes none.
func TestTooManyLinks(t *testing.T) {
	w := newWorld(t)
	c := consolev1.NewConsoleServiceClient(w.dial("anna"))
	for range linksOne {
		if _, err := c.CreateLink(t.Context(), &consolev1.CreateLinkRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.CreateLink(t.Context(), &consolev1.CreateLinkRequest{})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.Busy {
		t.Error(e)
	}
	w.link("ben")
	w.clock.add(linkTime)
	w.link("anna")

	l := &links{now: time.Now, list: map[digest]link{}}
	for i := range linksAll {
		if _, _, refused := l.add(fmt.Sprint(i), rpc.Proof{}); refused != nil {
			t.Fatal(i, refused)
		}
	}
	if _, _, refused := l.add("last", rpc.Proof{}); refused == nil || refused.Code != rpc.Busy {
		t.Error(refused)
	}
}

func TestNoConsole(t *testing.T) {
	w := newWorld(t, func(_ *world, f *config.Console) { f.History = config.Duration(time.Minute) })
	w.console.opts.Config.Listen = ""
	_, err := consolev1.NewConsoleServiceClient(w.dial("anna")).CreateLink(t.Context(), &consolev1.CreateLinkRequest{})
	if e := rpc.FromError(err); e == nil || e.Code != rpc.NotFound {
		t.Error(e)
	}
}

// A browser signs in at a real issuer, and only its known subject does.
func TestOIDC(t *testing.T) {
	w := newWorld(t, withIssuer())
	login := func(user string) (*browser, string) {
		b := w.browser("")
		answer := oidctest.Login(t, b.http, "https://"+w.web+"/signin/oidc", user, oidctest.Password)
		answer.Body.Close()
		return b, answer.Request.URL.RequestURI()
	}
	b, at := login(oidctest.User)
	if s := b.session(); s.Name != "olga" || s.Kind != "oidc" || fmt.Sprint(s.Ways) != "[certificate oidc link]" || time.Until(s.Ends) > time.Hour+time.Minute {
		t.Errorf("%+v at %s", s, at)
	}
	if b, at := login(oidctest.OtherUser); at != "/?signin=refused" || b.signedIn() {
		t.Errorf("a user who is not known here arrives at %s", at)
	}
	b = w.browser("")
	for path, want := range map[string]string{
		callbackPath + "?error=access_denied&state=x":    "/?signin=failed",
		callbackPath + "?code=x&state=x":                 "/?signin=failed", // without a ticket
		callbackPath + "?code=" + strings.Repeat("x", 9): "/?signin=failed",
	} {
		if a := b.get(path); a.from.RequestURI() != want || b.signedIn() {
			t.Errorf("%s: %s", path, a.from)
		}
	}
	// A page of another site cannot finish its own sign-in in this browser.
	attacker := w.browser("")
	attacker.http.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == callbackPath {
			return http.ErrUseLastResponse
		}
		return nil
	}
	answer := oidctest.Login(t, attacker.http, "https://"+w.web+"/signin/oidc", oidctest.User, oidctest.Password)
	answer.Body.Close()
	back := strings.TrimPrefix(answer.Header.Get("Location"), "https://"+w.web)
	if !strings.HasPrefix(back, callbackPath) {
		t.Fatal(back)
	}
	if a := b.get(back, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"); a.from.RequestURI() != "/?signin=failed" || b.signedIn() {
		t.Errorf("a sign-in that another browser began ends at %s", a.from)
	}
	w.issuer.Server.Close()
	w.console.flow = nil
	if a := b.get("/signin/oidc"); a.status != http.StatusNotFound {
		t.Errorf("without an issuer: %d", a.status)
	}
}

// An issuer that does not answer is not the browser's fault.
func TestIssuerDown(t *testing.T) {
	w := newWorld(t, withIssuer())
	w.issuer.Server.Close()
	if a := w.browser("").get("/signin/oidc"); a.from.RequestURI() != "/?signin=unavailable" {
		t.Errorf("%s", a.from)
	}
}

// The token of a session is renewed, as long as the issuer wants.
func TestIssuerEndsSession(t *testing.T) {
	w := newWorld(t, withIssuer("offline_access"))
	b := w.browser("")
	oidctest.Login(t, b.http, "https://"+w.web+"/signin/oidc", oidctest.User, oidctest.Password).Body.Close()
	if !b.signedIn() {
		t.Fatal("not signed in")
	}
	s := w.console.sessions.all()[0]
	first := s.tokens
	w.clock.add(time.Until(first.Expires) - renewBefore/2)
	w.console.renew(t.Context(), s)
	second := s.tokens
	if second.ID == first.ID || second.Refresh == "" || !b.signedIn() {
		t.Fatalf("the token is not renewed: %v %v", first.Expires, second.Expires)
	}
	w.issuer.End(t, second.Refresh)
	if !b.signedIn() {
		t.Error("the session ends before its token")
	}
	s.tokens.Expires = w.clock.now()
	w.console.renew(t.Context(), s)
	if b.signedIn() {
		t.Error("the session continues although the issuer has ended it")
	}
}

// Sign-ins are limited for all browsers together.
func TestTooManySignIns(t *testing.T) {
	w := newWorld(t)
	h := w.console.routes(http.NotFoundHandler(), newConnections())
	codes := map[int]int{}
	for range 2 * attemptBurst {
		r := httptest.NewRequest(http.MethodPost, "https://"+w.web+"/signin/certificate", nil)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		a := httptest.NewRecorder()
		h.ServeHTTP(a, r)
		codes[a.Code]++
	}
	if codes[http.StatusUnauthorized] < attemptBurst || codes[http.StatusTooManyRequests] < attemptBurst/2 {
		t.Errorf("%v", codes)
	}
}
