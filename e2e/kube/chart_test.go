//go:build kube

package kube

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

type object = map[string]any

// examples submits all examples to the server with strict validation, which rejects unknown fields.
func (c cluster) examples() {
	definitions, err := filepath.Glob(*workFlag + "/resources/*.yaml")
	if err != nil || len(definitions) == 0 {
		c.t.Fatal(definitions, err)
	}
	for _, file := range definitions {
		c.kubectl("apply", "--server-side", "--filename", file)
		c.until(filepath.Base(file)+" is served", func() bool { // kubectl wait fails if there are no conditions yet
			return c.kubectl("get", "--filename", file, "--output", `jsonpath={.status.conditions[?(@.type=="Established")].status}`) == "True"
		})
	}
	c.apply(object{"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": object{"name": "lodge"}, "value": 1000}) // of p2
	dir := *treeFlag + "/charts/lodge/examples/three-clusters/"
	for _, name := range []string{"p0", "p0-b", "p1", "p2", "coordinator"} {
		text := c.run("helm", "template", name, *treeFlag+"/charts/lodge", "--set-file", "roster="+dir+"roster.yaml", "--values", dir+name+".yaml")
		out := c.feed(strings.NewReader(text), "kubectl", "apply", "--dry-run=server", "--validate=strict", "--filename", "-")
		c.t.Logf("%s: %d objects", name, strings.Count(out, "server dry run"))
		bad := strings.Replace(text, "revisionHistoryLimit", "revisionHistoryLimits", 1)
		if _, err := c.output(strings.NewReader(bad), "kubectl", "apply", "--dry-run=server", "--validate=strict", "--filename", "-"); err == nil ||
			!strings.Contains(err.Error(), "unknown field") {
			c.t.Errorf("an unknown field: %v", err)
		}
	}
	fmt.Println("   NetworkPolicies are rendered and taken by the server; this cluster's network does not enforce them")
}

func valuesPath(p process) string { return filepath.Join(*workFlag, "values", p.name+".yaml") }

// values are the values of a release in addition to the roster and the image's tag.
func (p process) values() object {
	spec, err := params.Lookup(set)
	if err != nil {
		panic(err)
	}
	hash := spec.Hash()
	pins := []object{{"name": set, "hash": hex.EncodeToString(hash[:])}}
	var fields []string
	for _, f := range spec.Fields {
		fields = append(fields, f.Name)
	}
	client := func(name string, permissions ...string) object {
		return object{"name": name, "identity": "spiffe://lodge/client/" + name, "permissions": permissions, "tenants": []string{devnet.Tenant}}
	}
	v := object{
		"role": p.role(), "image": object{"repository": "docker.io/library/lodge"},
		"tls":         object{"existingSecret": "lodge-tls"},
		"service":     object{"type": "NodePort", "nodePort": p.nodePort},
		"persistence": object{"size": "100Mi", "storageClassName": "local"},
		"resources":   object{"requests": object{"cpu": "20m", "memory": "64Mi"}, "limits": object{"memory": "512Mi"}},
		"probes":      object{"startup": object{"periodSeconds": 1}, "readiness": object{"periodSeconds": 1}},
	}
	if p.role() == "party" {
		v["keys"] = object{"existingSecret": "lodge-keys"}
		v["party"] = object{"name": p.name, "config": object{
			"clients": []object{
				client("client-"+p.name, config.PermStatus, config.PermFetch, config.PermMACKey, config.PermProve, config.PermRetire),
				client(devnet.App, config.PermStatus, config.PermProve, config.PermDecrypt), client(devnet.Operator, config.PermStatus),
			},
			"policy":               object{"params": pins, "fields": fields, "tenants": []string{devnet.Tenant}, "max_memory": "256MiB"},
			"allow_passive_keygen": true, "allow_insecure_params": true,
		}}
		return v
	}
	list := []object{client(devnet.Operator, config.PermStatus, config.PermSubmit, config.PermReserve, config.PermPolicy)}
	for _, p := range parties {
		list = append(list, client("client-"+p.name, config.PermStatus, config.PermReserve))
	}
	v["coordinator"] = object{"config": object{"clients": list, "params": pins, "reservations": object{"max_share": 1}}}
	return v
}

