package main

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
)

// The parts of CycloneDX 1.6 that a bill of ours has.
type (
	document struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Component component `json:"component"`
	}
	component struct {
		Type       string     `json:"type"`
		Ref        string     `json:"bom-ref"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		PURL       string     `json:"purl"`
		Licences   []licence  `json:"licenses,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	licence struct {
		Licence identifier `json:"license"`
	}
	identifier struct {
		ID string `json:"id"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn,omitempty"`
	}
)

// unversioned is the go command's version of a program that was not built from a tagged version.
const unversioned = "(devel)"

func newComponent(kind, path, version string, licences []string) component {
	purl := "pkg:golang/" + path
	if version != unversioned {
		purl += "@" + strings.ReplaceAll(version, "+", "%2B")
	}
	c := component{Type: kind, Ref: purl, Name: path, Version: version, PURL: purl}
	for _, l := range licences {
		c.Licences = append(c.Licences, licence{identifier{l}})
	}
	return c
}

// bill lists the modules of a binary, from the build information that the go command embeds in it.
// Every module must be one of those that were looked at. It is the same for the same binary: there
// is no time in it, and its number is a hash.
func bill(info *debug.BuildInfo, modules []module) ([]byte, error) {
	d := document{Format: "CycloneDX", Spec: "1.6", Version: 1}
	version := info.Main.Version
	if version == "" {
		version = unversioned
	}
	d.Metadata.Component = newComponent("application", info.Main.Path, version, []string{"Apache-2.0"})
	for _, s := range info.Settings {
		if s.Value != "" {
			d.Metadata.Component.Properties = append(d.Metadata.Component.Properties, property{"go:build:" + s.Key, s.Value})
		}
	}
	d.Components = []component{newComponent("library", "std", strings.TrimPrefix(info.GoVersion, "go"), []string{"BSD-3-Clause"})}
	for _, dep := range info.Deps {
		if dep.Replace != nil {
			return nil, fmt.Errorf("%s is replaced by %s", dep.Path, dep.Replace.Path)
		}
		at := slices.IndexFunc(modules, func(m module) bool { return m.Path == dep.Path && m.Version == dep.Version })
		if at < 0 {
			return nil, fmt.Errorf("the binary has %s %s, which this tree has not: build it anew", dep.Path, dep.Version)
		}
		c := newComponent("library", dep.Path, dep.Version, modules[at].Licences)
		c.Properties = []property{{"go:sum", dep.Sum}}
		d.Components = append(d.Components, c)
	}
	root := dependency{Ref: d.Metadata.Component.Ref}
	for _, c := range d.Components {
		root.On = append(root.On, c.Ref)
	}
	d.Dependencies = []dependency{root}
	unnumbered, err := json.Marshal(d)
	if err != nil {
		return nil, err
	}
	h := sha256.Sum256(unnumbered)
	h[6], h[8] = h[6]&0x0f|0x80, h[8]&0x3f|0x80 // a UUID of version 8, RFC 9562
	d.Serial = fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", h[:4], h[4:6], h[6:8], h[8:10], h[10:16])
	out, err := json.MarshalIndent(d, "", "  ")
	return append(out, '\n'), err
}
