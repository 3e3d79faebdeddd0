package cli

import (
	"cmp"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// places holds the addresses of a cluster's servers and the credentials for calling them.
type places struct {
	Roster *config.Roster
	// routes is true if the roster comes from a client's configuration, which has names, addresses
	// and identities only. Such a roster has no digest.
	Routes bool
	Files  rpc.Files
	Tokens map[string]string // files with bearer tokens, by the identity of the server
}

// Places returns the addresses and credentials that the flags select. It replaces an index in
// o.Party by the name. If o.Party is empty, it uses the party of the client's configuration, if
// any.
func (o *Operator) Places() (*places, error) {
	if o.Client != "" {
		return o.placesOfClient()
	}
	p := &places{Tokens: map[string]string{}}
	path := o.Path(o.Roster, RosterFile)
	var err error
	if p.Roster, err = config.LoadRoster(path); err != nil {
		return nil, MissingFile(err)
	}
	o.nameParty(p.Roster)
	client := devnet.Operator
	if o.Party != "" {
		client = "client-" + o.Party
	}
	p.Files.CA = o.Path(o.ca, "ca.pem")
	if o.token == "" || o.identity != "" {
		p.Files.Certificate = o.Path(o.identity, "clients", client+".pem")
		p.Files.Key = strings.TrimSuffix(p.Files.Certificate, ".pem") + ".key"
	}
	if o.token != "" {
		p.Tokens[p.Roster.Coordinator.Identity] = o.token
		for _, m := range p.Roster.Parties {
			p.Tokens[m.Identity] = o.token
		}
	}
	return p, nil
}

// Path returns path, or if it is empty the path of a file in the cluster's directory.
func (o *Operator) Path(path string, elements ...string) string {
	if path != "" {
		return path
	}
	return filepath.Join(append([]string{ClusterDir(o.Cluster)}, elements...)...)
}

// placesOfClient reads a client's configuration. If --roster is set, it uses that roster.
func (o *Operator) placesOfClient() (*places, error) {
	for _, f := range [][2]string{{"identity", o.identity}, {"ca", o.ca}, {"token-file", o.token}} {
		if f[1] != "" {
			return nil, rpc.Errorf(rpc.Invalid, "remove one of the two flags", "--client, which names its files, and --%s", f[0])
		}
	}
	c, err := lodge.Load(o.Client)
	if err != nil {
		return nil, MissingFile(FromClient(err))
	}
	p := &places{
		Files:  rpc.Files{Certificate: c.TLS.Certificate, Key: c.TLS.Key, CA: c.TLS.CA},
		Tokens: map[string]string{c.Coordinator.Identity: c.Coordinator.TokenFile},
		Routes: true, Roster: &config.Roster{Coordinator: config.Coordinator{Address: c.Coordinator.Address, Identity: c.Coordinator.Identity}},
	}
	for i, s := range c.Parties {
		p.Roster.Parties = append(p.Roster.Parties, config.Member{ID: i, Name: cmp.Or(s.Name, strconv.Itoa(i)), Address: s.Address, Identity: s.Identity})
		p.Tokens[s.Identity] = s.TokenFile
	}
	if o.Roster != "" {
		if p.Roster, err = config.LoadRoster(o.Roster); err != nil {
			return nil, MissingFile(err)
		}
		p.Routes = false
	}
	o.Party = cmp.Or(o.Party, c.Party)
	o.nameParty(p.Roster)
	return p, nil
}

// nameParty replaces an index in o.Party by the name of the party.
func (o *Operator) nameParty(r *config.Roster) {
	if _, named := r.Index(o.Party); named {
		return
	}
	if i, err := strconv.Atoi(o.Party); err == nil && i >= 0 && i < len(r.Parties) {
		o.Party = r.Parties[i].Name
	}
}

// Credentials loads the client's certificate, if it has one, and the authority of the servers.
func (p *places) Credentials() (*rpc.Credentials, error) {
	c, err := rpc.LoadCredentials(p.Files)
	return c, MissingFile(err)
}

// Options returns the dial options for a server. They do not include the credentials.
func (p *places) Options(identity string) []rpc.DialOption {
	if file := p.Tokens[identity]; file != "" {
		return []rpc.DialOption{rpc.WithToken(rpc.TokenFile(file))}
	}
	return nil
}

func (p *places) connect(name, address, identity string) (*server, error) {
	credentials, err := p.Credentials()
	if err != nil {
		return nil, err
	}
	conn, err := rpc.Dial(address, identity, credentials, p.Options(identity)...)
	if err != nil {
		return nil, err
	}
	return &server{conn, name, address, credentials.Client(identity)}, nil
}
