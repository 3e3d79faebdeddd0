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

// places says where the servers of a cluster are, and as whom they are called.
type places struct {
	Roster *config.Roster
	// routes says that the roster has no more than names, addresses and identities, so that it has no digest.
	Routes bool
	Files  rpc.Files
	Tokens map[string]string // files of bearer tokens by the identities of servers
}

// Places of the cluster, as the flags name it. They make o.party a name if it is an index, and the client's own party if
// it is empty and there is one.
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

// Path is a path that was given, or that of a file in the cluster's directory.
func (o *Operator) Path(path string, elements ...string) string {
	if path != "" {
		return path
	}
	return filepath.Join(append([]string{ClusterDir(o.Cluster)}, elements...)...)
}

// placesOfClient are those of a client's configuration. With --roster that is the roster.
func (o *Operator) placesOfClient() (*places, error) {
	for _, f := range [][2]string{{"identity", o.identity}, {"ca", o.ca}, {"token-file", o.token}} {
		if f[1] != "" {
			return nil, rpc.Errorf(rpc.Invalid, "leave out one of them", "--client, which names its files, and --%s", f[0])
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

// nameParty makes an index of a party its name.
func (o *Operator) nameParty(r *config.Roster) {
	if _, named := r.Index(o.Party); named {
		return
	}
	if i, err := strconv.Atoi(o.Party); err == nil && i >= 0 && i < len(r.Parties) {
		o.Party = r.Parties[i].Name
	}
}

// Credentials are the client's certificate, if it has one, and the authority of the servers.
func (p *places) Credentials() (*rpc.Credentials, error) {
	c, err := rpc.LoadCredentials(p.Files)
	return c, MissingFile(err)
}

// Options are what it takes to connect to a server, beside the credentials.
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
