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

// Config holds a client's identity and the addresses of its services. Its YAML form is written by
// `lodge init` as clients/NAME.yaml and read by Lodge's clients in all languages.
type Config struct {
	// Name is the client's name at the coordinator and the party.
	Name string `yaml:"name"`
	// Tenant and Params are the defaults for a Class that omits them.
	Tenant string `yaml:"tenant,omitempty"`
	Params string `yaml:"params,omitempty"`

	Coordinator Server   `yaml:"coordinator"`
	Parties     []Server `yaml:"parties"` // in the order of the roster
	// Party names the party whose shares this client draws; it is empty for a client that uses only
	// the coordinator.
	Party string `yaml:"party,omitempty"`

	TLS TLS `yaml:"tls"`

	// Certificate and Roots, if set, replace the files of TLS.
	Certificate *tls.Certificate `yaml:"-"`
	Roots       *x509.CertPool   `yaml:"-"`
	// Patience is how long a call is retried while the other side does not respond; 0 means 30 s.
	Patience time.Duration `yaml:"-"`
}

// Server is a coordinator or a party.
type Server struct {
	Name    string `yaml:"name,omitempty"`
	Address string `yaml:"address"`
	// Identity is a URI or DNS name that the server's certificate must carry exactly. The address
	// is not compared.
	Identity string `yaml:"identity"`
	// TokenFile holds a bearer token for this server, if it accepts tokens, instead of a
	// certificate or in addition to one. It is read again for every call.
	TokenFile string `yaml:"token_file,omitempty"`
}

// TLS names PEM files. A client with a token for every server needs no certificate and no key. In a
// configuration file, paths are relative to its directory.
type TLS struct {
	Certificate string `yaml:"certificate"` // the client's chain, leaf first
	Key         string `yaml:"key"`
	CA          string `yaml:"ca"` // authority of the coordinator's and the parties' certificates
}

// maxConfig is the maximal size of a configuration file in bytes.
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
	bad := func(next, format string, args ...any) error { return Errorf(Invalid, next, format, args...) }
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
		return bad("name one of parties", "the configuration names no party %q", c.Party)
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
