package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gexec"

	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// console is a browser at the console of a process.
type console struct {
	http   *http.Client
	origin string
}

// open signs a browser in with a link of `lodge console open`.
func (c *cluster) open(flags ...string) *console {
	GinkgoHelper()
	s := run(20*time.Second, append([]string{"console", "open", "--cluster", c.dir, "--json"}, flags...)...)
	Expect(s).To(gexec.Exit(0))
	var link struct{ URL string }
	Expect(json.Unmarshal(s.Out.Contents(), &link)).To(Succeed())
	b := c.browser("")
	at := strings.Index(link.URL, "/signin/link/")
	b.origin = link.URL[:at]
	status, body := b.send(http.MethodGet, link.URL[at:], "")
	Expect(status).To(Equal(http.StatusOK), body)
	return b
}

// browser returns a browser that trusts the cluster's authority, with the certificate of a client.
func (c *cluster) browser(client string) *console {
	GinkgoHelper()
	ca, err := os.ReadFile(filepath.Join(c.dir, "ca.pem"))
	Expect(err).NotTo(HaveOccurred())
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ca)
	if client != "" {
		cert, err := tls.LoadX509KeyPair(filepath.Join(c.dir, "clients", client+".pem"), filepath.Join(c.dir, "clients", client+".key"))
		Expect(err).NotTo(HaveOccurred())
		config.Certificates = []tls.Certificate{cert}
	}
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	DeferCleanup(transport.CloseIdleConnections)
	return &console{http: &http.Client{Jar: jar, Transport: transport, Timeout: 20 * time.Second}}
}

// send sends a request as a page of the console does.
func (c *console) send(method, path, body string) (int, string) {
	GinkgoHelper()
	r, err := http.NewRequest(method, c.origin+path, bytes.NewReader([]byte(body)))
	Expect(err).NotTo(HaveOccurred())
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", "application/json")
	w, err := c.http.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer w.Body.Close()
	b, err := io.ReadAll(w.Body)
	Expect(err).NotTo(HaveOccurred())
	return w.StatusCode, string(b)
}

// call calls a method, and returns its response.
func (c *console) call(method string, request, response any) int {
	GinkgoHelper()
	b, err := json.Marshal(request)
	Expect(err).NotTo(HaveOccurred())
	status, body := c.send(http.MethodPost, "/api/rpc/"+method, string(b))
	if status == http.StatusOK {
		Expect(json.Unmarshal([]byte(body), response)).To(Succeed())
	}
	return status
}

// links returns the links of a process's status that are connected, by name.
func (c *console) links() map[string]bool {
	GinkgoHelper()
	var s struct {
		Links []struct{ Name, State string }
	}
	Expect(c.call("lodge.status.v1.StatusService/GetStatus", struct{}{}, &s)).To(Equal(http.StatusOK))
	up := map[string]bool{}
	for _, l := range s.Links {
		up[l.Name] = l.State == "LINK_STATE_CONNECTED"
	}
	return up
}

var _ = Describe("the console", Ordered, func() {
	var c *cluster
	BeforeAll(func() { c = newClusterWith(3, []string{"--console"}) })

	It("signs in by a link, once, and by a certificate", func() {
		b := c.open()
		status, body := b.send(http.MethodGet, "/api/session", "")
		Expect(status).To(Equal(http.StatusOK))
		Expect(body).To(And(ContainSubstring(`"name":"operator"`), ContainSubstring(`"kind":"link"`), ContainSubstring(`"role":"coordinator"`)))
		p := c.open("--party", "p1")
		_, body = p.send(http.MethodGet, "/api/session", "")
		Expect(body).To(And(ContainSubstring(`"name":"client-p1"`), ContainSubstring(`"role":"party"`)))

		by := c.browser(devnet.Operator)
		by.origin = b.origin
		status, _ = by.send(http.MethodGet, "/api/session", "")
		Expect(status).To(Equal(http.StatusUnauthorized))
		status, _ = by.send(http.MethodPost, "/signin/certificate", "")
		Expect(status).To(Equal(http.StatusNoContent))
		_, body = by.send(http.MethodGet, "/api/session", "")
		Expect(body).To(ContainSubstring(`"kind":"certificate"`))

		app := c.browser(devnet.App) // no client of the coordinator
		app.origin = b.origin
		status, _ = app.send(http.MethodPost, "/signin/certificate", "")
		Expect(status).To(Equal(http.StatusForbidden))
	})

	It("shows jobs and changes nothing", func() {
		b := c.open()
		before := run(20*time.Second, "jobs", "list", "--cluster", c.dir, "--json").Out.Contents()
		var jobs struct{ Jobs []struct{ ID string } }
		Expect(b.call("lodge.coordinator.v1.CoordinatorService/ListJobs", struct{}{}, &jobs)).To(Equal(http.StatusOK))
		for _, method := range []string{"SubmitJob", "CancelJob", "RotateKeys"} {
			Expect(b.call("lodge.coordinator.v1.CoordinatorService/"+method, map[string]any{"job": map[string]any{"kind": "KIND_KEYS", "params": set}}, nil)).To(Equal(http.StatusForbidden))
		}
		Expect(run(20*time.Second, "jobs", "list", "--cluster", c.dir, "--json").Out.Contents()).To(Equal(before))
	})

	It("sees a party go and come back within five seconds", func() {
		b := c.open()
		Eventually(b.links, 20*time.Second, 200*time.Millisecond).Should(Equal(map[string]bool{"p0": true, "p1": true, "p2": true}))
		c.procs["p2"].Kill().Wait(10 * time.Second)
		Eventually(b.links, 5*time.Second, 200*time.Millisecond).Should(HaveKeyWithValue("p2", false))
		c.start("p2")
		Eventually(b.links, 5*time.Second, 200*time.Millisecond).Should(HaveKeyWithValue("p2", true))
	})

	It("keeps history", func() {
		b := c.open()
		Eventually(func() string {
			_, body := b.send(http.MethodGet, `/api/history?since=60&series=lodge_peer_up{peer="p0"}`, "")
			return body
		}, 20*time.Second, time.Second).Should(MatchRegexp(`"series":\{"lodge_peer_up\{peer=\\"p0\\"\}":\[.*1`))
	})

	It("is off unless it is configured", func() {
		plain := newCluster(2)
		s := run(20*time.Second, "console", "open", "--cluster", plain.dir)
		Expect(s).NotTo(gexec.Exit(0))
		Expect(string(s.Err.Contents())).To(ContainSubstring("console.listen"))
	})
})
