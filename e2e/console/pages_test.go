//go:build console

package console

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// enter starts a browser that is signed in at a process.
func (c *cluster) enter(t *testing.T, process string) *browser {
	t.Helper()
	b := c.browse(t, "")
	b.signInBy(c.link(process))
	return b
}

// testEmpty looks at a cluster that has made nothing. Its pages say what to do.
func testEmpty(t *testing.T, c *cluster) {
	for _, process := range []string{"coordinator", "p0"} {
		b := c.enter(t, process)
		b.look(process, "empty", pages...)
		for _, p := range []string{"/stock", "/keys"} {
			b.page(p)
			b.until(patience, "a command to begin with", "document.querySelector('.empty .command')")
		}
	}
}

// during runs jobs until the returned function is called.
func (c *cluster) during(t *testing.T) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-done:
				return
			default:
			}
			if _, err := c.operator.Try("jobs", "submit", "--kind", "scalar", "--params", set, "--epoch", "1", "--count", "4000", "--wait"); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	stop = sync.OnceFunc(func() { close(done); <-ended })
	t.Cleanup(stop)
	return stop
}

// testBusy looks at a cluster while it works: pages show what happens without being loaded again.
func testBusy(t *testing.T, c *cluster) {
	b, p := c.enter(t, "coordinator"), c.enter(t, "p0")
	b.page("/keys")
	p.page("/keys")
	c.work()
	b.shows("main", "active at all parties", set, thresholdSet)
	p.shows("main", "active at this party", thresholdSet, multikeySet, "MAC keys")
	stop := c.during(t)

	b.page("/jobs")
	b.shows("main", "Making", "scalar triples", "p0", "p1", "p2")
	changing(b, "the progress of a job", "document.querySelector('main .running')?.innerText ?? ''")
	b.picture("jobs")
	b.page("/stock")
	b.shows("main", "scalar", "dev")
	b.page("/cluster")
	b.shows(".verdict", "All 4 processes are up and ready")
	for _, name := range []string{"p0", "p1", "p2"} {
		b.until(patience, name+" is ready, with a certificate and a round trip", row(name, "ready", "20", "s\\b"))
	}
	b.page("/network")
	b.shows(".verdict", "The slowest link")
	b.page("/conduct")
	b.shows(".verdict", "No party has been seen to cheat")
	b.page("/audit")
	b.page("/process")

	p.page("/network")
	p.shows("main", "triple", "p1", "p2")
	changing(p, "the bytes of a round", "document.querySelector('main table')?.innerText ?? ''")
	p.theme("dark")
	p.picture("network")
	p.theme("light")
	p.page("/audit")
	p.shows("main", "delivered")
	p.page("/process")
	changing(p, "the memory of the process", "document.querySelector('main').innerText")
	b.look("coordinator", "busy", pages...)
	p.look("p0", "busy", pages...)
	b.page("/stock")
	b.picture("stock")
	stop()
}

// row is an expression that is true if a row of a table matches all patterns.
func row(patterns ...string) string {
	var tests []string
	for _, p := range patterns {
		tests = append(tests, "/"+p+"/.test(r.innerText)")
	}
	return "[...document.querySelectorAll('main tr')].some((r) => " + strings.Join(tests, " && ") + ")"
}

// changing waits until the value of an expression in a page changes by itself.
func changing(b *browser, what, expression string) {
	b.Helper()
	before := value[string](b, expression)
	b.until(patience, what+" changes from "+before, "("+expression+") !== "+quoted(before))
}

// testPermissions shows every page to an identity that may see only the status of the coordinator.
func testPermissions(t *testing.T, c *cluster) {
	b := c.signInAtIssuer(t, oidctest.User)
	b.settled("/cluster")
	for _, p := range pages {
		b.page(p)
		time.Sleep(time.Second)
		b.accessible("olga " + p)
		b.quiet("olga " + p)
	}
}