// installed creates a namespace, secrets and a volume for each process, and installs all releases
// with the first build.
func (c cluster) installed() {
	c.apply(object{"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": object{"name": "local"},
		"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"})
	for _, p := range processes {
		c.namespace(p.namespace())
		files := filepath.Join(*workFlag, "enrolled", p.name)
		c.kubectl("--namespace", p.namespace(), "create", "secret", "generic", "lodge-tls", "--from-file="+files+"/tls.crt", "--from-file="+files+"/tls.key",
			"--from-file="+*workFlag+"/enrolled/ca.crt")
		if p.role() == "party" {
			c.kubectl("--namespace", p.namespace(), "create", "secret", "generic", "lodge-keys", "--from-file="+files+"/signing.key", "--from-file="+files+"/vault.key")
		}
		if err := os.MkdirAll(volumePath(p), 0o755); err != nil { // owned by root: the process gets access through the pod's group
			c.t.Fatal(err)
		}
		c.apply(object{"apiVersion": "v1", "kind": "PersistentVolume", "metadata": object{"name": p.name}, "spec": object{
			"capacity": object{"storage": "100Mi"}, "accessModes": []string{"ReadWriteOnce"}, "storageClassName": "local",
			"claimRef": object{"namespace": p.namespace(), "name": "data-" + p.name + "-lodge-0"},
			"local":    object{"path": volumePath(p)},
			"nodeAffinity": object{"required": object{"nodeSelectorTerms": []object{{"matchExpressions": []object{
				{"key": "kubernetes.io/hostname", "operator": "In", "values": []string{"node"}}}}}}},
		}})
		c.values(p, p.values())
	}
	for _, p := range processes {
		if out := c.chart(p, "install", builds[0]); !strings.Contains(out, "STATUS: deployed") || !strings.Contains(out, p.host()) {
			c.t.Errorf("%s", out)
		}
	}
	c.runs(builds[0], processes...)
}

// namespace creates a namespace that admits only restricted pods.
func (c cluster) namespace(name string) {
	c.t.Helper()
	c.apply(object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": name, "labels": object{"pod-security.kubernetes.io/enforce": "restricted"}}})
}

// values writes the values of a release.
func (c cluster) values(p process, v object) {
	c.t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		c.t.Fatal(err)
	}
	c.write(valuesPath(p), string(text))
}

func volumePath(p process) string { return filepath.Join(*workFlag, "volumes", p.name) }

func (c cluster) apply(o object) {
	c.t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	c.feed(strings.NewReader(string(b)), "kubectl", "apply", "--validate=strict", "--filename", "-")
}

// runs checks that these processes run the given build.
func (c cluster) runs(build string, list ...process) {
	c.t.Helper()
	r := ask[struct {
		Processes []struct{ Name, State, Version string }
	}](c, "status")
	for _, p := range list {
		i := slices.IndexFunc(r.Processes, func(x struct{ Name, State, Version string }) bool { return x.Name == p.name })
		if i < 0 || r.Processes[i].State != "ready" || !strings.Contains(r.Processes[i].Version, strings.Repeat(build, 7)) {
			c.t.Errorf("%s is not ready with build %s: %+v", p.name, build, r.Processes)
		}
	}
}

// restricted checks the privileges of the pods. The namespaces enforce the standard "restricted",
// which already limits pods that start.
func (c cluster) restricted() {
	for _, p := range processes {
		var pod struct {
			Spec struct {
				AutomountServiceAccountToken *bool
				Containers                   []struct {
					Name            string
					SecurityContext object
				}
				Volumes []object
			}
			Status struct{ QOSClass string }
		}
		if err := json.Unmarshal([]byte(c.kubectl("get", "pod", p.name+"-lodge-0", "--namespace", p.namespace(), "--output", "json")), &pod); err != nil {
			c.t.Fatal(err)
		}
		if pod.Spec.AutomountServiceAccountToken == nil || *pod.Spec.AutomountServiceAccountToken || len(pod.Spec.Containers) != 1 ||
			pod.Spec.Containers[0].SecurityContext["readOnlyRootFilesystem"] != true {
			c.t.Errorf("%s: %+v", p.name, pod.Spec)
		}
		for _, v := range pod.Spec.Volumes {
			if v["projected"] != nil || v["hostPath"] != nil {
				c.t.Errorf("%s has the volume %v", p.name, v)
			}
		}
		for _, path := range []string{"", "vault", "data"} {
			info, err := os.Stat(filepath.Join(volumePath(p), path))
			if err == nil && info.Mode().Perm()&0o007 != 0 && path != "" {
				c.t.Errorf("%s: all users of the node can read %q: %v", p.name, path, info.Mode())
			}
		}
		if p.role() == "party" {
			if out := c.kubectl("exec", "--namespace", p.namespace(), p.name+"-lodge-0", "--", "lodge", "doctor", "--offline", "--config", "/etc/lodge/config/party.yaml"); !strings.Contains(out, " 0 failures") {
				c.t.Errorf("doctor in %s: %s", p.name, out)
			}
		}
	}
}

