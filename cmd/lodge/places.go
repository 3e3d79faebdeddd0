package main

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
	roster *config.Roster
	// routes says that the roster has no more than names, addresses and identities, so that it has no digest.
	routes bool
	files  rpc.Files
	tokens map[string]string // files of bearer tokens by the identities of servers
}

// places of the cluster, as the flags name it. They make o.party a name if it is an index, and the client's own party if
// it is empty and there is one.
func (o *operator) places() (*places, error) {
	if o.client != "" {
		return o.placesOfClient()
	}
	p := &places{tokens: map[string]string{}}
	path := o.or(o.roster, rosterFile)
	var err error
	if p.roster, err = config.LoadRoster(path); err != nil {
		return nil, absent(err)
	}
	o.nameParty(p.roster)
	client := devnet.Operator
	if o.party != "" {
		client = "client-" + o.party
	}
	p.files.CA = o.or(o.ca, "ca.pem")
	if o.token == "" || o.identity != "" {
		p.files.Certificate = o.or(o.identity, "clients", client+".pem")
		p.files.Key = strings.TrimSuffix(p.files.Certificate, ".pem") + ".key"
	}
	if o.token != "" {
		p.tokens[p.roster.Coordinator.Identity] = o.token
		for _, m := range p.roster.Parties {
			p.tokens[m.Identity] = o.token
		}
	}
	return p, nil
}

// or is a path that was given, or that of a file in the cluster's directory.
func (o *operator) or(path string, elements ...string) string {
	if path != "" {
		return path
	}
	return filepath.Join(append([]string{clusterDir(o.cluster)}, elements...)...)
}

// placesOfClient are those of a client's configuration. With --roster that is the roster.
func (o *operator) placesOfClient() (*places, error) {
	for _, f := range [][2]string{{"identity", o.identity}, {"ca", o.ca}, {"token-file", o.token}} {
		if f[1] != "" {
			return nil, rpc.Errorf(rpc.Invalid, "leave out one of them", "--client, which names its files, and --%s", f[0])
		}
	}
	c, err := lodge.Load(o.client)
	if err != nil {
		return nil, absent(plain(err))
	}
	p := &places{
		files:  rpc.Files{Certificate: c.TLS.Certificate, Key: c.TLS.Key, CA: c.TLS.CA},
		tokens: map[string]string{c.Coordinator.Identity: c.Coordinator.TokenFile},
		routes: true, roster: &config.Roster{Coordinator: config.Coordinator{Address: c.Coordinator.Address, Identity: c.Coordinator.Identity}},
	}
	for i, s := range c.Parties {
		p.roster.Parties = append(p.roster.Parties, config.Member{ID: i, Name: cmp.Or(s.Name, strconv.Itoa(i)), Address: s.Address, Identity: s.Identity})
		p.tokens[s.Identity] = s.TokenFile
	}
	if o.roster != "" {
		if p.roster, err = config.LoadRoster(o.roster); err != nil {
			return nil, absent(err)
		}
		p.routes = false
	}
	o.party = cmp.Or(o.party, c.Party)
	o.nameParty(p.roster)
	return p, nil
}

// nameParty makes an index of a party its name.
func (o *operator) nameParty(r *config.Roster) {
	if _, named := r.Index(o.party); named {
		return
	}
	if i, err := strconv.Atoi(o.party); err == nil && i >= 0 && i < len(r.Parties) {
		o.party = r.Parties[i].Name
	}
}

// credentials are the client's certificate, if it has one, and the authority of the servers.
func (p *places) credentials() (*rpc.Credentials, error) {
	c, err := rpc.LoadCredentials(p.files)
	return c, absent(err)
}

// options are what it takes to connect to a server, beside the credentials.
func (p *places) options(identity string) []rpc.DialOption {
	if file := p.tokens[identity]; file != "" {
		return []rpc.DialOption{rpc.WithToken(rpc.TokenFile(file))}
	}
	return nil
}

func (p *places) connect(name, address, identity string) (*server, error) {
	credentials, err := p.credentials()
	if err != nil {
		return nil, err
	}
	conn, err := rpc.Dial(address, identity, credentials, p.options(identity)...)
	if err != nil {
		return nil, err
	}
	return &server{conn, name, address, credentials.Client(identity)}, nil
}
