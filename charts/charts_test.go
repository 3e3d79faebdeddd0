// Package charts tests the chart in charts/lodge. With the tag charts it also tests the rendered
// objects, which needs helm and kubeconform.
package charts

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/services/host/config"
)

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func object[T any](t *testing.T, path ...string) (v T) {
	t.Helper()
	if err := yaml.Unmarshal(read(t, path...), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// schema holds the parts of an object's schema that the tests read.
type schema struct {
	Properties map[string]*schema
	Ref        string `yaml:"$ref"`
	Open       any    `yaml:"additionalProperties"`
	Items      *schema
	Enum       []string
	Defs       map[string]*schema `yaml:"$defs"`
}

// leaves calls found with the path of every value that has no keys, or for which whole returns
// true.
func leaves(v any, path string, whole func(string) bool, found func(path string, v any)) {
	if m, ok := v.(map[string]any); ok && len(m) > 0 && !whole(path) {
		for k, x := range m {
			leaves(x, strings.TrimPrefix(path+"."+k, "."), whole, found)
		}
		return
	}
	found(path, v)
}

// The README's table has exactly the values of values.yaml with their defaults, and the schema
// contains them.
func TestValues(t *testing.T) {
	values := object[map[string]any](t, "lodge", "values.yaml")
	s := object[*schema](t, "lodge", "values.schema.json")
	rows := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Za-z.]+)` \\| (`[^|]*`|see `values.yaml`) \\| .* \\|$").FindAllStringSubmatch(string(read(t, "lodge", "README.md")), -1) {
		rows[m[1]] = m[2]
	}
	whole := func(path string) bool { return strings.HasPrefix(rows[path], "see") }
	leaves(values, "", whole, func(path string, v any) {
		want := "see `values.yaml`"
		if !whole(path) {
			b, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			want = "`" + strings.ReplaceAll(string(b), ",", ", ") + "`"
		}
		if rows[path] != want {
			t.Errorf("README.md has %q for %s, and values.yaml %s", rows[path], path, want)
		}
		delete(rows, path)
	})
	if len(rows) > 0 {
		t.Errorf("README.md has values that do not exist: %v", rows)
	}
	covers(t, s, s.Defs, values, "")
}

// covers fails the test unless the schema is strict, and describes exactly the keys of v.
func covers(t *testing.T, s *schema, defs map[string]*schema, v any, path string) {
	t.Helper()
	m, ok := v.(map[string]any)
	if s == nil || !ok || len(m) == 0 {
		return
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		if strings.HasSuffix(name, "Config") || name == "probe" || name == "resources" { // not everything has a default
			for k := range m {
				if defs[name].Properties[k] == nil {
					t.Errorf("the schema has no %s.%s", path, k)
				}
			}
			return
		}
		s = defs[name]
	}
	if s.Open != false {
		t.Errorf("the schema takes anything in %q", path)
	}
	for k, x := range m {
		if s.Properties[k] == nil {
			t.Errorf("the schema has no %s.%s", path, k)
		}
		covers(t, s.Properties[k], defs, x, path+"."+k)
	}
	for k := range s.Properties {
		if _, ok := m[k]; !ok && k != "global" {
			t.Errorf("values.yaml has no %s.%s", path, k)
		}
	}
}

// The lists of kinds in the schema are those of configurations.
func TestKindsInTheSchema(t *testing.T) {
	found := 0
	var walk func(path string, v any)
	walk = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, x := range v {
				walk(path+"."+k, x)
			}
		case []any:
			if !strings.HasSuffix(path, ".kinds.items.enum") {
				return
			}
			var list []string
			for _, x := range v {
				list = append(list, fmt.Sprint(x))
			}
			if found++; !slices.Equal(list, config.Kinds) && !slices.Equal(list, config.TupleKinds) {
				t.Errorf("charts/lodge/values.schema.json: %s has %v", path, list)
			}
		}
	}
	walk("", object[map[string]any](t, "lodge", "values.schema.json"))
	if found != 3 {
		t.Errorf("the schema has %d lists of kinds, not 3", found)
	}
}

// written lists the keys of a configuration that the chart writes.
var written = []string{"name", "roster", "listen", "metrics_listen", "health_listen", "stop_after", "tls.", "signing_key", "vault.", "audit_dir", "data_dir", "party.", "console.listen"}

// The schema has exactly the keys of configurations that the chart does not write.
func TestConfig(t *testing.T) {
	defs := object[*schema](t, "lodge", "values.schema.json").Defs
	for name, keys := range map[string][]config.Key{
		"partyConfig": config.Keys(new(config.PartyFile)), "coordinatorConfig": config.Keys(new(config.CoordinatorFile)),
		"evaluatorConfig": config.Keys(new(config.EvaluatorFile)),
	} {
		var want, have []string
		for _, k := range keys {
			if !slices.ContainsFunc(written, func(w string) bool { return k.Name == w || strings.HasSuffix(w, ".") && strings.HasPrefix(k.Name, w) }) {
				want = append(want, k.Name)
			}
		}
		have = paths(defs[name], defs, "")
		for _, key := range want {
			if !slices.Contains(have, key) {
				t.Errorf("charts/lodge/values.schema.json: $defs.%s has no %s", name, key)
			}
		}
		for _, key := range have {
			if !slices.Contains(want, key) {
				t.Errorf("charts/lodge/values.schema.json: $defs.%s has %s, which is not a key of configurations", name, key)
			}
		}
		if name == "evaluatorConfig" {
			continue
		}
		for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Client]()) {
			key, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			absent := name == "coordinatorConfig" && key == "quota" || name == "partyConfig" && key == "reservations" // exists only in the other configuration
			if defs[name].Properties["clients"].Items.Properties[key] == nil != absent {
				t.Errorf("clients of %s in the schema: %s", name, key)
			}
		}
	}
	party := defs["partyConfig"].Properties
	for _, x := range []struct {
		of   reflect.Type
		have map[string]*schema
	}{
		{reflect.TypeFor[config.DecryptRule](), party["threshold"].Properties["rules"].Items.Properties},
		{reflect.TypeFor[config.Attester](), party["threshold"].Properties["attesters"].Items.Properties},
	} {
		fields := reflect.VisibleFields(x.of)
		for _, f := range fields {
			if key, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); x.have[key] == nil {
				t.Errorf("%s in the schema: no %s", x.of, key)
			}
		}
		if len(x.have) != len(fields) {
			t.Errorf("%s in the schema: %d keys, not %d", x.of, len(x.have), len(fields))
		}
	}
	if have := party["clients"].Items.Properties["permissions"].Items.Enum; !slices.Contains(have, config.PermApprove) {
		t.Errorf("permissions of clients in the schema: %v", have)
	}
}

func paths(s *schema, defs map[string]*schema, path string) (list []string) {
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok {
		s = defs[name]
	}
	if len(s.Properties) == 0 {
		return []string{path}
	}
	for k, p := range s.Properties {
		list = append(list, paths(p, defs, strings.TrimPrefix(path+"."+k, "."))...)
	}
	return list
}

// The chart has a copy of the alerts in dashboards/rules, because a chart cannot read files outside
// its directory.
func TestRules(t *testing.T) {
	if string(read(t, "lodge", "files", "rules.yaml")) != string(read(t, "..", "dashboards", "rules", "lodge.yaml")) {
		t.Error("cp dashboards/rules/lodge.yaml charts/lodge/files/rules.yaml")
	}
}

// The chart has the hashes of the parameter sets for production.
func TestParams(t *testing.T) {
	want := map[string]string{}
	for _, set := range params.Sets() {
		if h := set.Hash(); !set.Insecure {
			want[set.Name] = hex.EncodeToString(h[:])
		}
	}
	for _, set := range lwe.Sets() {
		if h := set.Hash(); !set.Insecure {
			want[set.Name] = hex.EncodeToString(h[:])
		}
	}
	if have := object[map[string]string](t, "lodge", "files", "params.yaml"); !reflect.DeepEqual(have, want) {
		t.Errorf("files/params.yaml has %v, not %v", have, want)
	}
	values := object[struct {
		Party struct {
			Config struct{ Policy config.Policy }
		}
		Coordinator struct {
			Config struct{ Params []config.ParamsPin }
		}
	}](t, "lodge", "values.yaml")
	for _, pins := range [][]config.ParamsPin{values.Party.Config.Policy.Params, values.Coordinator.Config.Params} {
		if len(pins) != 1 || pins[0].Name != params.Default {
			t.Errorf("the values have %v, and the default is %s", pins, params.Default)
		}
	}
	p := values.Party.Config.Policy
	if !slices.Equal(p.Kinds, config.Kinds) || !slices.Equal(p.Purposes, config.Purposes) {
		t.Errorf("the values have %v and %v", p.Kinds, p.Purposes)
	}
}
