// Command gen writes the JSON schemas with which kubeconform checks the rendered chart, without
// descriptions. Schemas of Kubernetes come from the OpenAPI file in its module, schemas of other
// projects from their custom resource definitions. With -check it compares instead. It downloads
// the modules, which must have the checksums below.
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

const (
	kubernetes = "k8s.io/kubernetes@v1.34.4"
	prometheus = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
	certs      = "github.com/cert-manager/cert-manager@v1.19.1"
	gateways   = "sigs.k8s.io/gateway-api@v1.3.0"
)

// sums are the checksums of the modules, in the format of go.sum.
var sums = map[string]string{
	kubernetes: "h1:Yy6R4QB8C9kJPp25GFqEvX5XQwY5qzKeqD0Xx6oAcmk=",
	prometheus: "h1:M5xLCLEoaW2IJfnuCwFzzpL+jSVQu3KGT84Pye+fW8s=",
	certs:      "h1:Txh8L/nLWTDcb7ZnXuXbTe15BxQnLbLirXmbNk0fGgY=",
	gateways:   "h1:q6okN+/UKDATola4JY7zXzx40WO4VISk7i9DIfOvr9M=",
}

// kinds lists the kinds of Kubernetes that the chart or its tests use, by group, version and kind.
var kinds = []string{
	"/v1/ConfigMap", "/v1/Namespace", "/v1/PersistentVolume", "/v1/Pod", "/v1/Secret", "/v1/Service", "/v1/ServiceAccount",
	"apps/v1/Deployment", "apps/v1/StatefulSet", "autoscaling/v2/HorizontalPodAutoscaler", "batch/v1/Job",
	"networking.k8s.io/v1/Ingress", "networking.k8s.io/v1/NetworkPolicy", "policy/v1/PodDisruptionBudget",
	"storage.k8s.io/v1/StorageClass",
}

