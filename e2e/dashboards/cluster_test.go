//go:build dashboards

package dashboards

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lodge-mpc/lodge/e2e/outside"
)

// cluster is a coordinator, three parties, and the Prometheus server that scrapes them, each in its
// own process.
type cluster struct {
	*testing.T
	dir     string
	names   []string
	metrics map[string]string // addresses, by process
	procs   map[string]*exec.Cmd
	prometheus
}

// start creates and starts a cluster with the parameter set of the flag, and waits until Prometheus
// scrapes all processes.
func start(t *testing.T) *cluster {
	c := &cluster{T: t, dir: t.TempDir(), names: []string{"coordinator", "p0", "p1", "p2"}, metrics: map[string]string{}, procs: map[string]*exec.Cmd{}}
	t.Cleanup(c.stop)
	c.lodge("init", c.path("net"), "--dev", "--allow-insecure-params", "--params", *set+","+thresholdSet, "--multikey", multikeySet, "--port", "0")
	for _, name := range c.names {
		c.metrics[name] = outside.FreeAddress(t)
		c.launch(name)
	}
	c.monitor()
	c.until("Prometheus has the metrics of all", func() bool { return len(c.now(`up == 1`)) == len(c.names) })
	c.since = time.Now()
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// run starts a program that is stopped when the test ends. Its output is shown if the test fails.
func (c *cluster) run(name, program string, args ...string) {
	c.Helper()
	cmd := exec.Command(program, args...)
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		c.Fatal(err)
	}
	c.procs[name] = cmd
	c.Cleanup(func() {
		if c.Failed() {
			text := log.String()
			c.Logf("%s:\n%s", name, text[max(0, len(text)-3000):])
		}
	})
}

// launch starts a process of the cluster.
func (c *cluster) launch(name string) {
	kind, file := "party", "party.yaml"
	if name == "coordinator" {
		kind, file = name, "coordinator.yaml"
	}
	c.run(name, *binary, kind, "--config", filepath.Join(c.path("net"), name, file), "--set", "metrics_listen="+c.metrics[name])
}

// monitor starts Prometheus with the rules of this source tree.
func (c *cluster) monitor() {
	rules, err := filepath.Abs("../../dashboards/rules/lodge.yaml")
	if err != nil {
		c.Fatal(err)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs:\n  - job_name: lodge\n    static_configs:\n", rules)
	for _, name := range c.names {
		fmt.Fprintf(&b, "      - {targets: [%q], labels: {process: %s}}\n", c.metrics[name], name)
	}
	if err := os.WriteFile(c.path("prometheus.yml"), []byte(b.String()), 0o600); err != nil {
		c.Fatal(err)
	}
	address := outside.FreeAddress(c.T)
	c.prometheus = prometheus{c.T, "http://" + address, time.Now()}
	c.run("prometheus", "prometheus", "--config.file="+c.path("prometheus.yml"), "--storage.tsdb.path="+c.path("tsdb"), "--web.listen-address="+address)
	c.until("Prometheus answers", c.ready)
}

// kill ends a process at once.
func (c *cluster) kill(name string) {
	if p := c.procs[name]; p != nil {
		_ = p.Process.Kill() // it may have exited already
		_ = p.Wait()
		delete(c.procs, name)
	}
}

func (c *cluster) stop() {
	for name := range c.procs {
		c.kill(name)
	}
}

// lodge runs a lodge command on the cluster and returns its output.
func (c *cluster) lodge(args ...string) string {
	c.Helper()
	out, err := c.try(args...)
	if err != nil {
		c.Fatalf("lodge %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

func (c *cluster) try(args ...string) (string, error) {
	cmd := exec.Command(*binary, args...)
	cmd.Env = append(os.Environ(), "LODGE_CLUSTER="+c.path("net"))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// until waits until a condition holds.
func (c *cluster) until(what string, so func() bool) {
	c.Helper()
	for end := time.Now().Add(*limit); !so(); time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("timeout after %s: %s", *limit, what)
		}
	}
}

// work makes the cluster do everything that the dashboards show: keys, tuples of two kinds, a
// policy, successful reservations and a failing one, deliveries, decryptions by all parties and by
// two of three, and an evaluation on two parties' ciphertexts.
func (c *cluster) work() {
	c.lodge("jobs", "submit", "--kind", "keys", "--params", *set, "--wait")
	c.lodge("jobs", "submit", "--kind", "keys", "--params", *set, "--purpose", "decryption", "--wait")
	c.lodge("keys", "generate", "--params", thresholdSet, "--wait")
	c.lodge("keys", "masks", "3", "--every-quorum", "--count", "2000", "--wait")
	c.lodge("stock", "policies", "set", "--kind", "scalar", "--params", *set, "--low", "2000", "--high", "4000", "--batch", "500")
	c.lodge("jobs", "submit", "--kind", "bit", "--params", *set, "--epoch", "1", "--count", "100", "--wait")
	c.draw("scalar", 700, "--wait", "--timeout", "4m")
	if out, err := c.try("reserve", "--kind", "square", "--params", *set, "--count", "10"); err == nil {
		c.Fatalf("reserved squares that are not in stock: %s", out)
	}
	c.lodge("keys", "generate", "--params", multikeySet, "--wait")
	c.lodge("keys", "masks", "4", "--quorum", "p0,p1", "--count", "2000", "--wait")
	c.lodge("mk", "netlist", "example", "adder", "2", "--out", c.path("adder"))
	for _, p := range c.names[1:] {
		c.lodge("mk", "keys", "make", "--party", p)
		c.lodge("mk", "encrypt", "10", "--party", p, "--out", c.path(p+".mk"))
	}
	c.until("p0 has the keys of p1", func() bool {
		_, err := c.try("mk", "evaluate", c.path("adder"), "--in", c.path("p0.mk"), "--in", c.path("p1.mk"), "--party", "p0", "--estimate")
		return err == nil
	})
	c.decrypt(1)
}

// draw reserves tuples and has each party's client fetch its shares.
func (c *cluster) draw(kind string, count int, more ...string) {
	c.Helper()
	id := c.lodge(append([]string{"reserve", "--kind", kind, "--params", *set, "--count", fmt.Sprint(count)}, more...)...)
	for _, p := range c.names[1:] {
		c.lodge("fetch", id, "--party", p, "--out", filepath.Join(c.dir, "shares", id, p))
	}
}

// thresholdSet is a set with fast key generation.
const thresholdSet = "insecure-L8-50"

// multikeySet is a set with fast gates.
const multikeySet = "insecure-M8-32"

// decrypt makes all parties decrypt a new ciphertext, two of them a ciphertext under threshold
// keys, and the owners of multi-key keys a sum.
func (c *cluster) decrypt(n int) {
	c.Helper()
	file := c.path(fmt.Sprintf("%d.ct", n))
	c.lodge("ciphertexts", "encrypt", "1", "2", fmt.Sprint(n), "--field", *field, "--out", file)
	c.lodge("ciphertexts", "decrypt", file)
	few := c.path(fmt.Sprintf("%d.lwe", n))
	c.lodge("keys", "encrypt", "3", "1", "2", "3", "--out", few)
	c.lodge("decrypt", few)
	number, sum := c.path(fmt.Sprintf("%d.number", n)), c.path(fmt.Sprintf("%d.mk", n))
	c.lodge("mk", "encrypt", "01", "--party", "p0", "--out", number)
	c.lodge("mk", "evaluate", c.path("adder"), "--in", number, "--in", c.path("p1.mk"), "--party", "p0", "--out", sum)
	c.lodge("mk", "decrypt", sum)
}
