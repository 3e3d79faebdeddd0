// Package devnet writes the files of a development cluster: a certificate authority, certificates,
// signing and vault keys, a roster, and a configuration for the coordinator, every party and every
// client. All secrets of all parties are in one directory, so the cluster is only for development.
package devnet

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/pki"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/store/vault/seal"
)

// lifetime is the validity of development certificates.
const lifetime = 90 * 24 * time.Hour

// Options configures a cluster.
type Options struct {
	Parties int
	Host    string   // address at which all processes listen; empty: 127.0.0.1
	Port    int      // of the coordinator; party i has Port+1+i. 0 selects free ports.
	Params  []string // pinned parameter sets
	// Dev accepts key generation that is only passively secure, including threshold keys.
	Dev bool
	// Insecure accepts parameter sets for tests.
	Insecure  bool
	MaxMemory uint64 // of a party's sessions; 0 means 4 GiB
	// NoSacrifice makes the parties allow products without a sacrifice.
	NoSacrifice bool
	// Metrics makes every process serve its metrics, on a free port.
	Metrics bool
	// Health makes every process serve its health check, on a free port.
	Health bool
	// Console makes every process serve a console: that of the coordinator at Port + Parties + 1,
	// and that of party i at the i+1st port after it.
	Console bool
	// Multikey pins the context of multi-key ciphertexts, with this set and the standard common
	// reference string.
	Multikey string
	// Containers writes files for processes in containers: see containers.go. Clients reach them at
	// Host.
	Containers bool
	// Postgres stores the parties' data in a PostgreSQL server that runs in another container: see
	// database.go.
	Postgres bool
}

// Cluster holds the paths and addresses of a cluster.
type Cluster struct {
	Dir         string
	Roster      *config.Roster
	Coordinator string   // configuration file
	Parties     []string // configuration files
	Params      string   // the first of the pinned sets
	Sets        []string // all pinned sets
	Clients     []string // configuration files of clients: each party's in order, then Operator, App and, with Dev, Attested
	// Metrics holds the addresses of metrics: each party's in order, then the coordinator's. It is
	// empty without Options.Metrics.
	Metrics []string
	// Consoles holds the addresses of the coordinator's console and the parties', with
	// Options.Console.
	Consoles []string
}

// Tenant is the only tenant of a development cluster.
const Tenant = "dev"

// Open finds the files of a cluster that Write made.
func Open(dir string) (*Cluster, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{Dir: dir, Coordinator: filepath.Join(dir, "coordinator", "coordinator.yaml")}
	if c.Roster, err = config.LoadRoster(filepath.Join(dir, "roster.yaml")); err != nil {
		return nil, err
	}
	names := []string{}
	f, err := config.LoadCoordinator(c.Coordinator)
	if err != nil {
		return nil, err
	}
	c.setSets(f.Params)
	metrics := f.MetricsListen
	for i, m := range c.Roster.Parties {
		c.Parties = append(c.Parties, filepath.Join(dir, m.Name, "party.yaml"))
		names = append(names, ClientName(i))
		p, err := config.LoadParty(c.Parties[i])
		if err != nil {
			return nil, err
		}
		if p.MetricsListen != "" {
			c.Metrics = append(c.Metrics, p.MetricsListen)
		}
	}
	if metrics != "" {
		c.Metrics = append(c.Metrics, metrics)
	}
	for _, name := range append(names, Operator, App, Attested) {
		file := filepath.Join(dir, "clients", name+".yaml")
		if _, err := os.Stat(file); name == Attested && err != nil {
			continue // only development clusters have it
		}
		c.Clients = append(c.Clients, file)
	}
	return c, nil
}

func (c *Cluster) setSets(pins []config.ParamsPin) {
	for _, p := range pins {
		c.Sets = append(c.Sets, p.Name)
	}
	if len(pins) > 0 {
		c.Params = c.Sets[0]
	}
}

func identity(kind string, i int) string {
	if i < 0 {
		return "spiffe://lodge/" + kind
	}
	return "spiffe://lodge/" + kind + "/p" + strconv.Itoa(i)
}

// Operator is the client of the coordinator.
const Operator = "operator"

// App is a client of every party. In a development cluster it may decrypt any ciphertexts, so it
// can read the keys.
const App = "app"

