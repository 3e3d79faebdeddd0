//go:build console

package console

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/e2e/outside"
	"github.com/lodge-mpc/lodge/services/host/oidc/oidctest"
)

var (
	binary    = flag.String("lodge", "", "the lodge that is tested")
	byzantine = flag.String("byzantine", "", "the tests of e2e/byzantine, which run the party that can cheat")
	axeSource = flag.String("axe", "", "axe.min.js of axe-core")
	pictures  = flag.String("pictures", "", "a directory for screenshots of all pages")
	guide     = flag.String("guide", "", "a directory for the screenshots of the guide")
	rewrite   = flag.Bool("write", false, "replace the layouts that screenshots are compared with")
)

const (
	set          = "insecure-11" // whose jobs take seconds
	thresholdSet = "insecure-L8-50"
	multikeySet  = "insecure-M8-32"
	// patience bounds all that has no limit of its own. It allows for a busy machine.
	patience = 90 * time.Second
	// seen is how soon a page shows that a process went or came back.
	seen = 5 * time.Second
)

// cheater is the party that cheats when it is told to.
const cheater = "p2"

// cluster is a coordinator and three parties, each in its own process and with a console.
type cluster struct {
	*testing.T
	operator outside.Operator
	dir      string
	issuer   *oidctest.Issuer
	origins  map[string]string // addresses of consoles, by process
	procs    map[string]*exec.Cmd
	orders   io.Writer
	answers  *bufio.Scanner
}

// start creates and starts a cluster whose coordinator knows an issuer.
func start(t *testing.T) *cluster {
	dir := filepath.Join(t.TempDir(), "cluster")
	c := &cluster{T: t, operator: outside.Operator{T: t, Binary: *binary, Dir: dir}, dir: dir, origins: map[string]string{}, procs: map[string]*exec.Cmd{}}
	out, err := exec.Command(*binary, "init", dir, "--port", "0", "--dev", "--allow-insecure-params", "--params", set+","+thresholdSet,
		"--multikey", multikeySet, "--console").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{"coordinator", "p0", "p1", "p2"} {
		c.configure(name)
		c.launch(name)
	}
	c.operator.Ready(4)
	return c
}

// file returns the path of the configuration of a process.
func (c *cluster) file(name string) string {
	if name == "coordinator" {
		return filepath.Join(c.dir, name, "coordinator.yaml")
	}
	return filepath.Join(c.dir, name, "party.yaml")
}

// configure reads the address of a console. The coordinator also gets an issuer, and two of its
// users as clients: one with all that a page can show, and one with nothing.
func (c *cluster) configure(name string) {
	c.Helper()
	c.edit(name, func(f map[string]any) {
		console := f["console"].(map[string]any)
		origin := "https://" + console["listen"].(string)
		c.origins[name] = origin
		if name != "coordinator" {
			// A party gives up soon on a peer that is gone.
			f["limits"] = map[string]any{"idle": "5s", "compute": "10s"}
			return
		}
		for c.issuer == nil || c.reserved(strings.TrimPrefix(c.issuer.URL, "https://")) {
			c.issuer = oidctest.New(c.T, oidctest.Client{ID: "lodge-coordinator", Redirect: origin + "/signin/oidc/callback"})
		}
		console["url"] = origin
		f["oidc"] = map[string]any{"issuer": c.issuer.URL, "audience": "lodge-coordinator", "ca": c.issuer.CA}
		f["clients"] = append(f["clients"].([]any),
			map[string]any{"name": "olga", "oidc_subject": oidctest.Subject, "permissions": []string{"status"}, "tenants": []string{"dev"}})
	})
}

// reserved reports whether a process that has not started yet will listen at the address.
func (c *cluster) reserved(address string) bool {
	c.Helper()
	files, err := filepath.Glob(filepath.Join(c.dir, "*", "*.yaml"))
	c.must(err)
	for _, file := range files {
		b, err := os.ReadFile(file)
		c.must(err)
		if bytes.Contains(b, []byte(address)) {
			return true
		}
	}
	return false
}

