//go:build compose

// Package compose tests the unmodified docker-compose.yml: containers of the image built by the
// Dockerfile, published ports, volumes, health checks, and the recovery of the cluster after a
// process is killed, disconnected or stopped. e2e/compose/run runs the tests with a separate Docker
// daemon.
package compose

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var (
	lodgeFlag = flag.String("lodge", "", "the lodge binary, built as in the image")
	treeFlag  = flag.String("tree", "", "a copy of the working tree, whose docker-compose.yml is started")
)

// patience is the timeout for expected events. It allows for a busy machine.
const patience = 10 * time.Minute

// cluster runs the services of docker-compose.yml.
type cluster struct {
	t *testing.T
}

// output runs a program in the source tree and returns its output.
func (c cluster) output(name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Dir = *treeFlag
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s", filepath.Base(name), strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}

// run is like output and fails the test if the program fails.
func (c cluster) run(name string, args ...string) string {
	c.t.Helper()
	begun := time.Now()
	out, err := c.output(name, args...)
	if err != nil {
		c.t.Fatal(err)
	}
	if took := time.Since(begun); took > time.Second {
		c.t.Logf("%5.1f s  %s %s", took.Seconds(), filepath.Base(name), strings.Join(args, " "))
	}
	return strings.TrimSpace(out)
}

func (c cluster) docker(args ...string) string {
	c.t.Helper()
	return c.run("docker", args...)
}

func (c cluster) compose(args ...string) string {
	c.t.Helper()
	return c.docker(append([]string{"compose"}, args...)...)
}

func (c cluster) lodge(args ...string) string {
	c.t.Helper()
	return c.run(*lodgeFlag, append(args, "--cluster", "lodge-cluster")...)
}

// ask runs lodge with --json and decodes the output.
func ask[T any](c cluster, args ...string) (out T) {
	c.t.Helper()
	text := c.lodge(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Fatalf("%v: %v: %s", args, err, text)
	}
	return out
}

// until waits until a condition holds.
func (c cluster) until(what string, holds func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("timeout after %s: %s\n%s", patience, what, c.compose("ps", "--all"))
		}
	}
}

// container returns the id of a service's container.
func (c cluster) container(service string) string {
	c.t.Helper()
	return c.compose("ps", "--all", "--quiet", service)
}

// inspect returns formatted information from Docker about a service's container.
func (c cluster) inspect(service, format string) string {
	c.t.Helper()
	return c.docker("inspect", "--format", format, c.container(service))
}

// healthy waits until Docker reports a service as healthy.
func (c cluster) healthy(service string) {
	c.t.Helper()
	c.until(service+" is healthy", func() bool { return c.inspect(service, "{{.State.Health.Status}}") == "healthy" })
}

var (
	services = []string{"coordinator", "p0", "p1", "p2"}
	parties  = services[1:]
)

// jobRecord has the fields of a job that the test uses.
type jobRecord struct {
	ID      string `json:"id"`
	State   string `json:"state"`
	Epoch   uint64 `json:"epoch"`
	Made    uint64 `json:"made"`
	Parties []struct {
		RoundIndex uint32 `json:"round_index"`
		Reachable  bool   `json:"reachable"`
	} `json:"parties"`
}

func (j jobRecord) final() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "timed_out"}, j.State)
}

// job runs a job and fails the test unless it completes.
func (c cluster) job(args ...string) jobRecord {
	c.t.Helper()
	j := ask[jobRecord](c, append([]string{"jobs", "submit", "--wait"}, args...)...)
	if j.State != "completed" {
		c.t.Fatalf("%v: %+v", args, j)
	}
	return j
}

func TestCompose(t *testing.T) {
	if *lodgeFlag == "" || *treeFlag == "" {
		t.Fatal("this is started by e2e/compose/run")
	}
	const hostUser = 12345 // the owner of lodge-cluster and of the clients' files
	if err := os.Chown(filepath.Join(*treeFlag, "lodge-cluster"), hostUser, hostUser); err != nil {
		t.Fatal(err)
	}
	each := up(t)
	each("image", cluster.image)
	each("confinement", cluster.confinement)
	each("outside", func(c cluster) { c.outside(hostUser) })
	each("commands", cluster.commands)
	each("verified", cluster.verified)
	each("console", cluster.console)
	each("monitored", cluster.monitored)
	var stock stock
	each("stock", func(c cluster) { stock = c.stock() })
	for _, service := range []string{"p1", "coordinator"} {
		for _, fault := range []string{"killed", "cut off", "paused"} {
			each(service+" "+fault, func(c cluster) { c.strike(service, fault, stock.struck) })
		}
	}
	each("down and up", func(c cluster) { c.again(stock) })
	each("another store", func(c cluster) { c.otherStore("postgres") })
	each("away", cluster.away)
}

