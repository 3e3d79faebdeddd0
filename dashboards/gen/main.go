// Command gen writes the Grafana dashboards as JSON. Each YAML file of this directory describes one
// dashboard in a few lines per panel. Targets need the label process: see
// docs/reference/metrics.md. Run it from the root of this module:
//
//	go run ./dashboards/gen dashboards
package main

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gen DIR")
		os.Exit(2)
	}
	for name, b := range files() {
		if err := os.WriteFile(filepath.Join(os.Args[1], name), b, 0o644); err != nil {
			fmt.Fprintln(os.Stderr, "gen:", err)
			os.Exit(1)
		}
	}
}

//go:embed *.yaml
var sources embed.FS

// dashboards returns all dashboards by name.
func dashboards() map[string]dashboard {
	list := map[string]dashboard{}
	names, err := fs.Glob(sources, "*.yaml")
	for _, name := range names {
		var d dashboard
		b, e := sources.ReadFile(name)
		decoder := yaml.NewDecoder(bytes.NewReader(b))
		decoder.KnownFields(true)
		err = errors.Join(err, e, decoder.Decode(&d))
		list[strings.TrimSuffix(name, ".yaml")] = d
	}
	if err != nil {
		panic(err)
	}
	return list
}

// files returns the JSON of the dashboards by file name.
func files() map[string][]byte {
	list := map[string][]byte{}
	for name, d := range dashboards() {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(d.json(name)); err != nil {
			panic(err)
		}
		list[name+".json"] = b.Bytes()
	}
	return list
}
