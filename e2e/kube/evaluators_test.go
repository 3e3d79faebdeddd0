//go:build kube

package kube

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/host/config"
)

// away is a release with evaluators of p0, in another domain than the evaluators of p0's own
// release.
var away = process{"p0-b", 30104}

const own = "p0-a"

// evaluators configures p0 with two evaluators in its own release and one elsewhere. Tuples are
// made from results on which they agree.
func (c cluster) evaluators(epoch string) {
	owner := parties[0]
	for name, place := range map[string][2]string{own: {owner.namespace(), "lodge-evaluators"}, away.name: {away.namespace(), "lodge-tls"}} {
		files := filepath.Join(*workFlag, "enrolled", name)
		c.lodge("enrol", files, "--role", "evaluator", "--name", name)
		c.sign(name)
		if place[0] != owner.namespace() {
			c.namespace(place[0])
		}
		c.kubectl("--namespace", place[0], "create", "secret", "generic", place[1], "--from-file="+files+"/tls.crt", "--from-file="+files+"/tls.key",
			"--from-file="+*workFlag+"/enrolled/ca.crt")
	}
	pins := owner.values()["party"].(object)["config"].(object)["policy"].(object)["params"]
	settings := object{
		"config":    object{"params": pins, "max_keys_memory": "64MiB", "max_memory": "128MiB", "allow_insecure_params": true},
		"resources": object{"requests": object{"cpu": "20m", "memory": "64Mi"}, "limits": object{"memory": "512Mi"}},
	}
	with := func(more object) object {
		for k, v := range settings {
			more[k] = v
		}
		return more
	}
	c.values(away, object{
		"role": "evaluator", "image": object{"repository": "docker.io/library/lodge"}, "party": object{"name": owner.name},
		"tls": object{"existingSecret": "lodge-tls"}, "service": object{"port": 7300}, "probes": object{"readiness": object{"periodSeconds": 1}},
		"evaluators": with(object{"name": away.name, "replicas": 1, "partyIdentity": "spiffe://lodge/party/p0", "address": away.host() + ":7300"}),
	})
	c.chart(away, "install", builds[0])
	c.release(away, "test", "--timeout", patience.String())

	text, err := yaml.Marshal(object{
		"party": object{"config": object{"evaluators": object{"check": config.Compare, "processes": []object{
			{"name": away.name, "domain": "there", "identity": "spiffe://lodge/evaluator/" + away.name, "address": away.host() + ":7300"}}}}},
		"evaluators": with(object{"enabled": true, "name": own, "domain": "here", "existingSecret": "lodge-evaluators"}),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	further := filepath.Join(*workFlag, "values", "evaluators.yaml")
	c.write(further, string(text))
	c.chart(owner, "upgrade", builds[0], "--values", further)
	c.runs(builds[0], processes...)
	c.until("the evaluators are up", func() bool {
		return c.metric(owner, "lodge_evaluator_up", `evaluator="`+own+`"`) == 2 && c.metric(owner, "lodge_evaluator_up", `evaluator="`+away.name+`"`) == 1
	})
	c.job("--kind", "scalar", "--params", set, "--epoch", epoch, "--count", "1000")
	for _, name := range []string{own, away.name} {
		if n := c.metric(owner, "lodge_evaluator_requests_total", `evaluator="`+name+`"`, `outcome="ok"`); n < 1 {
			c.t.Errorf("%s answered %v evaluations", name, n)
		}
		if n := c.metric(owner, "lodge_evaluator_excluded", `evaluator="`+name+`"`); n != 0 {
			c.t.Errorf("%s is excluded", name)
		}
	}
	c.release(away, "uninstall", "--wait", "--timeout", patience.String())
}

// metric returns the sum of a process's metric with these labels.
func (c cluster) metric(p process, name string, labels ...string) (sum float64) {
	c.t.Helper()
	ip := c.kubectl("get", "pod", "--namespace", p.namespace(), p.name+"-lodge-0", "--output", "jsonpath={.status.podIP}")
	r, err := http.Get("http://" + ip + ":7190/metrics")
	if err != nil {
		c.t.Fatal(err)
	}
	defer r.Body.Close()
	lines := bufio.NewScanner(io.LimitReader(r.Body, 16<<20))
next:
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), name+"{") {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(lines.Text(), l) {
				continue next
			}
		}
		var v float64
		if _, err := fmt.Sscan(lines.Text()[strings.LastIndex(lines.Text(), " ")+1:], &v); err != nil {
			c.t.Fatal(lines.Text(), err)
		}
		sum += v
	}
	return sum
}
