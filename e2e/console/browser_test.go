//go:build console

package console

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browser is a Chromium with a new profile, which trusts the cluster and the issuer, and has the
// certificate of a client or none.
type browser struct {
	*testing.T
	c   *cluster
	ctx context.Context

	mu      sync.Mutex
	trouble []string
	asked   []string // other origins
}

// browse starts a browser.
func (c *cluster) browse(t *testing.T, client string) *browser {
	t.Helper()
	home := t.TempDir()
	database := filepath.Join(home, ".pki", "nssdb")
	outside := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", name, err, out)
		}
	}
	if err := os.MkdirAll(database, 0o700); err != nil {
		t.Fatal(err)
	}
	outside("certutil", "-N", "--empty-password", "-d", "sql:"+database)
	outside("certutil", "-A", "-n", "cluster", "-t", "C,,", "-i", filepath.Join(c.dir, "ca.pem"), "-d", "sql:"+database)
	outside("certutil", "-A", "-n", "issuer", "-t", "C,,", "-i", c.issuer.CA, "-d", "sql:"+database)
	if client != "" {
		file := filepath.Join(home, "client.p12")
		pair := filepath.Join(c.dir, "clients", client)
		outside("openssl", "pkcs12", "-export", "-in", pair+".pem", "-inkey", pair+".key", "-out", file, "-passout", "pass:")
		outside("pk12util", "-i", file, "-W", "", "-d", "sql:"+database)
	}
	profile := filepath.Join(home, "profile")
	// A person selects the certificate in a window; here the profile has the selection.
	chosen := `{"profile":{"content_settings":{"exceptions":{"auto_select_certificate":{"https://127.0.0.1,*":{"setting":{"filters":[{}]}}}}}}}`
	if err := os.MkdirAll(filepath.Join(profile, "Default"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(profile, "Default", "Preferences"), []byte(chosen), 0o600); err != nil {
		t.Fatal(err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath("chromium"), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.UserDataDir(profile), chromedp.Env("HOME="+home), chromedp.WindowSize(1440, 900))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	b := &browser{T: t, c: c}
	b.ctx, stop = chromedp.NewContext(ctx, chromedp.WithListener(b.hear))
	t.Cleanup(stop)
	// The first call starts the browser, which ends with the context of that call.
	if err := chromedp.Do(b.ctx); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	b.theme("light")
	b.size(views[0].width, views[0].height, views[0].scale)
	return b
}

// call runs a command of the browser's protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) R {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	r, err := chromedp.Call(ctx, command, params)
	if err != nil {
		b.Fatal(err)
	}
	return r
}

// hear records what the browser complains about, and requests to others than the cluster and the
// issuer.
func (b *browser) hear(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.trouble = append(b.trouble, e.ExceptionDetails.Text+" "+describe(e.ExceptionDetails.Exception))
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning || e.Type == runtime.ConsoleAPICalledTypeAssert {
			text := string(e.Type)
			for _, a := range e.Args {
				text += " " + describe(a)
			}
			b.trouble = append(b.trouble, text)
		}
	case *log.EventEntryAdded:
		// The issuer's own page has no icon.
		if strings.HasPrefix(e.Entry.URL, b.c.issuer.URL) {
			return
		}
		if e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning {
			b.trouble = append(b.trouble, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil || u.Scheme == "data" || u.Scheme == "chrome" {
			return
		}
		origin := u.Scheme + "://" + u.Host
		for _, known := range b.c.origins {
			if origin == known {
				return
			}
		}
		if origin != b.c.issuer.URL {
			b.asked = append(b.asked, e.Request.URL)
		}
	}
}

// quiet fails the test if the browser complained or asked others since the last call.
func (b *browser) quiet(where string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.trouble {
		b.Errorf("%s: the browser complains: %s", where, s)
	}
	for _, s := range b.asked {
		b.Errorf("%s: the browser asked another server: %s", where, s)
	}
	b.trouble, b.asked = nil, nil
}

// do runs actions.
func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.Fatal(err)
	}
}

// open goes to an address.
func (b *browser) open(address string) {
	b.Helper()
	b.do(chromedp.Navigate(address))
}

// value evaluates an expression in the page.
func value[T any](b *browser, expression string) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		b.Fatalf("%s: %v", expression[:min(len(expression), 200)], err)
	}
	return v
}

// until waits until an expression is true in the page, at most for a limit, and returns how long it
// took.
func (b *browser) until(limit time.Duration, what, expression string) time.Duration {
	b.Helper()
	began := time.Now()
	for {
		ctx, cancel := context.WithTimeout(b.ctx, patience)
		// The page may be changing to another.
		so, err := chromedp.Run(ctx, chromedp.Evaluate[bool]("!!("+expression+")"))
		cancel()
		took := time.Since(began)
		if err == nil && so {
			return took
		}
		if took > limit {
			b.Fatalf("%s: not within %s (%v). The page shows:\n%s", what, limit, err, b.text("body"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// quoted is a text as a string of a page's language.
func quoted(s string) string { return fmt.Sprintf("%q", s) }

// text returns what an element shows.
func (b *browser) text(selector string) string {
	b.Helper()
	return value[string](b, "document.querySelector("+quoted(selector)+")?.innerText ?? ''")
}

// shows waits until an element shows all these texts.
func (b *browser) shows(selector string, texts ...string) {
	b.Helper()
	for _, s := range texts {
		b.until(patience, "the page shows "+s, "(document.querySelector("+quoted(selector)+")?.innerText ?? '').includes("+quoted(s)+")")
	}
}

// page goes to a page of the console by its link, and waits until it has said how things are.
func (b *browser) page(path string) {
	b.Helper()
	b.until(patience, "the link to "+path, "document.querySelector('nav.pages a[href="+quoted(path)+"]')")
	value[bool](b, "(document.querySelector('nav.pages a[href="+quoted(path)+"]').click(), true)")
	b.settled(path)
}

// settled waits until the page at this path shows its data, its fonts and its charts.
func (b *browser) settled(path string) {
	b.Helper()
	b.until(patience, path+" is shown", "location.pathname === "+quoted(path)+" && document.querySelector('.page-head .verdict') && !/^Waiting/.test(document.querySelector('.page-head .verdict').innerText)")
	b.drawn()
}

// drawn waits until the fonts are there, and charts have measured their place and drawn.
func (b *browser) drawn() {
	b.Helper()
	value[bool](b, "document.fonts.ready.then(() => true)")
	time.Sleep(200 * time.Millisecond)
}

// width makes the page this wide. The scale is that of its zoom.
func (b *browser) size(width, height int64, scale float64) {
	b.Helper()
	call(b, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: width, Height: height, DeviceScaleFactor: scale, Mobile: width < 500})
}

// theme selects the system's theme.
func (b *browser) theme(name string) {
	b.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-reduced-motion", Value: "reduce"}, {Name: "prefers-color-scheme", Value: name}}})
}

// signInBy signs in with a link of a client.
func (b *browser) signInBy(link string) {
	b.Helper()
	b.open(link)
	b.until(patience, "the console is shown", "location.pathname === '/cluster' && document.querySelector('nav.pages')")
}

// reason returns what the sign-in page says of a refusal.
func (b *browser) reason() string { return strings.TrimSpace(b.text(".trouble")) }

// describe returns the text of a value of the page.
func describe(o *runtime.RemoteObject) string {
	if o == nil {
		return ""
	}
	return string(o.Value) + o.Description
}