// Attested is a client of every party of a development cluster. It may decrypt ciphertexts whose
// provenance Attester has signed.
const Attested = "attested"

// ClientName returns the name of the client of party i, which fetches the party's tuples.
func ClientName(i int) string { return "client-p" + strconv.Itoa(i) }

// Credentials returns the credentials of a client of the cluster, by name.
func (c *Cluster) Credentials(client string) (*rpc.Credentials, error) {
	return rpc.LoadCredentials(rpc.Files{
		Certificate: filepath.Join(c.Dir, "clients", client+".pem"),
		Key:         filepath.Join(c.Dir, "clients", client+".key"),
		CA:          filepath.Join(c.Dir, "ca.pem"),
	})
}

// writer writes files and keeps the first error.
type writer struct {
	dir    string
	ca     *pki.Authority
	shared string // path of the roster and the authority, relative to a process's directory
	// attester is the public key of a development cluster's attester.
	attester ed25519.PublicKey
	err      error
}

func (w *writer) do(f func() error) {
	if w.err == nil {
		w.err = f()
	}
}

func (w *writer) file(name string, b []byte) {
	w.do(func() error {
		path := filepath.Join(w.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		return os.WriteFile(path, b, 0o600)
	})
}

func (w *writer) yaml(name string, v any) {
	w.do(func() error {
		b, err := yaml.Marshal(v)
		if err == nil {
			w.file(name, b)
		}
		return err
	})
}

func (w *writer) leaf(base, id string, hosts ...string) {
	w.do(func() error {
		cert, key, err := w.ca.Issue(pki.Leaf{Identity: id, Hosts: append(hosts, "localhost"), Lifetime: lifetime})
		if err == nil {
			w.file(base+".pem", cert)
			w.file(base+".key", key)
		}
		return err
	})
}

// Write makes a cluster in an empty or new directory.
func Write(dir string, o Options) (*Cluster, error) {
	if err := checkSize(o.Parties, o.Port, o.Console); err != nil {
		return nil, err
	}
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return nil, fmt.Errorf("devnet: %s is not empty; name a new directory", dir)
	}
	if o.Host == "" {
		o.Host = "127.0.0.1"
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = 4 << 30
	}
	//lodge:check devnet/host run=TestHosts any text becomes the address of every process, and a name in certificates
	if !config.ValidHost(o.Host) {
		return nil, fmt.Errorf("devnet: %q is not a host: write a name or an address, without a port", o.Host)
	}
	if o.Multikey != "" && !slices.Contains(o.Params, o.Multikey) {
		o.Params = append(slices.Clone(o.Params), o.Multikey)
	}
	pins, fields, err := pins(o) // before any file is written
	if err != nil {
		return nil, err
	}
	addresses, err := addresses(o)
	if err != nil {
		return nil, err
	}
	ca, err := pki.NewAuthority("Lodge development", lifetime)
	if err != nil {
		return nil, err
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, err
	}
	w := &writer{dir: dir, ca: ca, shared: "../"}
	w.file("ca.pem", ca.PEM())
	c := &Cluster{Dir: dir, Roster: &config.Roster{Coordinator: config.Coordinator{Address: addresses[0], Identity: identity("coordinator", -1)}}}
	for i := range o.Parties {
		private, public, err := pki.NewSigningKey()
		if err != nil {
			return nil, err
		}
		name := partyName(i)
		w.file(name+"/signing.key", private)
		c.Roster.Parties = append(c.Roster.Parties, config.Member{
			ID: i, Name: name, Address: addresses[i+1], Identity: identity("party", i), SigningKey: public,
		})
	}
	if o.Multikey != "" {
		c.Roster.Multikey = &config.Multikey{Set: o.Multikey, Seed: config.StandardSeed}
	}
	w.yaml("roster.yaml", c.Roster)
	if o.Dev {
		w.newAttester()
	}
	if o.Containers {
		w.apart(c.Roster)
	}
	if o.Postgres {
		w.database(o.Parties)
	}
	c.setSets(pins)
	free := addresses[o.Parties+1:]
	if o.Metrics {
		c.Metrics, free = free[:o.Parties+1], free[o.Parties+1:]
	}
	if o.Console {
		cut := len(free) - o.Parties - 1
		free, c.Consoles = free[:cut], free[cut:]
	}
	w.coordinator(c, o, pins, o.further(c, free, -1))
	w.clients(c, o)
	for i := range o.Parties {
		w.party(c, o, i, pins, fields, o.further(c, free, i))
	}
	return c, w.err
}

