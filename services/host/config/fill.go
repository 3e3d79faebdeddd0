package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// yamlName returns the key of a field, or "" if it has none.
func yamlName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return strings.TrimPrefix(name, "-")
}

// fill sets the defaults of a configuration and checks its values, by the tags of its fields:
//
//	default:"30s"   the value of a missing key, in YAML
//	range:"1..16"   the least and the largest value, in YAML; the largest may be missing
//	oneof:"a,b"     the possible values
//	check:"path"    a path, which becomes absolute; or "address", "name"; "path?" may be missing
//	check:"-"       the struct is checked elsewhere
//
// It does not enter lists.
func (c *check) fill(prefix string, v reflect.Value) {
	for f, x := range v.Fields() {
		name, how := yamlName(f), f.Tag.Get("check")
		if name == "" || how == "-" || x.Kind() == reflect.Pointer && x.IsNil() {
			continue
		}
		key := prefix + name
		if x.Kind() == reflect.Pointer {
			x = x.Elem()
		}
		if x.Kind() == reflect.Struct {
			c.fill(key+".", x)
			continue
		}
		if text, ok := f.Tag.Lookup("default"); ok && x.IsZero() {
			x.Set(parsed(text, x.Type()))
		}
		if text, ok := f.Tag.Lookup("range"); ok {
			c.within(key, x, text)
		}
		if text, ok := f.Tag.Lookup("oneof"); ok {
			if list := strings.Split(text, ","); !slices.Contains(list, x.String()) {
				last := len(list) - 1
				c.failf("%s: %q; must be %s or %s", key, x.String(), strings.Join(list[:last], ", "), list[last])
			}
		}
		if how, optional := strings.CutSuffix(how, "?"); !optional || !x.IsZero() {
			switch how {
			case "path":
				c.path(key, x.Addr().Interface().(*string))
			case "address":
				c.address(key, x.String())
			case "name":
				c.name(key, x.String())
			}
		}
	}
}

// parsed returns a value that a tag gives in YAML.
func parsed(text string, t reflect.Type) reflect.Value {
	v := reflect.New(t)
	if err := yaml.Unmarshal([]byte(text), v.Interface()); err != nil {
		panic(fmt.Sprintf("config: the tag %q is no %s: %v", text, t, err))
	}
	return v.Elem()
}

// within checks that a number is in a range.
func (c *check) within(key string, x reflect.Value, bounds string) {
	least, most, _ := strings.Cut(bounds, "..")
	below := func(a, b reflect.Value) bool {
		if a.CanUint() {
			return a.Uint() < b.Uint()
		}
		return a.Int() < b.Int()
	}
	must := least + " to " + most
	if most == "" {
		must = "at least " + least
	}
	if below(x, parsed(least, x.Type())) || most != "" && below(parsed(most, x.Type()), x) {
		text, _ := yaml.Marshal(x.Interface())
		c.failf("%s: %s; must be %s", key, strings.TrimSpace(string(text)), must)
	}
}
