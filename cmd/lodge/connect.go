package main

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
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
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// callTime is for a call that does not stream.
const callTime = 15 * time.Second

// connecting ends the description of every command that calls a process of a cluster.
const connecting = "--cluster, or else $" + clusterVariable + ", names a directory that `lodge init` or `lodge dev` wrote. Elsewhere, name\n" +
	"the roster, the client's certificate (its key has the same name with .key) and the authority of the servers'\n" +
	"certificates. Where a server takes bearer tokens, --token-file stands for the certificate; with --identity too, both\n" +
	"are presented. Or name a client's configuration, as libraries read it, with --client: it says all of this."

// clusterVariable names the directory of the cluster where --cluster does not.
const clusterVariable = "LODGE_CLUSTER"

// devDir is where `lodge dev` writes its cluster if nothing else is said, and where that is looked for.
const devDir = "lodge-dev"

// clusterUsage is the usage of --cluster.
const clusterUsage = "directory of the cluster, for the files that are not named (default: $" + clusterVariable + ",\n" +
	"or this directory, or " + devDir + " in it where that is one)"

// clusterDir is the directory that is meant, by a flag that may be empty.
func clusterDir(flag string) string {
	switch dir := os.Getenv(clusterVariable); {
	case flag != "":
		return flag
	case dir != "":
		return dir
	case !exists(rosterFile) && exists(filepath.Join(devDir, rosterFile)):
		return devDir
	}
	return "."
}

// operator is how commands reach the processes of a cluster, and how they write.
type operator struct {
	cluster, roster, identity, ca, token, client string
	party                                        string // name or index; empty for the coordinator
	json                                         bool
}

// flags adds the flags of a client to a command and to those below it.
func (o *operator) flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&o.cluster, "cluster", "", clusterUsage)
	f.StringVar(&o.client, "client", "", "configuration of the client, as in CLUSTER/clients, in place of all of these files")
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

// server is a process that is called.
type server struct {
	conn          *grpc.ClientConn
	name, address string      // name: "the coordinator", "party p0"
	tls           *tls.Config // of conn
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
	p, err := o.places()
	if err != nil {
		return nil, err
	}
	if p.roster.Coordinator.Address == "" {
		return nil, rpc.Errorf(rpc.Invalid, "add it, or name another configuration with --client", "%s names no coordinator", o.client)
	}
	s, err := p.connect("the coordinator", p.roster.Coordinator.Address, p.roster.Coordinator.Identity)
	if err != nil {
		return nil, err
	}
	return &client{coordinatorv1.NewCoordinatorServiceClient(s.conn), stockv1.NewStockServiceClient(s.conn), s}, nil
}

// dialParty prepares a connection to the party that was named.
func (o *operator) dialParty() (*partyClient, error) {
	p, err := o.places()
	if err != nil {
		return nil, err
	}
	index, known := p.roster.Index(o.party)
	if !known {
		var names []string
		for _, m := range p.roster.Parties {
			names = append(names, m.Name)
		}
		what := "no --party"
		if o.party != "" {
			what = "--party " + strconv.Quote(o.party)
		}
		return nil, rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(names, ", "), "%s", what)
	}
	m := p.roster.Parties[index]
	s, err := p.connect("party "+m.Name, m.Address, m.Identity)
	if err != nil {
		return nil, err
	}
	return &partyClient{tuplesv1.NewTuplesServiceClient(s.conn), keygenv1.NewKeygenServiceClient(s.conn), s, p.roster, index}, nil
}

// absent says what to do about a file that is not there.
func absent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster, or --roster, --identity and --ca, or a "+
			"client's configuration with --client; $"+clusterVariable+" stands for --cluster", "%v", err)
	}
	return err
}

// plain makes an error of the Go client one of our own, which is not printed with the package's name; others stay.
func plain(err error) error {
	if e := (*lodge.Error)(nil); errors.As(err, &e) {
		return &rpc.Error{Code: rpc.Code(e.Code), What: e.What, Next: e.Next}
	}
	return err
}

// explain gives the typed error of a call, with a next step where the server could not name one.
func (s *server) explain(err error) error {
	if err == nil {
		return nil
	}
	out := *typed(err)
	out.What = oneLine(out.What)
	switch {
	case out.Next != "":
	case out.Code == rpc.Unavailable && s.refusesUs():
		out.Code, out.What = rpc.Unauthenticated, s.name+" refuses the connection: "+s.wants()
		out.Next = "name a certificate with --identity that its authority of clients has signed"
		if len(s.tls.Certificates) == 0 {
			out.Next += "; tokens alone are taken where `oidc` is configured"
		}
	case out.Code == rpc.Unavailable || out.Code == rpc.TimedOut:
		out.Next = "see that " + s.name + " runs and listens at " + s.address
	case out.Code == rpc.Unauthenticated || out.Code == rpc.Forbidden:
		out.Next = "name a certificate with --identity, a token with --token-file, or --client: of a client in the configuration of " + s.name
	}
	return &out
}

// refusalTime bounds the look at why a connection is refused.
const refusalTime = 2 * time.Second

// refusesUs reports whether the server answers and ends the handshake for the sake of the certificate. A client learns
// that from an alert after its own part of the handshake, which gRPC may overtake by writing: it then knows of a broken pipe.
func (s *server) refusesUs() bool {
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: refusalTime}, Config: s.tls}
	ctx, cancel := context.WithTimeout(context.Background(), refusalTime)
	defer cancel()
	c, err := d.DialContext(ctx, "tcp", s.address)
	if err == nil {
		defer c.Close()
		if err = c.SetReadDeadline(time.Now().Add(refusalTime)); err == nil {
			_, err = c.Read(make([]byte, 1))
		}
	}
	alert := (*net.OpError)(nil)
	return errors.As(err, &alert) && alert.Op == "remote error"
}

// wants is what the server misses.
func (s *server) wants() string {
	if len(s.tls.Certificates) == 0 {
		return "it wants a certificate"
	}
	return "it does not accept this certificate"
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