// edit changes the configuration of a process.
func (c *cluster) edit(name string, change func(map[string]any)) {
	c.Helper()
	b, err := os.ReadFile(c.file(name))
	c.must(err)
	var f map[string]any
	c.must(yaml.Unmarshal(b, &f))
	change(f)
	b, err = yaml.Marshal(f)
	c.must(err)
	c.must(os.WriteFile(c.file(name), b, 0o600))
}

func (c *cluster) must(err error) {
	c.Helper()
	if err != nil {
		c.Fatal(err)
	}
}

// output keeps what a process writes, for the report of a failure.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.b.String()
	return s[max(0, len(s)-3000):]
}

// launch starts a process, which stops with the test.
func (c *cluster) launch(name string) {
	c.Helper()
	cmd := exec.Command(*binary, "party", "--config", c.file(name))
	switch name {
	case "coordinator":
		cmd = exec.Command(*binary, name, "--config", c.file(name))
	case cheater:
		cmd = exec.Command(*byzantine, "--version", "(devel)", "--cheat", "-", "--config", c.file(name))
		in, err := cmd.StdinPipe()
		c.must(err)
		out, err := cmd.StdoutPipe()
		c.must(err)
		c.orders, c.answers = in, bufio.NewScanner(out)
	}
	log := &output{}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.must(cmd.Start())
	c.procs[name] = cmd
	c.Cleanup(func() {
		c.kill(name)
		if c.Failed() {
			c.Logf("%s:\n%s", name, log.tail())
		}
	})
}

// kill ends a process abruptly, like a power failure.
func (c *cluster) kill(name string) {
	if p := c.procs[name]; p != nil {
		_ = p.Process.Kill() // it may have ended already
		_ = p.Wait()
		delete(c.procs, name)
	}
}

// cheat makes the cheater cheat in this way from its next session on; without a name it is honest.
func (c *cluster) cheat(name string) {
	c.Helper()
	order := "honest"
	if name != "" {
		order = "cheat " + name
	}
	_, err := fmt.Fprintln(c.orders, order)
	c.must(err)
	if !c.answers.Scan() || !strings.HasPrefix(c.answers.Text(), "ok") {
		c.Fatalf("%s: %s", order, c.answers.Text())
	}
}

// link returns a link that signs a browser in to the console of a process, as a client.
func (c *cluster) link(process string, flags ...string) string {
	c.Helper()
	args := append([]string{"console", "open", "--json"}, flags...)
	if process != "coordinator" {
		args = append(args, "--party", process)
	}
	var link struct{ URL string }
	c.must(json.Unmarshal([]byte(c.operator.Run(args...)), &link))
	return link.URL
}

// work makes the cluster make everything that the pages show, except for cheats.
func (c *cluster) work() {
	c.Helper()
	c.operator.Run("jobs", "submit", "--kind", "keys", "--params", set, "--wait")
	c.operator.Run("keys", "generate", "--params", thresholdSet, "--wait")
	c.operator.Run("keys", "masks", "2", "--every-quorum", "--count", "500", "--wait")
	c.operator.Run("stock", "policies", "set", "--kind", "scalar", "--params", set, "--low", "8000", "--high", "16000", "--batch", "4000")
	c.operator.Run("jobs", "submit", "--kind", "bit", "--params", set, "--epoch", "1", "--count", "100", "--wait")
	for _, p := range []string{"p0", "p1"} {
		c.operator.Run("mk", "keys", "make", "--party", p)
	}
	id := strings.Fields(c.operator.Run("reserve", "--kind", "scalar", "--params", set, "--count", "700", "--wait", "--timeout", "60s"))[0]
	for _, p := range []string{"p0", "p1", "p2"} {
		c.operator.Run("fetch", id, "--party", p, "--out", filepath.Join(c.dir, "shares", p))
	}
	c.operator.Run("reserve", "--kind", "scalar", "--params", set, "--count", "50", "--wait", "--timeout", "60s")
}
