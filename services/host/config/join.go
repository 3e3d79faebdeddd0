package config

import (
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

// Entry is what one process hands out for the roster: a party's has its name and signing key, the coordinator's has neither.
type Entry struct {
	Name       string `yaml:"name,omitempty"`
	Address    string `yaml:"address"`
	Identity   string `yaml:"identity"`
	SigningKey string `yaml:"signing_key,omitempty"`
}

// LoadEntry reads what one process hands out, and does not check it: a roster does.
func LoadEntry(path string) (*Entry, error) {
	e := new(Entry)
	if err := decode(path, e); err != nil {
		return nil, err
	}
	return e, nil
}

// Join makes a roster of entries in files: the parties in this order, and the coordinator.
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
			return nil, fmt.Errorf("config: %s is of another coordinator", path)
		default:
			r.Coordinator = Coordinator{Address: e.Address, Identity: e.Identity}
		}
	}
	c := new(check)
	r.validate(c)
	if err := errors.Join(c.errs...); err != nil {
		return nil, fmt.Errorf("config: these entries make no roster: %w", err)
	}
	return r, nil
}

// Text is a roster as it is written to a file.
func (r *Roster) Text() ([]byte, error) { return yaml.Marshal(r) }