// keys makes the keys for the following jobs.
func (c cluster) keys() string {
	return fmt.Sprint(c.job("--kind", "keys", "--params", set).Epoch)
}

// running submits a job and waits until it is in one of its rounds. If the job ends first, it
// submits a larger one.
func (c cluster) running(epoch string) jobRecord {
	c.t.Helper()
	for count := 20_000; count < 1<<20; count *= 2 {
		id := strings.Fields(c.at("jobs", "submit", "--kind", "scalar", "--params", set, "--epoch", epoch, "--count", fmt.Sprint(count)))[0]
		var j jobRecord
		c.until("a round of the job", func() bool {
			j = ask[jobRecord](c, "jobs", "show", id)
			return j.final() || slices.ContainsFunc(j.Parties, func(x partyRecord) bool { return x.RoundIndex >= 2 })
		})
		if !j.final() {
			return j
		}
	}
	c.t.Fatal("no job takes long enough to be seen")
	return jobRecord{}
}

// deleted deletes a pod in the middle of a job. Whether or not that job completes, the pod must
// become ready again with its data, and the next job must complete.
func (c cluster) deleted(p process, epoch string) {
	before := c.running(epoch)
	pod := []string{"--namespace", p.namespace(), p.name + "-lodge-0"}
	uid := c.kubectl(append([]string{"get", "pod", "--output", "jsonpath={.metadata.uid}"}, pod...)...)
	c.kubectl(append([]string{"delete", "pod", "--grace-period=1"}, pod...)...)
	c.kubectl("rollout", "status", "--namespace", p.namespace(), "statefulset/"+p.name+"-lodge", "--timeout="+patience.String())
	if now := c.kubectl(append([]string{"get", "pod", "--output", "jsonpath={.metadata.uid}"}, pod...)...); now == uid {
		c.t.Errorf("the pod is the same")
	}
	var j jobRecord
	c.until("the job ends", func() bool {
		text, err := c.output(nil, *workFlag+"/lodge-1", "jobs", "show", before.ID, "--json", "--cluster", clusterPath())
		return err == nil && json.Unmarshal([]byte(text), &j) == nil && j.final()
	})
	c.t.Logf("the job was %s when its pod was deleted, and is now %s", before.State, j.State)
	c.job("--kind", "scalar", "--params", set, "--epoch", epoch, "--count", "100")
}

// upgraded replaces the images of all processes, one by one, with the second build. The parties
// keep their data.
func (c cluster) upgraded(epoch string) {
	for i, p := range processes {
		c.chart(p, "upgrade", builds[1])
		c.runs(builds[1], processes[:i+1]...)
	}
	c.job("--kind", "scalar", "--params", set, "--epoch", epoch, "--count", "100")
}

// rolledBack goes back to the first build.
func (c cluster) rolledBack(epoch string) {
	for _, p := range processes {
		c.release(p, "rollback", "--wait", "--timeout", patience.String())
	}
	c.runs(builds[0], processes...)
	c.job("--kind", "scalar", "--params", set, "--epoch", epoch, "--count", "100")
}

// maintained stops a party, runs a command on its store, and restarts the party.
func (c cluster) maintained(epoch string) {
	p := parties[0]
	c.chart(p, "upgrade", builds[0], "--set", "maintenance.command={store,check,--deep}")
	c.kubectl("wait", "--for=condition=Complete", "--timeout="+patience.String(), "--namespace", p.namespace(), "job", "--all")
	if out := c.kubectl("logs", "--namespace", p.namespace(), "--selector", "app.kubernetes.io/component=maintenance"); out == "" {
		c.t.Error("the check says nothing")
	} else {
		c.t.Log(out)
	}
	c.chart(p, "upgrade", builds[0])
	c.runs(builds[0], processes...)
	c.job("--kind", "scalar", "--params", set, "--epoch", epoch, "--count", "100")
}
