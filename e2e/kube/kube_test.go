//go:build kube

// Package kube tests the chart in charts/lodge on a real Kubernetes cluster: three parties and a
// coordinator, each a release in its own namespace, with clients outside. e2e/kube/run runs the
// tests on a cluster of one node.
package kube

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	workFlag = flag.String("work", "", "directory of the cluster, with two builds of lodge")
	treeFlag = flag.String("tree", "", "the working tree, whose chart is tested")
)

// patience is the timeout for expected events. It allows for a busy machine.
const patience = 10 * time.Minute

// set is the parameter set: the smallest one, which is insecure.
const set = "insecure-8"

// builds of the same source tree, by the first digit of their revision, which is also the tag of
// their images.
var builds = []string{"1", "2"}

type cluster struct{ t *testing.T }

// output runs a program and returns its output.
func (c cluster) output(in io.Reader, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(c.t.Context(), name, args...)
	cmd.Stdin = in
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+*workFlag+"/helm", "HELM_CONFIG_HOME="+*workFlag+"/helm", "HELM_DATA_HOME="+*workFlag+"/helm")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), fmt.Errorf("%s %s: %w: %s%s", filepath.Base(name), strings.Join(args, " "), err, stderr.String(), stdout.String())
	}
	return stdout.String(), nil
}

// run is like output and fails the test if the program fails.
func (c cluster) run(name string, args ...string) string {
	c.t.Helper()
	begun := time.Now()
	out := c.feed(nil, name, args...)
	if took := time.Since(begun); took > time.Second {
		c.t.Logf("%5.1f s  %s %s", took.Seconds(), filepath.Base(name), strings.Join(args, " "))
	}
	return strings.TrimSpace(out)
}

// lodge runs the first build locally, not in a pod.
func (c cluster) lodge(args ...string) string {
	c.t.Helper()
	return c.run(*workFlag+"/lodge-"+builds[0], args...)
}

// at runs lodge as a client of the cluster.
func (c cluster) at(args ...string) string {
	c.t.Helper()
	return c.lodge(append(args, "--cluster", clusterPath())...)
}

// ask is like at with --json, and decodes the output.
func ask[T any](c cluster, args ...string) (out T) {
	c.t.Helper()
	text := c.at(append(args, "--json")...)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		c.t.Fatalf("%v: %v: %s", args, err, text)
	}
	return out
}

func (c cluster) kubectl(args ...string) string {
	c.t.Helper()
	return c.run("kubectl", args...)
}

// until waits until a condition holds.
func (c cluster) until(what string, holds func() bool) {
	c.t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			c.t.Fatalf("timeout after %s: %s", patience, what)
		}
	}
}

func pathOf(tool string) string {
	path, err := exec.LookPath(tool)
	if err != nil {
		return tool
	}
	return path
}

// release runs helm on a release.
func (c cluster) release(p process, command string, args ...string) string {
	c.t.Helper()
	return c.run("helm", append([]string{command, p.name, "--namespace", p.namespace()}, args...)...)
}

// chart runs helm with the chart and the values of a release.
func (c cluster) chart(p process, command, build string, args ...string) string {
	c.t.Helper()
	return c.run("helm", append([]string{command, p.name, *treeFlag + "/charts/lodge", "--namespace", p.namespace(), "--set-file", "roster=" + rosterPath(),
		"--values", valuesPath(p), "--set-string", "image.tag=" + build, "--wait", "--timeout", patience.String()}, args...)...)
}

func TestKube(t *testing.T) {
	if *workFlag == "" || *treeFlag == "" {
		t.Fatal("this is started by e2e/kube/run")
	}
	t.Cleanup(func() { // also after a failure
		if t.Failed() {
			for _, args := range [][]string{{"get", "pods,pvc,pv,services", "--all-namespaces", "-o", "wide"}, {"get", "events", "--all-namespaces"},
				{"logs", "--all-pods", "--prefix", "--tail", "30", "--namespace", "lodge-p0", "statefulset/p0-lodge"}} {
				out, err := exec.Command("kubectl", args...).CombinedOutput()
				t.Logf("%s %v", out, err)
			}
		}
	})
	each := func(name string, f func(cluster)) {
		begun := time.Now()
		if !t.Run(name, func(t *testing.T) { f(cluster{t}) }) {
			t.FailNow()
		}
		fmt.Printf("== %s: %.1f s\n", name, time.Since(begun).Seconds())
	}
	each("images", cluster.images)
	each("examples", cluster.examples)
	each("enrolled", cluster.enrolled)
	each("installed", cluster.installed)
	each("restricted", cluster.restricted)
	each("outside", cluster.wellFromOutside)
	each("verified", cluster.verified)
	var epoch string
	each("keys", func(c cluster) { epoch = c.keys() })
	each("party deleted", func(c cluster) { c.deleted(parties[1], epoch) })
	each("coordinator deleted", func(c cluster) { c.deleted(coordinator, epoch) })
	each("upgraded", func(c cluster) { c.upgraded(epoch) })
	each("rolled back", func(c cluster) { c.rolledBack(epoch) })
	each("evaluators", func(c cluster) { c.evaluators(epoch) })
	each("maintained", func(c cluster) { c.maintained(epoch) })
	each("removed", cluster.removed)
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

// jobRecord has the fields of a job that the test uses.
type jobRecord struct {
	ID      string        `json:"id"`
	State   string        `json:"state"`
	Epoch   uint64        `json:"epoch"`
	Parties []partyRecord `json:"parties"`
}

type partyRecord struct {
	RoundIndex uint32 `json:"round_index"`
}

func (j jobRecord) final() bool {
	return slices.Contains([]string{"completed", "failed", "cancelled", "timed_out"}, j.State)
}

// wellFromOutside checks all processes through NodePorts.
func (c cluster) wellFromOutside() {
	if out := c.at("status"); strings.Count(out, "ready") != len(processes) {
		c.t.Errorf("status:\n%s", out)
	}
	if out := c.at("doctor", "--probe-bytes", "65536"); !strings.Contains(out, " 0 failures") {
		c.t.Errorf("doctor:\n%s", out)
	}
	for _, p := range processes {
		if out := c.release(p, "test", "--timeout", patience.String()); !strings.Contains(out, "Succeeded") {
			c.t.Errorf("helm test: %s", out)
		}
	}
}

// verified makes tuples, fetches them with each party's client and checks them.
func (c cluster) verified() {
	r := ask[struct{ Parties, Tuples, Verified uint64 }](c, "demo", "--count", "1000")
	if r.Parties != 3 || r.Tuples < 1000 || r.Verified != r.Tuples {
		c.t.Errorf("%+v", r)
	}
}

// removed uninstalls all releases. Only their volumes remain, as the chart documents.
func (c cluster) removed() {
	for _, p := range processes {
		c.release(p, "uninstall", "--wait", "--timeout", patience.String())
		c.until(p.name+" is gone", func() bool {
			return c.kubectl("get", "all,configmaps,pdb,networkpolicies,serviceaccounts", "--namespace", p.namespace(), "--selector",
				"app.kubernetes.io/part-of=lodge", "--output", "name", "--ignore-not-found") == ""
		})
		if out := c.kubectl("get", "pvc", "--namespace", p.namespace(), "--output", "name"); out != "persistentvolumeclaim/data-"+p.name+"-lodge-0" {
			c.t.Errorf("volumes of %s: %s", p.name, out)
		}
	}
}
