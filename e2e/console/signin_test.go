//go:build console

package console

import (
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// A browser signs in with the certificate of a client, and without one not.
func testCertificate(t *testing.T, c *cluster) {
	origin := c.origins["coordinator"]
	b := c.browse(t, devnet.Operator)
	b.open(origin + "/jobs")
	b.shows("main.signin", "Sign in to the coordinator", "lodge console open")
	b.picture("signin")
	b.do(chromedp.Click("//button[contains(., 'Use my certificate')]"))
	b.settled("/jobs")
	b.shows(".who", devnet.Operator, "certificate")
	b.do(chromedp.Click("//button[contains(., 'Sign out')]"))
	b.shows("main.signin", "Sign in to the coordinator")
	b.quiet("sign-in with a certificate")

	// The coordinator does not know the client app.
	for client, say := range map[string]string{"": "presented no client certificate", devnet.App: "forbidden"} {
		b := c.browse(t, client)
		b.open(origin)
		b.do(chromedp.Click("//button[contains(., 'Use my certificate')]"))
		b.shows(".trouble", say)
		if value[bool](b, "!!document.querySelector('nav.pages')") {
			t.Errorf("%q is signed in", client)
		}
	}
}

// signInAtIssuer starts a browser whose user logs in at the issuer.
func (c *cluster) signInAtIssuer(t *testing.T, user string) *browser {
	t.Helper()
	b := c.browse(t, "")
	b.open(c.origins["coordinator"])
	b.do(chromedp.Click("//a[contains(., 'Continue to the issuer')]"))
	b.until(patience, "the issuer's page", "document.querySelector('input[name=password]') && location.origin === "+quoted(c.issuer.URL))
	b.do(chromedp.SendKeys(chromedp.CSS("input[name=username]"), user),
		chromedp.SendKeys(chromedp.CSS("input[name=password]"), oidctest.Password+"\r"))
	return b
}

// A browser signs in at the issuer.
func testIssuer(t *testing.T, c *cluster) {
	b := c.signInAtIssuer(t, oidctest.User)
	b.settled("/cluster")
	b.shows(".who", "olga", "OIDC", "tenant dev")
	b.quiet("sign-in at the issuer")
	other := c.signInAtIssuer(t, oidctest.OtherUser)
	other.shows("main.signin .trouble", "this process does not know the identity")
	other.quiet("an identity that is not known")
}

// A browser signs in with a link, once.
func testLink(t *testing.T, c *cluster) {
	link := c.link("coordinator")
	b := c.browse(t, "")
	b.signInBy(link)
	b.shows(".who", devnet.Operator, "link")
	b.quiet("sign-in with a link")
	again := c.browse(t, "")
	again.open(link)
	again.shows("main.signin .trouble", "this link was used before", "lodge console open")
	again.quiet("a used link")
}
