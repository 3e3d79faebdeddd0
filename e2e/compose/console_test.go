//go:build compose

package compose

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
)

// console signs in at the console of every process, through its published port, and sees that all
// parties are connected.
func (c cluster) console() {
	ca, err := os.ReadFile(filepath.Join(*treeFlag, "lodge-cluster", "ca.pem"))
	if err != nil {
		c.t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	for _, service := range services {
		flags := []string{"console", "open"}
		if service != "coordinator" {
			flags = append(flags, "--party", service)
		}
		link := ask[struct{ URL string }](c, flags...).URL
		jar, err := cookiejar.New(nil)
		if err != nil {
			c.t.Fatal(err)
		}
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
		defer transport.CloseIdleConnections()
		browser := &http.Client{Jar: jar, Transport: transport, Timeout: patience}
		send := func(method, address, body string) string {
			r, err := http.NewRequestWithContext(c.t.Context(), method, address, strings.NewReader(body))
			if err != nil {
				c.t.Fatal(err)
			}
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set("Content-Type", "application/json")
			w, err := browser.Do(r)
			if err != nil {
				c.t.Fatalf("%s: %v", service, err)
			}
			defer w.Body.Close()
			b, err := io.ReadAll(w.Body)
			if err != nil || w.StatusCode != http.StatusOK {
				c.t.Fatalf("%s: %s: %d %v %s", service, address, w.StatusCode, err, b)
			}
			return string(b)
		}
		origin, _, _ := strings.Cut(link, "/signin/")
		send(http.MethodGet, link, "") // signs in, and leads to the pages
		if page := send(http.MethodGet, origin+"/cluster", ""); !strings.Contains(page, "/assets/") {
			c.t.Errorf("%s: the page is %s", service, page)
		}
		status := send(http.MethodPost, origin+"/api/rpc/lodge.status.v1.StatusService/GetStatus", "{}")
		for _, party := range parties {
			if party != service && !strings.Contains(status, `"name":"`+party+`"`) {
				c.t.Errorf("%s: no link to %s: %s", service, party, status)
			}
		}
		if !strings.Contains(status, "LINK_STATE_CONNECTED") {
			c.t.Errorf("%s: nothing is connected: %s", service, status)
		}
	}
}
