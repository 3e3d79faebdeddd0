// Command gen writes the Grafana dashboards as JSON. Run it from the root of this module:
//
//	go run ./dashboards/gen dashboards
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
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

// files returns the JSON of the dashboards by file name.
func files() map[string][]byte {
	list := map[string][]byte{}
	for _, d := range dashboards {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		if err := e.Encode(d.json()); err != nil {
			panic(err)
		}
		list[d.name+".json"] = b.Bytes()
	}
	return list
}
