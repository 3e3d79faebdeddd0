//go:build pages

package pages

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

var lodge = flag.String("lodge", "", "the lodge that is tested")

// set is a parameter set whose jobs take seconds.
const set = "insecure-11"

// cluster is a coordinator and three parties, each in its own process and with a console.
type cluster struct {
	outside.Operator
	origins map[string]string // addresses of consoles, by process
	procs   map[string]*exec.Cmd
}

// start creates and starts a cluster with keys, whose consoles have more settings.
func start(t *testing.T, settings map[string]any) *cluster {
	t.Helper()
	if *lodge == "" {
		t.Fatal("this is started by e2e/pages/run")
	}
	dir := filepath.Join(t.TempDir(), "cluster")
	c := &cluster{Operator: outside.Operator{T: t, Binary: *lodge, Dir: dir}, origins: map[string]string{}, procs: map[string]*exec.Cmd{}}
	out, err := exec.Command(*lodge, "init", dir, "--port", "0", "--dev", "--allow-insecure-params", "--params", set, "--console").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"coordinator", "p0", "p1", "p2"} {
		role := "party"
		if name == "coordinator" {
			role = name
		}
		file := filepath.Join(dir, name, role+".yaml")
		b, err := os.ReadFile(file)
		outside.Must(t, err)
		var f map[string]any
		outside.Must(t, yaml.Unmarshal(b, &f))
		console := f["console"].(map[string]any)
		c.origins[name] = "https://" + console["listen"].(string)
		for key, value := range settings {
			console[key] = value
		}
		b, err = yaml.Marshal(f)
		outside.Must(t, err)
		outside.Must(t, os.WriteFile(file, b, 0o600))
		cmd := exec.Command(*lodge, role, "--config", file)
		log := &bytes.Buffer{} // read after the process has ended
		cmd.Stderr = log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		outside.Must(t, cmd.Start())
		c.procs[name] = cmd
		t.Cleanup(func() {
			_ = cmd.Process.Kill() // it may have ended already
			_ = cmd.Wait()
			if text := log.String(); t.Failed() {
				t.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
			}
		})
	}
	c.Ready(4)
	c.Run("jobs", "submit", "--kind", "keys", "--params", set, "--wait")
	return c
}

// browser sends requests as a page of the console does.
type browser struct {
	t      *testing.T
	http   *http.Client
	origin string
}

// browse returns a browser that has signed in with the certificate of a client.
func (c *cluster) browse(process, client string) *browser {
	c.T.Helper()
	ca, err := os.ReadFile(filepath.Join(c.Dir, "ca.pem"))
	outside.Must(c.T, err)
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	config.RootCAs.AppendCertsFromPEM(ca)
	base := filepath.Join(c.Dir, "clients", client)
	cert, err := tls.LoadX509KeyPair(base+".pem", base+".key")
	outside.Must(c.T, err)
	config.Certificates = []tls.Certificate{cert}
	jar, err := cookiejar.New(nil)
	outside.Must(c.T, err)
	transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
	c.T.Cleanup(transport.CloseIdleConnections)
	b := &browser{c.T, &http.Client{Jar: jar, Transport: transport}, c.origins[process]}
	r, err := b.send(http.MethodPost, "/signin/certificate", "application/json", nil)
	outside.Must(c.T, err)
	r.Body.Close()
	if r.StatusCode != http.StatusNoContent {
		c.T.Fatalf("%s at %s: %s", client, process, r.Status)
	}
	return b
}

// send sends a request.
func (b *browser) send(method, path, content string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(b.t.Context(), method, b.origin+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Content-Type", content)
	return b.http.Do(r)
}

// get reads a value.
func (b *browser) get(path string, value any) error {
	w, err := b.send(http.MethodGet, path, "", nil)
	if err != nil {
		return err
	}
	defer w.Body.Close()
	body, err := io.ReadAll(w.Body)
	if err == nil && w.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s %s", path, w.Status, body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, value)
}

// stat returns the fields of /proc/PID/stat of a process that follow its name.
func (c *cluster) stat(process string) []string {
	c.T.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.procs[process].Process.Pid))
	outside.Must(c.T, err)
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