// testKeyboard uses the console without a mouse.
func testKeyboard(t *testing.T, c *cluster) {
	b := c.enter(t, "coordinator")
	b.open(c.origins["coordinator"] + "/cluster")
	b.settled("/cluster")
	press := func(keys string) { t.Helper(); b.do(chromedp.KeyEvent(keys)) }
	focus := func() string {
		return value[string](b, "(() => { const e = document.activeElement; return e === document.body ? '' : (e.getAttribute('aria-label') ?? e.innerText ?? '').trim().split('\\n')[0]; })()")
	}
	press(kb.Tab)
	if got := focus(); got != "Skip to the content" {
		t.Errorf("first is %q", got)
	}
	if !value[bool](b, "(() => { const r = document.activeElement.getBoundingClientRect(); return r.top >= 0 && r.left >= 0 && r.width > 20; })()") {
		t.Error("the link to the content is not visible when it has the focus")
	}
	press(kb.Enter)
	if id := value[string](b, "document.activeElement.id"); id != "main" {
		t.Errorf("the focus is at %q, not at the content", id)
	}
	b.open(c.origins["coordinator"] + "/cluster")
	b.settled("/cluster")
	var order []string
	for range 80 {
		press(kb.Tab)
		got := focus()
		if got == "" {
			break
		}
		order = append(order, got)
		if !value[bool](b, "(() => { const s = getComputedStyle(document.activeElement); return s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2 || s.boxShadow !== 'none'; })()") {
			t.Errorf("%q does not show that it has the focus", got)
		}
	}
	all := strings.Join(order, "\n")
	for _, want := range []string{"Cluster", "Jobs", "Stock", "Keys", "Network", "Conduct", "Audit", "This process", "Theme", "Sign out", "Copy lodge status"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is out of reach of the keyboard: %q", want, order)
		}
	}
	b.open(c.origins["coordinator"] + "/cluster")
	b.settled("/cluster")
	for range 40 {
		if press(kb.Tab); focus() == "Jobs" {
			break
		}
	}
	press(kb.Enter)
	b.settled("/jobs")
	if id := value[string](b, "document.activeElement.id"); id != "title" {
		t.Errorf("after a change of the page the focus is at %q, not at the title", id)
	}
	b.do(chromedp.Focus(chromedp.CSS(".theme select")))
	press("D")
	b.until(patience, "the dark theme", "getComputedStyle(document.body).backgroundColor.match(/\\d+/g).slice(0, 3).every((n) => n < 60)")
	b.quiet("the keyboard")
}

// testKill kills a party, and starts it again, while two consoles are looked at.
func testKill(t *testing.T, c *cluster) {
	b, p := c.enter(t, "coordinator"), c.enter(t, "p0")
	for _, x := range []*browser{b, p} {
		x.page("/cluster")
		x.until(patience, "p1 is ready", row("p1", "ready"))
		x.quiet("before the kill")
	}
	c.kill("p1")
	gone := time.Now()
	for name, x := range map[string]*browser{"coordinator": b, "p0": p} {
		x.until(max(0, seen-time.Since(gone)), name+" shows that p1 is down", row("p1", "down")+" && document.querySelector('.verdict').innerText.startsWith('p1 has been down')")
		t.Logf("%s showed after %s that p1 was killed", name, time.Since(gone).Round(10*time.Millisecond))
	}
	b.picture("cluster")
	b.look("coordinator", "down", "/cluster", "/stock", "/keys", "/network")
	c.launch("p1")
	back := time.Now()
	for name, x := range map[string]*browser{"coordinator": b, "p0": p} {
		x.page("/cluster")
		x.until(max(0, seen-time.Since(back)), name+" shows that p1 is back", row("p1", "ready")+" && document.querySelector('.verdict').innerText.startsWith('All ')")
		t.Logf("%s showed after %s that p1 was back", name, time.Since(back).Round(10*time.Millisecond))
	}
	b.quiet("the kill")
	p.quiet("the kill")
}

// testCheat has a party cheat in a way that proves who it was.
func testCheat(t *testing.T, c *cluster) {
	b, p := c.enter(t, "coordinator"), c.enter(t, "p0")
	b.page("/jobs")
	c.cheat("alter:triple/mac/z/open")
	id := c.operator.Submit("--kind", "scalar", "--params", set, "--epoch", "1", "--count", "100")
	b.until(patience, "the page of jobs names the cheater", "document.querySelector('.verdict').innerText.includes('"+cheater+" failed the check')")
	b.open(c.origins["coordinator"] + "/jobs/" + id)
	b.shows("main .accused", cheater, "commitment")
	b.page("/conduct")
	b.shows(".verdict", cheater+" cheated")
	p.page("/conduct")
	p.shows("main .accused", cheater, "cheated", "Evidence")
	p.shows("main", "1 of 64") // failed checks of the MAC key
	p.picture("conduct")
	b.look("coordinator", "broken", "/cluster", "/jobs", "/conduct")
	p.look("p0", "broken", "/keys", "/conduct", "/audit")
}

// testExpired uses a link more than a minute after it was made.
func testExpired(t *testing.T, c *cluster, link string, made time.Time) {
	time.Sleep(time.Until(made.Add(61 * time.Second)))
	b := c.browse(t, "")
	b.open(link)
	b.shows("main.signin .trouble", "older than a minute", "lodge console open")
	b.quiet("a late link")
}

// testAddresses opens addresses that another reader shared.
func testAddresses(t *testing.T, c *cluster) {
	b := c.browse(t, devnet.Operator)
	b.open(c.origins["coordinator"] + "/network?span=15+min")
	b.do(chromedp.Click("//button[contains(., 'Use my certificate')]"))
	b.settled("/network")
	if q := value[string](b, "location.search"); q != "?span=15+min" {
		t.Errorf("sign-in lost what the address selects: %q", q)
	}
	b.open(c.origins["coordinator"] + "/nothing")
	b.until(patience, "an unknown address says so", "/404|No such page/.test(document.body.innerText)")
}
