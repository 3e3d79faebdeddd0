//go:build charts

package charts

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/services/host/config"
)

const (
	examples = "lodge/examples/three-clusters"
	schemas  = "schemas/{{.ResourceKind}}{{.KindSuffix}}.json"
)

// helm runs helm and returns its standard output. The error contains its standard error.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "helm", args...)
	cmd.Env = append(os.Environ(), "HELM_CACHE_HOME="+t.TempDir(), "HELM_CONFIG_HOME="+t.TempDir(), "HELM_DATA_HOME="+t.TempDir())
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w: %s%s", strings.Join(args, " "), err, out.String(), errs.String())
	}
	return out.String(), nil
}

// manifest holds the parts of a rendered object that the tests read.
type manifest struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Data     map[string]string
	Spec     map[string]any
	text     string
}

// render returns the objects that the chart renders from the values. They must pass kubeconform.
func render(t *testing.T, args ...string) ([]manifest, error) {
	t.Helper()
	text, err := helm(t, append([]string{"template", "test", "lodge", "--namespace", "ns"}, args...)...)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(t.Context(), "kubeconform", "-strict", "-kubernetes-version", "1.34.4", "-schema-location", schemas, "-")
	cmd.Stdin = strings.NewReader(text)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %v: %s", args, err, out)
	}
	var list []manifest
	for _, doc := range regexp.MustCompile(`(?m)^---\n`).Split(text, -1) {
		m := manifest{text: doc}
		if err := yaml.Unmarshal([]byte(doc), &m); err != nil {
			t.Fatalf("%v: %s", err, doc)
		}
		if m.Kind != "" {
			list = append(list, m)
		}
	}
	return list, nil
}

func of(list []manifest, kind string) []manifest {
	return slices.DeleteFunc(slices.Clone(list), func(m manifest) bool { return m.Kind != kind })
}

