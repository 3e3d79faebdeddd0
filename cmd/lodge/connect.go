package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/config"
	"github.com/lodge-mpc/lodge/services/devnet"
	"github.com/lodge-mpc/lodge/services/rpc"
)

// callTime is for a call that does not stream.
const callTime = 15 * time.Second

// connecting ends the description of every command that calls a process of a cluster.
const connecting = "--cluster names a directory that `lodge init` wrote. Elsewhere, name the roster, the client's certificate (its key\n" +
	"has the same name with .key) and the authority of the servers' certificates. Where a server takes bearer tokens,\n" +
	"--token-file stands for the certificate; with --identity too, both are presented."

// operator is how commands reach the processes of a cluster, and how they write.
type operator struct {
	cluster, roster, identity, ca, token string
	party                                string // name or index; empty for the coordinator
	json                                 bool
}

// flags adds the flags of a client to a command and to those below it.
func (o *operator) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&o.cluster, "cluster", ".", "directory of the cluster, for the files that are not named")
	f.StringVar(&o.roster, "roster", "", "roster (default CLUSTER/roster.yaml)")
	f.StringVar(&o.identity, "identity", "", "the client's certificate; its key is beside it (default CLUSTER/clients/"+devnet.Operator+".pem,\n"+
		"and with a party that of its own client, CLUSTER/clients/client-PARTY.pem)")
	f.StringVar(&o.ca, "ca", "", "authority of the servers' certificates (default CLUSTER/ca.pem)")
	f.StringVar(&o.token, "token-file", "", "file with a bearer token, which is read again for every call")
	f.BoolVar(&o.json, "json", false, "write JSON")
}

// partyFlag adds the flag that names a party.
func (o *operator) partyFlag(cmd *cobra.Command, usage string) {
	cmd.PersistentFlags().StringVar(&o.party, "party", "", usage)
	complete(cmd, "party", o.completeParties)
}

// files fills in the paths that follow from the cluster's directory.
func (o *operator) files() (roster string, f rpc.Files) {
	or := func(path string, elements ...string) string {
		if path != "" {
			return path
		}
		return filepath.Join(append([]string{o.cluster}, elements...)...)
	}
	client := devnet.Operator
	if o.party != "" {
		client = "client-" + o.party
	}
	f.CA = or(o.ca, "ca.pem")
	if o.token == "" || o.identity != "" {
		f.Certificate = or(o.identity, "clients", client+".pem")
		f.Key = strings.TrimSuffix(f.Certificate, ".pem") + ".key"
	}
	return or(o.roster, "roster.yaml"), f
}

// server is a process that is called.
type server struct {
	conn          *grpc.ClientConn
	name, address string // name: "the coordinator", "party p0"
}

// client is a connection to a coordinator.
type client struct {
	coordinatorv1.CoordinatorServiceClient
	stock stockv1.StockServiceClient
	*server
}

// partyClient is a connection to a party.
type partyClient struct {
	tuplesv1.TuplesServiceClient
	keygen keygenv1.KeygenServiceClient
	*server
	roster *config.Roster
	index  int // of the party
}

// dial prepares a connection to the coordinator. It connects with the first call.
func (o *operator) dial() (*client, error) {
	r, err := o.loadRoster()
	if err != nil {
		return nil, err
	}
	s, err := o.connect("the coordinator", r.Coordinator.Address, r.Coordinator.Identity)
	if err != nil {
		return nil, err
	}
	return &client{coordinatorv1.NewCoordinatorServiceClient(s.conn), stockv1.NewStockServiceClient(s.conn), s}, nil
}

// dialParty prepares a connection to the party that was named.
func (o *operator) dialParty() (*partyClient, error) {
	r, err := o.loadRoster()
	if err != nil {
		return nil, err
	}
	var names []string
	index := -1
	for i, m := range r.Parties {
		names = append(names, m.Name)
		if o.party == m.Name || o.party == strconv.Itoa(i) {
			index = i
		}
	}
	if index < 0 {
		what := "no --party"
		if o.party != "" {
			what = "--party " + strconv.Quote(o.party)
		}
		return nil, rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(names, ", "), "%s", what)
	}
	m := r.Parties[index]
	o.party = m.Name
	s, err := o.connect("party "+m.Name, m.Address, m.Identity)
	if err != nil {
		return nil, err
	}
	return &partyClient{tuplesv1.NewTuplesServiceClient(s.conn), keygenv1.NewKeygenServiceClient(s.conn), s, r, index}, nil
}

func (o *operator) loadRoster() (*config.Roster, error) {
	path, _ := o.files()
	r, err := config.LoadRoster(path)
	if err != nil {
		return nil, absent(err)
	}
	return r, nil
}

func (o *operator) connect(name, address, identity string) (*server, error) {
	_, files := o.files()
	credentials, err := rpc.LoadCredentials(files)
	if err != nil {
		return nil, absent(err)
	}
	var more []rpc.DialOption
	if o.token != "" {
		more = append(more, rpc.WithToken(rpc.TokenFile(o.token)))
	}
	conn, err := rpc.Dial(address, identity, credentials, more...)
	if err != nil {
		return nil, err
	}
	return &server{conn, name, address}, nil
}

// absent says what to do about a file that is not there.
func absent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster, or --roster, --identity and --ca", "%v", err)
	}
	return err
}

// explain gives the typed error of a call, with a next step where the server could not name one.
func (s *server) explain(err error) error {
	if err == nil {
		return nil
	}
	var out rpc.Error
	if e := (*lodge.Error)(nil); errors.As(err, &e) {
		out = rpc.Error{Code: rpc.Code(e.Code), What: e.What, Next: e.Next}
	} else {
		out = *rpc.FromError(err)
	}
	out.What = oneLine(out.What)
	switch {
	case out.Next != "":
	case out.Code == rpc.Unavailable || out.Code == rpc.TimedOut:
		out.Next = "see that " + s.name + " runs and listens at " + s.address
	case out.Code == rpc.Unauthenticated || out.Code == rpc.Forbidden:
		out.Next = "name a certificate with --identity, or a token with --token-file, of a client in the configuration of " + s.name
	}
	return &out
}

// call connects to the coordinator, runs f within callTime and names its error.
func (o *operator) call(cmd *cobra.Command, f func(context.Context, *client) error) error {
	c, err := o.dial()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), callTime)
	defer cancel()
	return c.explain(f(ctx, c))
}

// callParty is call for the party that was named.
func (o *operator) callParty(cmd *cobra.Command, f func(context.Context, *partyClient) error) error {
	c, err := o.dialParty()
	if err != nil {
		return err
	}
	defer c.conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), callTime)
	defer cancel()
	return c.explain(f(ctx, c))
}
