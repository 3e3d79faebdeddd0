package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Entry is the information that one process contributes to the roster. Only a party's entry has a
// name and signing key.
type Entry struct {
	Name       string `yaml:"name,omitempty"`
	Address    string `yaml:"address"`
	Identity   string `yaml:"identity"`
	SigningKey string `yaml:"signing_key,omitempty"`
}

// LoadEntry reads an entry from a file without validating it; Join validates the roster as a whole.
func LoadEntry(path string) (*Entry, error) {
	e := new(Entry)
	if err := decode(path, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Join builds a roster from entry files: the parties in this order, and the coordinator.
func Join(paths []string) (*Roster, error) {
	r := new(Roster)
	for _, path := range paths {
		e, err := LoadEntry(path)
		if err != nil {
			return nil, err
		}
		switch {
		case e.Name != "":
			r.Parties = append(r.Parties, Member{
				ID: len(r.Parties), Name: e.Name, Address: e.Address, Identity: e.Identity, SigningKey: e.SigningKey,
			})
		case r.Coordinator.Identity != "":
			return nil, fmt.Errorf("config: %s names another coordinator", path)
		default:
			r.Coordinator = Coordinator{Address: e.Address, Identity: e.Identity}
		}
	}
	c := new(check)
	r.validate(c)
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("config: these entries do not form a roster: %w", err)
	}
	return r, nil
}

// Text returns the roster in its file format.
func (r *Roster) Text() ([]byte, error) { return yaml.Marshal(r) }