// loads loads the rendered configuration as Lodge does.
func loads(t *testing.T, list []manifest) (*config.PartyFile, *config.CoordinatorFile) {
	t.Helper()
	files, dir := map[string]string{}, t.TempDir()
	for _, m := range of(list, "ConfigMap") {
		for name, text := range m.Data {
			files[name] = text
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, ok := files["evaluator.yaml"]; ok {
		f, err := config.LoadEvaluator(filepath.Join(dir, "evaluator.yaml"))
		if err != nil || f.Party != (config.Owner{Name: "p0", Identity: "spiffe://lodge/party/p0"}) {
			t.Fatal(f, err)
		}
	}
	if len(files) == 1 {
		return nil, nil
	}
	roster := "roster=" + filepath.Join(dir, "roster.yaml") // instead of its path in a pod
	if _, ok := files["coordinator.yaml"]; ok {
		f, err := config.LoadCoordinator(filepath.Join(dir, "coordinator.yaml"), roster)
		if err != nil {
			t.Fatal(err)
		}
		return nil, f
	}
	f, err := config.LoadParty(filepath.Join(dir, "party.yaml"), roster)
	if err != nil {
		t.Fatal(err)
	}
	return f, nil
}

func example(name string, more ...string) []string {
	return append([]string{"--set-file", "roster=" + examples + "/roster.yaml", "--values", examples + "/" + name + ".yaml"}, more...)
}

func kinds(list []manifest) []string {
	set := map[string]bool{}
	for _, m := range list {
		set[m.Kind] = true
	}
	return slices.Sorted(maps.Keys(set))
}

func TestLint(t *testing.T) {
	for _, name := range []string{"", "p0", "p0-b", "p1", "p2", "coordinator"} {
		args := []string{"lint", "--strict", "lodge"}
		if name != "" {
			args = append(args, example(name)...)
		}
		if _, err := helm(t, args...); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every example renders objects that the schemas accept, and a configuration that Lodge accepts.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(examples + "/*.yaml")
	if err != nil || len(files) != 6 {
		t.Fatal(files, err)
	}
	common := []string{"ConfigMap", "NetworkPolicy", "Pod", "PodDisruptionBudget", "Service", "ServiceAccount"}
	for name, further := range map[string][]string{
		"p0": {"StatefulSet", "Deployment", "HorizontalPodAutoscaler", "Certificate", "Issuer", "PrometheusRule", "ServiceMonitor"},
		"p1": {"StatefulSet", "TLSRoute"}, "p2": {"StatefulSet", "Ingress"}, "coordinator": {"StatefulSet"}, "p0-b": {"Deployment"},
	} {
		list, err := render(t, example(name)...)
		if err != nil {
			t.Fatal(err)
		}
		if want := slices.Sorted(slices.Values(append(further, common...))); !slices.Equal(kinds(list), want) {
			t.Errorf("%s renders %v, not %v", name, kinds(list), want)
		}
		for _, m := range list {
			if m.Metadata.Namespace != "ns" {
				t.Errorf("%s: %s is in %q", name, m.Kind, m.Metadata.Namespace)
			}
			for _, line := range strings.Split(m.text, "\n") {
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s: %s: %q ends with space", name, m.Kind, line)
				}
			}
		}
		names := map[string]bool{}
		for _, m := range list {
			if id := m.Kind + " " + m.Metadata.Name; names[id] {
				t.Errorf("%s renders %s twice", name, id)
			} else {
				names[id] = true
			}
		}
		if name == "p0" && len(of(list, "ServiceMonitor")) != 2 {
			t.Errorf("%s: %d monitors: one for the party, one for its evaluators", name, len(of(list, "ServiceMonitor")))
		}
		party, coordinator := loads(t, list)
		switch {
		case name == "p0-b":
		case name == "coordinator" && coordinator == nil, name != "coordinator" && (party == nil || party.Name != name):
			t.Errorf("%s: %v, %v", name, party, coordinator)
		case name == "p0" && (len(party.Evaluators.Processes) != 2 || party.Evaluators.Processes[0].Address != "test-lodge-evaluators.ns.svc:7300" ||
			party.Evaluators.Processes[1].Name != "p0-b" || party.Evaluators.Check != config.Compare):
			t.Errorf("evaluators: %+v", party.Evaluators)
		case name == "p1" && party.Vault.PostgresDSNFile == "", name == "p0" && party.Vault.Dir != "/var/lib/lodge/vault":
			t.Errorf("%s: %+v", name, party.Vault)
		}
	}
}

// minimal returns the arguments that a party or a coordinator needs at least.
func minimal(role string, more ...string) []string {
	args := []string{"--set-file", "roster=" + examples + "/roster.yaml", "--set", "role=" + role, "--set", "tls.existingSecret=tls"}
	if role == "party" {
		args = append(args, "--set", "party.name=p0", "--set", "keys.existingSecret=keys", "--set", "party.config.policy.tenants={demo}")
	}
	return append(args, more...)
}

// Missing, unknown and contradictory values are errors that name the value.
func TestRefusals(t *testing.T) {
	for want, args := range map[string][]string{
		"roster: set it to the text":                     nil,
		"party.name: \"p9\" is not in the roster":        minimal("party", "--set", "party.name=p9"),
		"tls.existingSecret: name the Secret":            minimal("coordinator", "--set", "tls.existingSecret="),
		"keys.existingSecret: name the Secret":           minimal("party", "--set", "keys.existingSecret="),
		"either existingSecret or certManager, not both": minimal("party", "--set", "tls.certManager.enabled=true"),
		"params: the chart does not know the hash of X":  minimal("coordinator", "--set", "coordinator.config.params[0].name=X"),
		"ingress.annotations: set the annotations":       minimal("party", "--set", "ingress.enabled=true"),
		"gateway.parentRefs: name the Gateway":           minimal("party", "--set", "gateway.enabled=true"),
		"evaluators.existingSecret: name the Secret":     minimal("party", "--set", "evaluators.enabled=true,evaluators.domain=a"),
		"evaluators.domain: name the administrator":      minimal("party", "--set", "evaluators.enabled=true,evaluators.existingSecret=a"),
		"evaluators.partyIdentity: set it to":            minimal("evaluator"),
		"an evaluator has no store":                      minimal("evaluator", "--set", "evaluators.partyIdentity=a.example,maintenance.command={store}"),
		"the ports of a pod must differ":                 minimal("party", "--set", "health.port=7100"),
		"health.port, metrics.port and console.port":     minimal("coordinator", "--set", "metrics.port=7199"),
		"console.port": minimal("party", "--set", "console.enabled=true,console.port=7100"),
		"nonsense":     minimal("party", "--set", "nonsense=1"),
		"max_memmory":  minimal("party", "--set", "party.config.policy.max_memmory=1GiB"),
		"replicas":     minimal("party", "--set", "replicas=2"),
		"listen":       minimal("party", "--set", "party.config.listen=:1"),
		"role":         minimal("party", "--set", "role=helper"),
		"max_memory":   minimal("party", "--set", "party.config.policy.max_memory=4GB"),
	} {
		if _, err := render(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, and not %q", args, err, want)
		}
	}
}

// same maps values that do not change the configuration to a text in the rendered objects.
var same = map[string]string{
	"serviceAccount.create=false":                     "serviceAccountName: default",
	"image.digest=sha256:" + strings.Repeat("ab", 32): "lodge@sha256:abab",
	"extraEnv[0].name=LODGE_CONFIG_LISTEN":            "LODGE_CONFIG_LISTEN",
	"priorityClassName=high":                          "priorityClassName: high",
	"service.type=NodePort":                           "type: NodePort",
	"networkPolicy.extraEgress[0].ports[0].port=5432": "port: 5432",
	"networkPolicy.probes[0].ipBlock.cidr=10.0.0.0/8": "cidr: 10.0.0.0/8",
	"topologySpreadConstraints=null":                  "",
	"persistence.storageClassName=fast":               "storageClassName: fast",
	"service.loadBalancerSourceRanges={192.0.2.0/24}": "- 192.0.2.0/24",
	"imagePullSecrets[0].name=registry":               "- name: registry",
	"extraVolumes[0].name=x":                          "- name: x",
	"podLabels.a=b":                                   "a: b",
	"podDisruptionBudget.maxUnavailable=0":            "maxUnavailable: 0",
	"maintenance.command={store,check}":               "name: test-lodge-maintenance-1",
}

// other maps values that change the configuration, and therefore replace the pod, to a text in the
// rendered objects.
var other = map[string]string{
	"metrics.enabled=false":      "podManagementPolicy",
	"fullnameOverride=other":     "name: other-pods",
	"commonAnnotations.note=mpc": "note: mpc",
	"stopAfterSeconds=60":        "terminationGracePeriodSeconds: 85",
	"console.enabled=true":       "name: test-lodge-console",
	"tls.ca=x":                   "ca: /etc/lodge/config/ca.pem",
}

// A console's settings reach the configuration, together with the address that the chart writes.
// Only the browsers that the network policy names may call it.
func TestConsole(t *testing.T) {
	list, err := render(t, example("p1", "--set", "console.enabled=true,party.config.console.url=https://p1.example:7443,party.config.console.max_sessions=7,networkPolicy.console[0].ipBlock.cidr=192.0.2.0/24")...)
	if err != nil {
		t.Fatal(err)
	}
	party, _ := loads(t, list)
	if c := party.Console; c.Listen != "0.0.0.0:7443" || c.URL != "https://p1.example:7443" || c.MaxSessions != 7 {
		t.Errorf("%+v", c)
	}
	for kind, want := range map[string]string{"NetworkPolicy": "cidr: 192.0.2.0/24", "StatefulSet": "containerPort: 7443"} {
		if !slices.ContainsFunc(list, func(m manifest) bool { return m.Kind == kind && strings.Contains(m.text, want) }) {
			t.Errorf("no %s has %q", kind, want)
		}
	}
}

// attesterKey is the public key of an attester.
const attesterKey = "7bc1b4e0dd9b1f6f0c3d8a3e6a2b2f7f93ab1f0cfbf1bf2e7d5d1b20c1f4a2c9"

// Rules for threshold keys reach a party's configuration unchanged, and the configuration loads.
// Invalid rules are rejected.
func TestThreshold(t *testing.T) {
	client := "party.config.clients[0].name=app,party.config.clients[0].identity=spiffe://x/app,party.config.clients[0].permissions={decrypt,approve}"
	rules := "party.config.allow_passive_threshold=true,party.config.threshold.rules[0].client=app,party.config.threshold.rules[0].messages_per_hour=10000000," +
		"party.config.threshold.rules[0].epochs={1},party.config.threshold.rules[0].keys={" + strings.Repeat("9c", 32) + "}"
	unguarded := rules
	rules += ",party.config.threshold.attesters[0].name=pipeline,party.config.threshold.attesters[0].key=" + attesterKey +
		",party.config.threshold.rules[0].provenance={pipeline}"
	list, err := render(t, minimal("party", "--set", client, "--set", rules)...)
	if err != nil {
		t.Fatal(err)
	}
	loads(t, list)
	for _, want := range []string{"allow_passive_threshold: true", "messages_per_hour: 10000000", "- approve", "- " + strings.Repeat("9c", 32)} {
		if text := of(list, "ConfigMap")[0].text; !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	}
	for want, set := range map[string]string{
		"messages_per_hour": "party.config.threshold.rules[0].client=app,party.config.threshold.rules[0].any_ciphertexts=true",
		"provenance":        unguarded, // this would let the client read the key
		"any_ciphertexts":   unguarded + ",party.config.threshold.rules[0].any_ciphertexts=false",
		"approval":          rules + ",party.config.threshold.rules[0].approval=1",
		"keys":              rules + ",party.config.threshold.rules[0].keys={9c}",
		"key":               "party.config.threshold.attesters[0].name=a",
	} {
		if _, err := render(t, minimal("party", "--set", client, "--set", set)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, and not %q", set, err, want)
		}
	}
}

// Each value changes the rendered objects, and only the values in other change the checksum of the
// configuration.
func TestVariations(t *testing.T) {
	for _, role := range []string{"party", "coordinator"} {
		sum := func(list []manifest) string {
			return regexp.MustCompile(`checksum/config: (\w{64})`).FindString(of(list, "StatefulSet")[0].text)
		}
		try := func(sets ...string) []manifest {
			args := minimal(role)
			for _, set := range sets {
				args = append(args, "--set", set)
			}
			list, err := render(t, args...)
			if err != nil {
				t.Fatal(err)
			}
			loads(t, list)
			for _, set := range sets {
				want := same[set] + other[set]
				if !slices.ContainsFunc(list, func(m manifest) bool { return strings.Contains(m.text, want) }) {
					t.Errorf("%s: nothing has %q", set, want)
				}
			}
			return list
		}
		plain := try()
		for set := range other {
			if list := try(set); sum(list) == sum(plain) {
				t.Errorf("%s leaves the checksum of the configuration", set)
			}
		}
		all := try(slices.Collect(maps.Keys(same))...)
		if sum(all) != sum(plain) || sum(all) == "" {
			t.Error("the checksum of the configuration changes without it")
		}
		if of(all, "StatefulSet")[0].Spec["replicas"] != 0 || len(of(all, "Job")) != 1 || of(plain, "StatefulSet")[0].Spec["replicas"] != 1 {
			t.Error("the process and its maintenance")
		}
		if rules := of(plain, "NetworkPolicy")[0]; strings.Contains(rules.text, "port: metrics") {
			t.Errorf("anybody may collect metrics: %s", rules.text)
		}
		if s := of(plain, "Secret"); len(s) > 0 {
			t.Errorf("secrets: %v", s)
		}
	}
}
