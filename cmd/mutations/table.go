package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mutation switches one verification off.
type mutation struct {
	Name     string   // stable: area/what
	File     string   // below the root of the module
	Old, New string   `json:"-"` // Old occurs exactly once in the file and becomes New
	Tests    []string // packages of which some test must fail
	Run      string   // pattern of the tests to run; all when empty
	Protects string   // what goes wrong without the verification
	Hangs    bool     `json:",omitempty"` // a test that does not end counts as failed
	// Redundant says why nothing can notice that this verification is off; it is not run.
	Redundant string `json:",omitempty"`

	marked bool // declared by a marker in the file, instead of Old and New
}

// every gives the mutations of the markers below root, and then those of the table.
func every(root string) ([]mutation, error) {
	all, err := marked(root)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, m := range all {
		seen[m.Name] = true
	}
	for _, m := range table() {
		if seen[m.Name] {
			return nil, fmt.Errorf("%s is in the table and is also the name of a marker", m.Name)
		}
	}
	return append(all, table()...), nil
}

// table lists the mutations that a marker cannot express, with Old and New. There are none today.
func table() []mutation { return nil }

// apply gives the source with the edit.
func (m mutation) apply(source string) (string, error) {
	if m.marked {
		edited, _, err := switchOff(m.File, source, m.Name)
		return edited, err
	}
	switch n := strings.Count(source, m.Old); n {
	case 1:
		return strings.Replace(source, m.Old, m.New, 1), nil
	default:
		return "", fmt.Errorf("%s: %s has the text to edit %d times, want once", m.Name, m.File, n)
	}
}

// overlay writes the edited file and the description of the overlay into dir, and gives the path of the latter.
func (m mutation) overlay(root, dir string) (string, error) {
	path := filepath.Join(root, filepath.FromSlash(m.File))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	edited, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(path))
	if err := os.WriteFile(replacement, []byte(edited), 0o600); err != nil {
		return "", err
	}
	description, err := json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, description, 0o600)
}