// further returns the addresses of a party's metrics, health check and console, or with -1 of the
// coordinator's. The coordinator's metrics and health check follow those of the parties.
func (o *Options) further(c *Cluster, health []string, i int) site {
	s := site{console: c.consoleOf(i)}
	if i < 0 {
		i = o.Parties
	}
	if o.Metrics {
		s.metrics = c.Metrics[i]
	}
	if o.Health {
		s.health = health[i]
	}
	return s
}

// addresses returns the addresses of the coordinator and the parties, then of metrics and of health
// checks, of each party in order and then of the coordinator, and last those of the consoles.
func addresses(o Options) ([]string, error) {
	n := o.Parties + 1
	for _, on := range []bool{o.Metrics, o.Health} {
		if on {
			n += o.Parties + 1
		}
	}
	consoles := n
	if o.Console {
		n += o.Parties + 1
	}
	list := make([]string, n)
	for i := range list {
		switch {
		case o.Port == 0:
		case i <= o.Parties:
			list[i] = net.JoinHostPort(o.Host, strconv.Itoa(o.Port+i))
			continue
		case i >= consoles:
			list[i] = net.JoinHostPort(o.Host, strconv.Itoa(o.Port+o.Parties+1+i-consoles))
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort(o.Host, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() // after all are chosen, so that they differ
		list[i] = l.Addr().String()
	}
	return list, nil
}

// consoleOf returns the address of the console of party i, or of the coordinator for -1; empty
// without consoles.
func (c *Cluster) consoleOf(i int) string {
	if len(c.Consoles) == 0 {
		return ""
	}
	return c.Consoles[i+1]
}

func pins(o Options) (pins []config.ParamsPin, fields []string, err error) {
	seen := map[string]bool{}
	for _, name := range o.Params {
		set, err := plan.Lookup(name)
		if err != nil {
			return nil, nil, err
		}
		pins = append(pins, config.ParamsPin{Name: name, Hash: hex.EncodeToString(set.Hash[:])})
		for _, f := range set.Fields {
			if !seen[f.Name] {
				seen[f.Name] = true
				fields = append(fields, f.Name)
			}
		}
	}
	return pins, fields, nil
}

func (w *writer) tls() config.TLS {
	return config.TLS{Certificate: "tls.pem", Key: "tls.key", CA: w.shared + "ca.pem"}
}

func (w *writer) coordinator(c *Cluster, o Options, pins []config.ParamsPin, further site) {
	at := o.at(config.CoordinatorName, c.Roster.Coordinator.Address, further)
	w.leaf("coordinator/tls", identity("coordinator", -1), at.hosts...)
	clients := []config.Client{{Name: Operator, Identity: identity(Operator, -1), Permissions: []string{
		config.PermStatus, config.PermSubmit, config.PermReserve, config.PermPolicy, config.PermOperate,
	}, Tenants: []string{Tenant}}}
	for i := range o.Parties { // the program of any party may reserve for all
		clients = append(clients, config.Client{Name: ClientName(i), Identity: identity("client", i), Permissions: []string{
			config.PermStatus, config.PermReserve,
		}, Tenants: []string{Tenant}})
	}
	w.yaml("coordinator/coordinator.yaml", &config.CoordinatorFile{
		RosterFile: w.shared + "roster.yaml", Listen: at.listen, MetricsListen: at.metrics, HealthListen: at.health, TLS: w.tls(), DataDir: "data",
		Clients: clients, Params: pins, JobTimeout: config.Duration(time.Hour), MaxConcurrent: 2,
		Console: config.Console{Listen: at.console},
		// These clients act for one operator, of whom each may use all stock.
		Reservations: config.ReserveLimits{MaxShare: 1},
	})
	c.Coordinator = filepath.Join(w.dir, "coordinator", "coordinator.yaml")
}

// clients writes the files of the cluster's clients: a certificate, and a configuration for package
// lodge and similar clients.
func (w *writer) clients(c *Cluster, o Options) {
	write := func(name, identity, party string) {
		w.leaf("clients/"+name, identity, o.Host)
		x := lodge.Config{
			Name: name, Tenant: Tenant, Coordinator: lodge.Server{Address: c.Roster.Coordinator.Address, Identity: c.Roster.Coordinator.Identity},
			Params: c.Params, Party: party, TLS: lodge.TLS{Certificate: name + ".pem", Key: name + ".key", CA: "../ca.pem"},
		}
		for _, m := range c.Roster.Parties {
			x.Parties = append(x.Parties, lodge.Server{Name: m.Name, Address: m.Address, Identity: m.Identity})
		}
		w.yaml("clients/"+name+".yaml", &x)
		c.Clients = append(c.Clients, filepath.Join(w.dir, "clients", name+".yaml"))
	}
	for i, m := range c.Roster.Parties {
		write(ClientName(i), identity("client", i), m.Name)
	}
	write(Operator, identity(Operator, -1), "")
	write(App, identity(App, -1), "")
	if o.Dev {
		write(Attested, identity(Attested, -1), "")
	}
}

func (w *writer) party(c *Cluster, o Options, i int, pins []config.ParamsPin, fields []string, further site) {
	m := c.Roster.Parties[i]
	at := o.at(m.Name, m.Address, further)
	w.leaf(m.Name+"/tls", m.Identity, at.hosts...)
	w.do(func() error { return seal.WriteNewKey(filepath.Join(w.dir, m.Name, "vault.key")) })
	place := config.Vault{Dir: "vault", KeyFile: "vault.key"}
	if o.Postgres {
		place = config.Vault{PostgresDSNFile: dsnFile, KeyFile: "vault.key"}
	}
	purposes, kinds := config.Purposes, config.Kinds
	if len(fields) == 0 {
		purposes, kinds = []string{"threshold"}, []string{"keys", "masks", "reshare"}
	}
	clients := []config.Client{{Name: ClientName(i), Identity: identity("client", i), Permissions: []string{
		config.PermStatus, config.PermFetch, config.PermMACKey, config.PermProve, config.PermRetire, config.PermAccusations,
		config.PermOperate, config.PermEncrypt, config.PermLinear, config.PermEvaluate,
	}, Tenants: []string{Tenant}}, {Name: App, Identity: identity(App, -1), Permissions: []string{
		config.PermStatus, config.PermProve, config.PermDecrypt, config.PermEncrypt, config.PermLinear, config.PermEvaluate,
	}, Tenants: []string{Tenant}}, {Name: Operator, Identity: identity(Operator, -1), Permissions: []string{
		config.PermStatus, config.PermOperate, config.PermApprove,
	}, Tenants: []string{Tenant}}}
	var decrypting config.Threshold
	if o.Dev {
		decrypting.Attesters = []config.Attester{{Name: Attester, Key: hex.EncodeToString(w.attester)}}
		decrypting.Rules = decryptRules()
		clients = append(clients, config.Client{Name: Attested, Identity: identity(Attested, -1), Permissions: []string{
			config.PermStatus, config.PermDecrypt,
		}, Tenants: []string{Tenant}})
		decrypting.Reshare.MinThreshold = 1
		for _, m := range c.Roster.Parties {
			decrypting.Reshare.Holders = append(decrypting.Reshare.Holders, m.Name)
		}
	}
	w.yaml(m.Name+"/party.yaml", &config.PartyFile{
		Name: m.Name, RosterFile: w.shared + "roster.yaml", Listen: at.listen, MetricsListen: at.metrics, HealthListen: at.health, TLS: w.tls(),
		SigningKey: "signing.key", Vault: place, Console: config.Console{Listen: at.console},
		Clients: clients,
		Policy: config.Policy{
			Params: pins, Kinds: kinds, Fields: fields, Purposes: purposes, Tenants: []string{Tenant},
			MaxCount: 1 << 20, MaxDim: 1 << 12, JobsPerHour: 1000, MaxConcurrent: 2, MaxMemory: config.Bytes(o.MaxMemory), DecryptionsPerHour: 1000,
			AllowNoSacrifice: o.NoSacrifice,
		},
		AllowPassiveKeygen: o.Dev, AllowInsecureParams: o.Insecure, AllowPassiveThreshold: o.Dev, Threshold: decrypting, AllowPassiveLinear: o.Dev,
	})
	c.Parties = append(c.Parties, filepath.Join(w.dir, m.Name, "party.yaml"))
}
