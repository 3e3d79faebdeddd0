package config

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Settings override values of a configuration file: first those of the environment, then those of
// the command line. The value policy.max_memory is LODGE_CONFIG_POLICY_MAX_MEMORY in the
// environment, and policy.max_memory=8GiB in a flag. Each is parsed as YAML at its place. A setting
// that names no key is an error.

// Disk configures the free space that the file systems of a process need.
type Disk struct {
	// MinFree is the free space that each file system of the process needs before it starts new
	// work; default 256MiB, or 5 % of a smaller one.
	MinFree Bytes `yaml:"min_free,omitempty"`
}

// EnvPrefix starts the names of environment variables with settings.
const EnvPrefix = "LODGE_CONFIG_"

// Setting is a value that overrides the file's.
type Setting struct {
	Key   string // such as policy.max_memory
	Value string // in YAML
	From  string // its source, for messages
}

// Keys returns the keys of a configuration that a setting can name, with their types, in the order
// of the file. A list is set as a whole.
func Keys(file any) []Key {
	var list []Key
	var walk func(t reflect.Type, at []string)
	walk = func(t reflect.Type, at []string) {
		for f := range t.Fields() {
			name := yamlName(f)
			if name == "" {
				continue
			}
			path, ft := append(slices.Clone(at), name), f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				walk(ft, path)
				continue
			}
			key := strings.Join(path, ".")
			list = append(list, Key{Name: key, Variable: EnvPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_")), Type: typeName(ft)})
		}
	}
	walk(reflect.TypeOf(file).Elem(), nil)
	return list
}

// Key is a configuration key that settings can name.
type Key struct {
	Name     string `json:"key"`
	Variable string `json:"variable"`
	Type     string `json:"type"`
}

// typeName returns the name of a type for the documentation.
func typeName(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Duration]():
		return "time span"
	case reflect.TypeFor[Bytes]():
		return "bytes"
	}
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "list"
	case reflect.String:
		return "text"
	case reflect.Map:
		return "map"
	}
	return "number"
}

// settings parses those of the environment, then those of a command (KEY=VALUE).
func settings(file any, environ, set []string) ([]Setting, error) {
	keys := Keys(file)
	var list []Setting
	var errs []error
	for _, v := range slices.Sorted(slices.Values(environ)) {
		name, value, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(name, EnvPrefix) {
			continue
		}
		i := slices.IndexFunc(keys, func(k Key) bool { return k.Variable == name })
		if i < 0 {
			errs = append(errs, fmt.Errorf("environment variable %s names no key; `lodge config keys` lists them", name))
			continue
		}
		list = append(list, Setting{Key: keys[i].Name, Value: value, From: "the environment's " + name})
	}
	for _, v := range set {
		key, value, ok := strings.Cut(v, "=")
		if !ok || !slices.ContainsFunc(keys, func(k Key) bool { return k.Name == key }) {
			errs = append(errs, fmt.Errorf("--set %s is not KEY=VALUE with a key that `lodge config keys` lists", v))
			continue
		}
		list = append(list, Setting{Key: key, Value: value, From: "--set " + key})
	}
	return list, errors.Join(errs...)
}

// decodeSet reads a file, applies the settings of the environment and of a command, and returns
// these settings.
func decodeSet(path string, out any, set []string) ([]Setting, error) {
	list, err := settings(out, os.Environ(), set)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	b, err := read(path)
	if err != nil {
		return nil, err
	}
	if err := decodeBytes(b, out); err != nil { // without settings first, so that errors have the file's line numbers
		return nil, fmt.Errorf("config: %s: %w", path, err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	reflect.ValueOf(out).Elem().SetZero()
	if b, err = apply(b, list); err == nil {
		err = decodeBytes(b, out)
	}
	if err != nil {
		return nil, fmt.Errorf("config: %s, with %s: %w", path, from(list), err)
	}
	return list, nil
}

func from(list []Setting) string {
	var names []string
	for _, s := range list {
		names = append(names, s.From)
	}
	return strings.Join(names, ", ")
}

// apply writes settings into a document.
func apply(document []byte, list []Setting) ([]byte, error) {
	var doc yaml.Node
	if err := yaml.NewDecoder(bytes.NewReader(document)).Decode(&doc); err != nil {
		return nil, err
	}
	for _, s := range list {
		value, err := valueOf(s)
		if err != nil {
			return nil, err
		}
		at := doc.Content[0]
		path := strings.Split(s.Key, ".")
		for _, name := range path[:len(path)-1] {
			at = child(at, name, &yaml.Node{Kind: yaml.MappingNode})
			switch {
			case at.Tag == "!!null":
				*at = yaml.Node{Kind: yaml.MappingNode}
			case at.Kind != yaml.MappingNode: // an alias, whose values also appear elsewhere
				return nil, fmt.Errorf("%s: write out %s in the file, without an alias", s.From, name)
			}
		}
		*child(at, path[len(path)-1], &yaml.Node{}) = *value
	}
	return yaml.Marshal(&doc)
}

// valueOf parses a setting's value. An empty value is the empty string.
func valueOf(s Setting) (*yaml.Node, error) {
	var v yaml.Node
	if err := yaml.Unmarshal([]byte(s.Value), &v); err != nil {
		return nil, fmt.Errorf("%s: %q is not YAML: %w", s.From, s.Value, err)
	}
	if len(v.Content) == 0 {
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Style: yaml.DoubleQuotedStyle}, nil
	}
	return v.Content[0], nil
}

// child returns the value of a key in a mapping, and adds fresh if the key is missing.
func child(m *yaml.Node, key string, fresh *yaml.Node) *yaml.Node {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == key {
			return m.Content[i+1]
		}
	}
	m.Content = append(m.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key}, fresh)
	return fresh
}
