package cli

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

// CallTime is for a call that does not stream.
const CallTime = 15 * time.Second

// Connecting ends the description of every command that calls a process of a cluster.
const Connecting = "--cluster, or else $" + ClusterVariable + ", names a directory that `lodge init` or `lodge dev` wrote. Elsewhere, name\n" +
	"the roster, the client's certificate (its key has the same name with .key) and the authority of the servers'\n" +
	"certificates. Where a server takes bearer tokens, --token-file stands for the certificate; with --identity too, both\n" +
	"are presented. Or name a client's configuration, as libraries read it, with --client: it says all of this."

// ClusterVariable names the directory of the cluster where --cluster does not.
const ClusterVariable = "LODGE_CLUSTER"

// DevDir is where `lodge dev` writes its cluster if nothing else is said, and where that is looked for.
const DevDir = "lodge-dev"

// ClusterUsage is the usage of --cluster.
const ClusterUsage = "directory of the cluster, for the files that are not named (default: $" + ClusterVariable + ",\n" +
	"or this directory, or " + DevDir + " in it where that is one)"

// ClusterDir is the directory that is meant, by a flag that may be empty.
func ClusterDir(flag string) string {
	switch dir := os.Getenv(ClusterVariable); {
	case flag != "":
		return flag
	case dir != "":
		return dir
	case !Exists(RosterFile) && Exists(filepath.Join(DevDir, RosterFile)):
		return DevDir
	}
	return "."
}

// Operator is how commands reach the processes of a cluster, and how they write.
type Operator struct {
	Cluster, Roster, identity, ca, token, Client string
	Party                                        string // name or index; empty for the coordinator
	JSON                                         bool
}

// Flags adds the flags of a client to a command and to those below it.
func (o *Operator) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&o.Cluster, "cluster", "", ClusterUsage)
	f.StringVar(&o.Client, "client", "", "configuration of the client, as in CLUSTER/clients, in place of all of these files")
	f.StringVar(&o.Roster, "roster", "", "roster (default CLUSTER/roster.yaml)")
	f.StringVar(&o.identity, "identity", "", "the client's certificate; its key is beside it (default CLUSTER/clients/"+devnet.Operator+".pem,\n"+
		"and with a party that of its own client, CLUSTER/clients/client-PARTY.pem)")
	f.StringVar(&o.ca, "ca", "", "authority of the servers' certificates (default CLUSTER/ca.pem)")
	f.StringVar(&o.token, "token-file", "", "file with a bearer token, which is read again for every call")
	f.BoolVar(&o.JSON, "json", false, "write JSON")
}

// PartyFlag adds the flag that names a party.
func (o *Operator) PartyFlag(cmd *cobra.Command, usage string) {
	cmd.PersistentFlags().StringVar(&o.Party, "party", "", usage)
	Complete(cmd, "party", o.CompleteParties)
}

// server is a process that is called.
type server struct {
	Conn          *grpc.ClientConn
	Name, address string      // name: "the coordinator", "party p0"
	tls           *tls.Config // of conn
}

// Coordinator is a connection to a coordinator.
type Coordinator struct {
	coordinatorv1.CoordinatorServiceClient
	Stock stockv1.StockServiceClient
	*server
}

// Party is a connection to a party.
type Party struct {
	tuplesv1.TuplesServiceClient
	Keygen keygenv1.KeygenServiceClient
	*server
	Roster *config.Roster
	Index  int // of the party
}

// Dial prepares a connection to the coordinator. It connects with the first call.
func (o *Operator) Dial() (*Coordinator, error) {
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	if p.Roster.Coordinator.Address == "" {
		return nil, rpc.Errorf(rpc.Invalid, "add it, or name another configuration with --client", "%s names no coordinator", o.Client)
	}
	s, err := p.connect("the coordinator", p.Roster.Coordinator.Address, p.Roster.Coordinator.Identity)
	if err != nil {
		return nil, err
	}
	return &Coordinator{coordinatorv1.NewCoordinatorServiceClient(s.Conn), stockv1.NewStockServiceClient(s.Conn), s}, nil
}

// DialParty prepares a connection to the party that was named.
func (o *Operator) DialParty() (*Party, error) {
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	index, known := p.Roster.Index(o.Party)
	if !known {
		var names []string
		for _, m := range p.Roster.Parties {
			names = append(names, m.Name)
		}
		what := "no --party"
		if o.Party != "" {
			what = "--party " + strconv.Quote(o.Party)
		}
		return nil, rpc.Errorf(rpc.Invalid, "write one of "+strings.Join(names, ", "), "%s", what)
	}
	m := p.Roster.Parties[index]
	s, err := p.connect("party "+m.Name, m.Address, m.Identity)
	if err != nil {
		return nil, err
	}
	return &Party{tuplesv1.NewTuplesServiceClient(s.Conn), keygenv1.NewKeygenServiceClient(s.Conn), s, p.Roster, index}, nil
}

// MissingFile says what to do about a file that is not there.
func MissingFile(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster, or --roster, --identity and --ca, or a "+
			"client's configuration with --client; $"+ClusterVariable+" stands for --cluster", "%v", err)
	}
	return err
}

// FromClient makes an error of the Go client one of our own, which is not printed with the package's name; others stay.
func FromClient(err error) error {
	if e := (*lodge.Error)(nil); errors.As(err, &e) {
		return &rpc.Error{Code: rpc.Code(e.Code), What: e.What, Next: e.Next}
	}
	return err
}

// Explain gives the typed error of a call, with a next step where the server could not name one.
func (s *server) Explain(err error) error {
	if err == nil {
		return nil
	}
	out := *Typed(err)
	out.What = OneLine(out.What)
	switch {
	case out.Next != "":
	case out.Code == rpc.Unavailable && s.refusesUs():
		out.Code, out.What = rpc.Unauthenticated, s.Name+" refuses the connection: "+s.wants()
		out.Next = "name a certificate with --identity that its authority of clients has signed"
		if len(s.tls.Certificates) == 0 {
			out.Next += "; tokens alone are taken where `oidc` is configured"
		}
	case out.Code == rpc.Unavailable || out.Code == rpc.TimedOut:
		out.Next = "see that " + s.Name + " runs and listens at " + s.address
	case out.Code == rpc.Unauthenticated || out.Code == rpc.Forbidden:
		out.Next = "name a certificate with --identity, a token with --token-file, or --client: of a client in the configuration of " + s.Name
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

// Call connects to the coordinator, runs f within callTime and names its error.
func (o *Operator) Call(cmd *cobra.Command, f func(context.Context, *Coordinator) error) error {
	c, err := o.Dial()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), CallTime)
	defer cancel()
	return c.Explain(f(ctx, c))
}

// CallParty is call for the party that was named.
func (o *Operator) CallParty(cmd *cobra.Command, f func(context.Context, *Party) error) error {
	c, err := o.DialParty()
	if err != nil {
		return err
	}
	defer c.Conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), CallTime)
	defer cancel()
	return c.Explain(f(ctx, c))
}

// RosterFile exists in every directory of a cluster.
const RosterFile = "roster.yaml"