// resources lists the kinds of other projects: the file with the definition, and the version.
var resources = []struct{ module, file, version string }{
	{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml", "v1"},
	{prometheus, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml", "v1"},
	{certs, "deploy/crds/cert-manager.io_certificates.yaml", "v1"},
	{certs, "deploy/crds/cert-manager.io_issuers.yaml", "v1"},
	{gateways, "config/crd/experimental/gateway.networking.k8s.io_tlsroutes.yaml", "v1alpha2"},
}

const (
	shared = "_definitions.json"
	prefix = "#/definitions/"
	meta   = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
)

func main() {
	check := flag.Bool("check", false, "compare with the existing files")
	copies := flag.String("resources", "", "copy the definitions of custom resources to this directory")
	flag.Parse()
	dir := "charts/schemas"
	err := run(dir, *check)
	if err == nil && *copies != "" {
		err = copyResources(*copies)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) error {
	files, err := generate()
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return err
	}
	for _, path := range old {
		if _, ok := files[filepath.Base(path)]; !ok {
			if check {
				return fmt.Errorf("%s is no longer generated; run: go run ./charts/schemas/gen", path)
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if !check {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				return err
			}
			continue
		}
		if have, err := os.ReadFile(path); err != nil || !bytes.Equal(have, text) {
			return fmt.Errorf("%s is out of date (%v); run: go run ./charts/schemas/gen", path, err)
		}
	}
	return nil
}

// copyResources writes the definitions of custom resources to a directory.
func copyResources(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, r := range resources {
		root, err := download(r.module)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(filepath.Join(root, r.file))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(r.file)), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// generate returns the contents of the files by name.
func generate() (map[string][]byte, error) {
	root, err := download(kubernetes)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(filepath.Join(root, "api/openapi-spec/swagger.json"))
	if err != nil {
		return nil, err
	}
	var api struct{ Definitions map[string]map[string]any }
	if err := json.Unmarshal(b, &api); err != nil {
		return nil, err
	}
	g := &generator{all: api.Definitions, used: map[string]any{}, files: map[string][]byte{}}
	left := slices.Clone(kinds)
	for name, d := range g.all {
		list, _ := d["x-kubernetes-group-version-kind"].([]any)
		for _, x := range list {
			k := x.(map[string]any)
			id := fmt.Sprintf("%s/%s/%s", k["group"], k["version"], k["kind"])
			if i := slices.Index(left, id); i >= 0 {
				left = slices.Delete(left, i, i+1)
				g.use(name)
				g.kind(k["group"].(string), k["version"].(string), k["kind"].(string), map[string]any{"$ref": shared + prefix + name})
			}
		}
	}
	if len(left) > 0 {
		return nil, fmt.Errorf("no %v in %s", left, kubernetes)
	}
	for _, r := range resources {
		if err := g.resource(r.module, r.file, r.version); err != nil {
			return nil, fmt.Errorf("%s: %w", r.file, err)
		}
	}
	g.files[shared] = g.definitions()
	return g.files, nil
}

type generator struct {
	all   map[string]map[string]any
	used  map[string]any
	files map[string][]byte
}

// kind writes the schema of a kind, under the file name that kubeconform expects.
func (g *generator) kind(group, version, kind string, schema any) {
	name := strings.ToLower(kind)
	if group != "" {
		name += "-" + strings.Split(group, ".")[0]
	}
	b, _ := json.Marshal(schema)
	g.files[name+"-"+version+".json"] = append(b, '\n')
}

// use adds a definition and, recursively, the definitions that it refers to.
func (g *generator) use(name string) {
	if _, ok := g.used[name]; ok {
		return
	}
	g.used[name] = nil
	if name == "io.k8s.apimachinery.pkg.api.resource.Quantity" {
		g.used[name] = map[string]any{"type": []string{"string", "number"}}
		return
	}
	g.used[name] = g.strict(g.all[name], prefix)
}

// strict returns the schema without descriptions. It rejects unknown properties.
func (g *generator) strict(x any, at string) any {
	switch x := x.(type) {
	case []any:
		list := make([]any, len(x))
		for i := range x {
			list[i] = g.strict(x[i], at)
		}
		return list
	case map[string]any:
		if x["x-kubernetes-int-or-string"] == true || x["format"] == "int-or-string" {
			return map[string]any{"type": []string{"string", "integer"}}
		}
		if ref, ok := x["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, prefix)
			g.use(name)
			return map[string]any{"$ref": at + name}
		}
		out := map[string]any{}
		for key, v := range x {
			switch {
			case strings.HasPrefix(key, "x-"), key == "description", key == "format", key == "default":
			case key == "properties":
				out[key] = g.properties(v.(map[string]any), at)
			default:
				out[key] = g.strict(v, at)
			}
		}
		if _, open := out["additionalProperties"]; out["properties"] != nil && !open && x["x-kubernetes-preserve-unknown-fields"] != true {
			out["additionalProperties"] = false
		}
		return out
	}
	return x
}

func (g *generator) properties(x map[string]any, at string) map[string]any {
	out := map[string]any{}
	for name, v := range x {
		out[name] = g.strict(v, at)
	}
	return out
}

// resource writes the schema of a custom resource.
func (g *generator) resource(module, file, version string) error {
	root, err := download(module)
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	var d struct {
		Spec struct {
			Group    string
			Names    struct{ Kind string }
			Versions []struct {
				Name   string
				Schema struct {
					Schema map[string]any `yaml:"openAPIV3Schema"`
				}
			}
		}
	}
	if err := yaml.Unmarshal(b, &d); err != nil {
		return err
	}
	for _, v := range d.Spec.Versions {
		if v.Name == version {
			schema := g.strict(v.Schema.Schema, shared+prefix).(map[string]any)
			g.use(meta)
			schema["properties"].(map[string]any)["metadata"] = map[string]any{"$ref": shared + prefix + meta}
			g.kind(d.Spec.Group, version, d.Spec.Names.Kind, schema)
			return nil
		}
	}
	return fmt.Errorf("no version %s", version)
}

// definitions returns the used definitions, one per line.
func (g *generator) definitions() []byte {
	var b bytes.Buffer
	b.WriteString("{\"definitions\":{\n")
	for i, name := range slices.Sorted(maps.Keys(g.used)) {
		if i > 0 {
			b.WriteString(",\n")
		}
		text, _ := json.Marshal(g.used[name])
		fmt.Fprintf(&b, "%q:%s", name, text)
	}
	b.WriteString("\n}}\n")
	return b.Bytes()
}

// download downloads a module and returns its directory.
func download(module string) (string, error) {
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = os.TempDir() // outside this module
	out, err := cmd.Output()
	var m struct{ Dir, Sum, Error string }
	if json.Unmarshal(out, &m) != nil || m.Error != "" || err != nil && m.Dir == "" {
		return "", fmt.Errorf("%s: %s %v", module, m.Error, err)
	}
	if m.Sum != sums[module] {
		return "", fmt.Errorf("%s has the sum %s", module, m.Sum)
	}
	return m.Dir, nil
}
