package console

import (
	"io"
	"net/http"

	"github.com/lodge-mpc/lodge/services/host/oidc"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// The reasons with which a failed sign-in returns to the first page, as ?signin=REASON.
const (
	failedLink        = "link_used"   // a used, late or unknown link
	failedRefused     = "refused"     // the identity is not known here
	failedUnavailable = "unavailable" // the issuer cannot be reached
	failedBusy        = "busy"        // too many sessions
	failedOther       = "failed"
)

// cookie returns the name of the session's cookie. Browsers send a cookie to all ports of a host,
// so the name tells the processes of one host apart.
func (c *Console) cookie() string { return "__Host-lodge-" + c.opts.Name }

// ticketCookie returns the name of the cookie of a browser that is at the issuer.
func (c *Console) ticketCookie() string { return c.cookie() + "-oidc" }

// set sets a cookie that scripts cannot read; with maxAge -1 it removes it.
func set(w http.ResponseWriter, name, value string, maxAge int, site http.SameSite) {
	http.SetCookie(w, &http.Cookie{Name: name, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, Secure: true, SameSite: site})
}

// signIn makes a session of the holder of a proof, and sets its cookie.
func (c *Console) signIn(w http.ResponseWriter, r *http.Request, by way, proof rpc.Proof, tokens oidc.Tokens) *rpc.Error {
	p, refused := c.opts.Identify(r.Context(), proof)
	//lodge:check console/signin/identity [run=TestSignIn] a stranger signs in
	if refused != nil {
		return refused
	}
	secret, s, refused := c.sessions.add(by, p, proof, tokens)
	if refused != nil {
		return refused
	}
	if old := c.sessions.find(r, c.cookie()); old != nil { // the browser had another session
		c.sessions.stop(old)
	}
	c.opts.Log.Info("console session began", "identity", p.Name, "by", string(by))
	set(w, c.cookie(), secret, int(s.until().Sub(c.now()).Seconds()), http.SameSiteStrictMode)
	return nil
}

// withCertificate signs a browser in by the client certificate of its connection.
func (c *Console) withCertificate(w http.ResponseWriter, r *http.Request) {
	if refused := c.attempt(); refused != nil {
		fail(w, refused)
		return
	}
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		fail(w, rpc.Errorf(rpc.Unauthenticated, "import the client's certificate into the browser, restart it, and select the certificate when it asks",
			"the browser presented no client certificate"))
		return
	}
	if refused := c.signIn(w, r, byCertificate, rpc.CertificateProof(r.TLS), oidc.Tokens{}); refused != nil {
		fail(w, refused)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// withLink signs a browser in by a link of `lodge console open`.
func (c *Console) withLink(w http.ResponseWriter, r *http.Request) {
	//lodge:check console/links/preview [swap=r.Method != http.MethodGet=>false]
	//  [run=TestLinkPreview] a program that only looks at a link uses it up
	if r.Method != http.MethodGet || r.Header.Get("Sec-Purpose") != "" || r.Header.Get("Purpose") != "" {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	if refused := c.attempt(); refused != nil {
		back(w, r, failedBusy)
		return
	}
	proof, ok := c.links.take(r.PathValue("secret"))
	if !ok {
		back(w, r, failedLink)
		return
	}
	c.enter(w, r, c.signIn(w, r, byLink, proof, oidc.Tokens{}))
}

// toIssuer sends a browser to the issuer.
func (c *Console) toIssuer(w http.ResponseWriter, r *http.Request) {
	if c.flow == nil {
		http.NotFound(w, r)
		return
	}
	if refused := c.attempt(); refused != nil {
		back(w, r, failedBusy)
		return
	}
	address, ticket, refused := c.flow.Begin(r.Context())
	if refused != nil {
		back(w, r, reasonOf(refused))
		return
	}
	set(w, c.ticketCookie(), ticket, int(oidc.FlowTime.Seconds()), http.SameSiteLaxMode)
	http.Redirect(w, r, address, http.StatusSeeOther)
}

// fromIssuer completes the sign-in of a browser that the issuer has sent back.
func (c *Console) fromIssuer(w http.ResponseWriter, r *http.Request) {
	if c.flow == nil {
		http.NotFound(w, r)
		return
	}
	if refused := c.attempt(); refused != nil {
		back(w, r, failedBusy)
		return
	}
	ticket := ""
	if k, err := r.Cookie(c.ticketCookie()); err == nil {
		ticket = k.Value
	}
	set(w, c.ticketCookie(), "", -1, http.SameSiteLaxMode)
	q := r.URL.Query()
	if q.Get("error") != "" {
		c.opts.Log.Warn("the issuer refused a sign-in to the console", "error", clip(q.Get("error")))
		back(w, r, failedOther)
		return
	}
	tokens, refused := c.flow.Finish(r.Context(), q.Get("state"), q.Get("code"), ticket)
	if refused == nil {
		refused = c.signIn(w, r, byOIDC, rpc.TokenProof(tokens.ID), tokens)
	}
	c.enter(w, r, refused)
}

// clip shortens a text of a stranger for the log.
func clip(text string) string { return text[:min(len(text), 100)] }

// enter shows the console after a sign-in, or the first page after a refusal. It does not redirect
// to the console: browsers do not send a strict cookie with a redirected request that another site
// began.
func (c *Console) enter(w http.ResponseWriter, r *http.Request, refused *rpc.Error) {
	if refused != nil {
		c.opts.Log.Warn("console sign-in refused", "reason", refused.What)
		back(w, r, reasonOf(refused))
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	io.WriteString(w, `<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/cluster">`+
		`<link rel="icon" href="data:,"><title>Lodge console</title><p><a href="/cluster">Continue to the console</a></p></html>`)
}

// reasonOf returns the reason of a failed sign-in.
func reasonOf(refused *rpc.Error) string {
	switch refused.Code {
	case rpc.Forbidden:
		return failedRefused
	case rpc.Unavailable, rpc.TimedOut:
		return failedUnavailable
	case rpc.Busy, rpc.RateLimited:
		return failedBusy
	}
	return failedOther
}

// back returns to the first page with a reason.
func back(w http.ResponseWriter, r *http.Request, reason string) {
	http.Redirect(w, r, "/?signin="+reason, http.StatusSeeOther)
}

// signOut ends the session of a browser.
func (c *Console) signOut(w http.ResponseWriter, r *http.Request) {
	//lodge:check console/signout [run=TestSignOut] a session continues after sign-out
	if s := c.sessions.find(r, c.cookie()); s != nil {
		c.sessions.stop(s)
	}
	set(w, c.cookie(), "", -1, http.SameSiteStrictMode)
	w.WriteHeader(http.StatusNoContent)
}

// attempt limits the attempts to sign in, of all browsers together.
func (c *Console) attempt() *rpc.Error {
	//lodge:check console/signin/rate [run=TestTooManySignIns] strangers make the process verify
	//  certificates and call the issuer without limit
	if !c.attempts.Allow() {
		return errBusy("try again in a moment", "too many sign-ins at once")
	}
	return nil
}
