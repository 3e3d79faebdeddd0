package lodge

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"
)

// Config says who a client is and where its services are. The YAML form is what `lodge init` writes as
// clients/NAME.yaml, and what every client of Lodge reads, in whatever language.
type Config struct {
	// Name that the coordinator and the party know this client by.
	Name string `yaml:"name"`
	// Tenant and Params stand in for those that a Class leaves out.
	Tenant string `yaml:"tenant,omitempty"`
	Params string `yaml:"params,omitempty"`

	Coordinator Server   `yaml:"coordinator"`
	Parties     []Server `yaml:"parties"` // in the order of the roster
	// Party is the name of the one whose shares this client draws; empty for a client of the coordinator alone.
	Party string `yaml:"party,omitempty"`

	TLS TLS `yaml:"tls"`

	// Certificate and Roots are used instead of the files of TLS, where they are set.
	Certificate *tls.Certificate `yaml:"-"`
	Roots       *x509.CertPool   `yaml:"-"`
	// Patience is how long a call goes on trying while nothing comes from the other side; 0 means 30 s.
	Patience time.Duration `yaml:"-"`
}

// Server is a coordinator or a party.
type Server struct {
	Name    string `yaml:"name,omitempty"`
	Address string `yaml:"address"`
	// Identity is a URI or DNS name that the server's certificate must carry, exactly; the address plays no part.
	Identity string `yaml:"identity"`
	// TokenFile holds a bearer token for this server, where it takes them: instead of a certificate, or beside one. It is
	// read anew for every call.
	TokenFile string `yaml:"token_file,omitempty"`
}

// TLS names PEM files. A client that has a token for every server needs no certificate and no key. In a configuration file their paths are relative to its directory.
type TLS struct {
	Certificate string `yaml:"certificate"` // the client's chain, leaf first
	Key         string `yaml:"key"`
	CA          string `yaml:"ca"` // authority of the coordinator's and the parties' certificates
}

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 1 << 20

// Load reads a client's configuration file strictly: unknown keys are errors.
func Load(path string) (Config, error) {
	var c Config
	f, err := os.Open(path)
	if err != nil {
		return c, fmt.Errorf("lodge: configuration: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxConfig+1))
	if err != nil {
		return c, fmt.Errorf("lodge: configuration: %w", err)
	}
	if len(b) > maxConfig {
		return c, fmt.Errorf("lodge: configuration %s: more than %d bytes", path, maxConfig)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("lodge: configuration %s: %w", path, err)
	}
	if err := dec.Decode(new(any)); !errors.Is(err, io.EOF) {
		return c, fmt.Errorf("lodge: configuration %s: more than one document", path)
	}
	paths := []*string{&c.TLS.Certificate, &c.TLS.Key, &c.TLS.CA, &c.Coordinator.TokenFile}
	for i := range c.Parties {
		paths = append(paths, &c.Parties[i].TokenFile)
	}
	for _, p := range paths {
		if *p != "" && !filepath.IsAbs(*p) {
			*p = filepath.Join(filepath.Dir(path), *p)
		}
	}
	return c, c.check()
}

func (c *Config) check() error {
	bad := func(next, format string, args ...any) error { return errorf(Invalid, next, format, args...) }
	named := func(what string, s Server) error {
		if s.Address == "" || s.Identity == "" {
			return bad("`lodge init` writes configurations of clients", "%s has no address or no identity", what)
		}
		return nil
	}
	if c.Coordinator != (Server{}) {
		if err := named("the coordinator", c.Coordinator); err != nil {
			return err
		}
	}
	for i, p := range c.Parties {
		if err := named(fmt.Sprintf("party %d", i), p); err != nil {
			return err
		}
	}
	if c.Party != "" && c.own() < 0 {
		return bad("name one of parties", "there is no party %q", c.Party)
	}
	return nil
}

// own returns the index of the client's party, or -1.
func (c *Config) own() int {
	if c.Party == "" {
		return -1
	}
	return slices.IndexFunc(c.Parties, func(s Server) bool { return s.Name == c.Party })
}