// up starts a cluster that is removed after the test. It returns a function that runs the parts of
// the test up to the first failure.
func up(t *testing.T) (each func(string, func(cluster))) {
	c := cluster{t}
	t.Cleanup(func() { // also after a failure
		if t.Failed() {
			out, err := c.withoutContext("compose", "logs", "--tail", "40")
			t.Logf("%s %v", out, err)
		}
		if out, err := c.withoutContext("compose", "--profile", "*", "down", "--volumes", "--timeout", "10"); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	c.compose("up", "--detach", "--wait")
	return func(name string, f func(cluster)) {
		if !t.Run(name, func(t *testing.T) { f(cluster{t}) }) {
			t.FailNow()
		}
	}
}

// withoutContext runs docker after the test's context has ended.
func (c cluster) withoutContext(args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	cmd.Dir = *treeFlag
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// image checks that the image is small, has labels, and contains exactly the binary that a local
// build of this source tree produces.
func (c cluster) image() {
	const size = 40 << 20
	var n int
	if _, err := fmt.Sscan(c.docker("image", "inspect", "--format", "{{.Size}}", "lodge:dev"), &n); err != nil || n > size {
		c.t.Errorf("the image has %d bytes (%v)", n, err)
	}
	c.t.Logf("the image has %.1f MB", float64(n)/1e6)
	for format, want := range map[string]string{
		"{{.Config.User}}": "65532:65532", "{{json .Config.Entrypoint}}": `["lodge"]`, "{{json .Config.Healthcheck.Test}}": `["CMD","lodge","health"]`,
		`{{index .Config.Labels "org.opencontainers.image.licenses"}}`: "Apache-2.0", `{{index .Config.Labels "org.opencontainers.image.title"}}`: "Lodge",
	} {
		if got := c.docker("image", "inspect", "--format", format, "lodge:dev"); got != want {
			c.t.Errorf("%s is %s, want %s", format, got, want)
		}
	}
	out := c.t.TempDir()
	id := c.container("init")
	c.docker("cp", id+":/usr/local/bin/lodge", filepath.Join(out, "binary"))
	c.docker("cp", id+":/usr/share/doc/lodge/lodge.cdx.json", filepath.Join(out, "bill"))
	binary, err := os.ReadFile(filepath.Join(out, "binary"))
	if err != nil {
		c.t.Fatal(err)
	}
	if own, err := os.ReadFile(*lodgeFlag); err != nil || !bytes.Equal(own, binary) {
		c.t.Errorf("the hash of the image's binary is %x, and that of the local build is %x (%v)", sha256.Sum256(binary), sha256.Sum256(own), err)
	}
	inside, err := os.ReadFile(filepath.Join(out, "bill"))
	if err != nil || !json.Valid(inside) || !bytes.Contains(inside, []byte("go.etcd.io/bbolt")) {
		c.t.Errorf("the bill of materials: %v, %d bytes", err, len(inside))
	}
}

// confinement checks the privileges of each container, and that no party mounts another party's
// volume.
func (c cluster) confinement() {
	for i, service := range services {
		container := c.container(service)
		inspect := func(format string) string { return c.docker("inspect", "--format", format, container) }
		for format, want := range map[string]string{
			"{{.HostConfig.ReadonlyRootfs}}": "true", "{{json .HostConfig.CapDrop}}": `["ALL"]`, "{{json .HostConfig.CapAdd}}": "null",
			"{{json .HostConfig.SecurityOpt}}": `["no-new-privileges:true"]`, "{{.HostConfig.RestartPolicy.Name}}": "unless-stopped",
			"{{.Config.User}}": "65532:65532", "{{.HostConfig.Privileged}}": "false", "{{len .Mounts}}": "1",
			"{{(index .Mounts 0).Type}} {{(index .Mounts 0).Destination}}":                        "volume /var/lib/lodge",
			"{{range .NetworkSettings.Ports}}{{range .}}{{.HostIp}}:{{.HostPort}} {{end}}{{end}}": fmt.Sprintf("127.0.0.1:%d 127.0.0.1:%d", 7100+i, 7104+i),
			"{{.State.Health.Status}}": "healthy",
		} {
			if got := inspect(format); got != want {
				c.t.Errorf("%s: %s is %s, want %s", service, format, got, want)
			}
		}
		if volume := inspect("{{(index .Mounts 0).Name}}"); !strings.HasSuffix(volume, "_"+service) {
			c.t.Errorf("%s has the volume %s", service, volume)
		}
		for _, limit := range []string{"{{.HostConfig.Memory}}", "{{.HostConfig.NanoCpus}}", "{{.HostConfig.PidsLimit}}"} {
			if got := inspect(limit); got == "0" || got == "<nil>" {
				c.t.Errorf("%s: %s is %s", service, limit, got)
			}
		}
	}
	if got := c.inspect("init", "{{.State.ExitCode}} {{.HostConfig.NetworkMode}}"); got != "0 none" {
		c.t.Errorf("init: %s", got)
	}
}

// outside checks that clients find all their files on this machine, readable only by the owner of
// the directory.
func (c cluster) outside(user int) {
	err := filepath.WalkDir(filepath.Join(*treeFlag, "lodge-cluster"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".gitignore" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if s, ok := info.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != user || !d.IsDir() && info.Mode().Perm()&0o077 != 0 {
			c.t.Errorf("%s: %v", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		c.t.Error(err)
	}
	if out := c.lodge("status"); strings.Count(out, "ready") != len(services) {
		c.t.Errorf("status:\n%s", out)
	}
	if out := c.lodge("doctor", "--probe-bytes", "65536"); !strings.Contains(out, " 0 failures") {
		c.t.Errorf("doctor:\n%s", out)
	}
}

// commands runs the commands of docs/guides/compose.md that run lodge in containers.
func (c cluster) commands() {
	inside := c.compose("run", "--rm", "--no-deps", "--no-TTY", "init", "compose", "--parties", "5")
	if outside := c.run(*lodgeFlag, "compose", "--parties", "5"); inside != outside {
		c.t.Errorf("inside:\n%s\noutside:\n%s", inside, outside)
	}
	if out := c.compose("run", "--rm", "--no-TTY", "init", "compose", "init", "/cluster"); !strings.Contains(out, "a cluster of 3 parties exists") {
		c.t.Errorf("init again: %s", out)
	}
	if out := c.compose("exec", "--no-TTY", "p0", "lodge", "version"); !strings.HasPrefix(out, "lodge ") {
		c.t.Errorf("version: %s", out)
	}
}

// verified runs the third of the three commands.
func (c cluster) verified() {
	r := ask[struct{ Parties, Tuples, Verified uint64 }](c, "demo", "--count", "1000")
	if r.Parties != 3 || r.Tuples < 1000 || r.Verified != r.Tuples {
		c.t.Errorf("%+v", r)
	}
}

// monitored checks that Prometheus collects the metrics of every process by its name and evaluates
// the alerts.
func (c cluster) monitored() {
	c.compose("--profile", "monitoring", "up", "--detach", "--wait", "prometheus")
	type data struct {
		Result []struct{ Metric struct{ Process string } }
		Groups []struct{ Rules []struct{ Health string } }
	}
	get := func(path string) data {
		var answer struct{ Data data }
		if r, err := http.Get("http://127.0.0.1:9090/api/v1/" + path); err == nil {
			_ = json.NewDecoder(r.Body).Decode(&answer) // empty while the server does not respond yet
			r.Body.Close()
		}
		return answer.Data
	}
	c.until("Prometheus has the metrics of all", func() bool {
		var names []string
		for _, x := range get("query?query=lodge_build_info").Result {
			names = append(names, x.Metric.Process)
		}
		slices.Sort(names)
		return slices.Equal(names, services)
	})
	c.until("Prometheus has evaluated the alerts", func() bool {
		rules := 0
		for _, g := range get("rules?type=alert").Groups {
			for _, rule := range g.Rules {
				if rule.Health != "ok" {
					return false
				}
				rules++
			}
		}
		return rules > 0
	})
	c.compose("--profile", "monitoring", "rm", "--stop", "--force", "prometheus")
}
