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

// CallTime is the timeout of a unary call.
const CallTime = 15 * time.Second

// ClusterVariable is the environment variable that names the cluster's directory if --cluster does
// not.
const ClusterVariable = "LODGE_CLUSTER"

// DevDir is the default directory of `lodge dev`. Other commands use it if it exists.
const DevDir = "lodge-dev"

// ClusterUsage is the usage text of --cluster.
const ClusterUsage = "directory of the cluster, for files that are not named (default: $" + ClusterVariable + ", or this directory, or its subdirectory " + DevDir + " if that contains a cluster)"

// ClusterDir returns the directory of the cluster. The flag may be empty.
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

// Operator holds the flags that say how a command connects to the processes of a cluster.
type Operator struct {
	Cluster, Roster, identity, ca, token, Client string
	Party                                        string // name or index; empty: the coordinator
}

// Flags adds the connection flags to cmd and its subcommands.
func (o *Operator) Flags(cmd *cobra.Command) {
	f := cmd.PersistentFlags()
	f.StringVar(&o.Cluster, "cluster", "", ClusterUsage)
	f.StringVar(&o.Client, "client", "", "configuration of the client, as in CLUSTER/clients, instead of the files below")
	f.StringVar(&o.Roster, "roster", "", "roster (default CLUSTER/roster.yaml)")
	f.StringVar(&o.identity, "identity", "", "the client's certificate; its key is in the same directory (default CLUSTER/clients/"+devnet.Operator+".pem, "+
		"and for a party the certificate of its own client, CLUSTER/clients/client-PARTY.pem)")
	f.StringVar(&o.ca, "ca", "", "authority that signed the servers' certificates (default CLUSTER/ca.pem)")
	f.StringVar(&o.token, "token-file", "", "file with a bearer token; it is read again for every call")
	f.Bool("json", false, "write JSON")
}

// PartyFlag adds the flag that selects a party.
func (o *Operator) PartyFlag(cmd *cobra.Command, usage string) {
	cmd.PersistentFlags().StringVar(&o.Party, "party", "", usage)
	Complete(cmd, "party", o.CompleteParties)
}

// server is a connection to a process.
type server struct {
	Conn          *grpc.ClientConn
	Name, address string      // name: for messages, such as "the coordinator" or "party p0"
	tls           *tls.Config // configuration of conn
}

// Address returns the address of the process.
func (s *server) Address() string { return s.address }

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
	Index  int // index of the party in the roster
}

// Dial returns a connection to the coordinator. The first call connects. The caller must close
// Conn.
func (o *Operator) Dial() (*Coordinator, error) {
	p, err := o.Places()
	if err != nil {
		return nil, err
	}
	if p.Roster.Coordinator.Address == "" {
		return nil, rpc.Errorf(rpc.Invalid, "add its address, or name another configuration with --client", "%s has no coordinator", o.Client)
	}
	s, err := p.connect("the coordinator", p.Roster.Coordinator.Address, p.Roster.Coordinator.Identity)
	if err != nil {
		return nil, err
	}
	return &Coordinator{coordinatorv1.NewCoordinatorServiceClient(s.Conn), stockv1.NewStockServiceClient(s.Conn), s}, nil
}

// DialParty returns a connection to the selected party. The caller must close Conn.
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

// MissingFile adds the next step to an error about a missing file. It returns other errors
// unchanged.
func MissingFile(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster, or --roster, --identity and --ca, or a client's configuration with --client; without --cluster, $"+ClusterVariable+" is used", "%v", err)
	}
	return err
}

// FromClient converts an error of the Go client to an *rpc.Error, which prints without the
// package's name. It returns other errors unchanged.
func FromClient(err error) error {
	if e := (*lodge.Error)(nil); errors.As(err, &e) {
		return &rpc.Error{Code: rpc.Code(e.Code), What: e.What, Next: e.Next}
	}
	return err
}

// Explain returns the typed error of a call. It adds a next step if the server did not name one.
func (s *server) Explain(err error) error {
	if err == nil {
		return nil
	}
	out := *Typed(err)
	out.What = OneLine(out.What)
	switch {
	case out.Next != "":
	case out.Code == rpc.Unavailable && s.refusesUs():
		out.Code, out.What = rpc.Unauthenticated, s.Name+" rejects the connection: "+s.wants()
		out.Next = "name a certificate with --identity that its client authority has signed"
		if len(s.tls.Certificates) == 0 {
			out.Next += "; a token without a certificate needs `oidc` in the server's configuration"
		}
	case out.Code == rpc.Unavailable || out.Code == rpc.TimedOut:
		out.Next = "see that " + s.Name + " runs and listens at " + s.address
	case out.Code == rpc.Unauthenticated || out.Code == rpc.Forbidden:
		out.Next = "name a certificate with --identity, a token with --token-file, or --client: the client must be in the configuration of " + s.Name
	}
	return &out
}

// refusalTime is the timeout for finding out why a server rejects the connection.
const refusalTime = 2 * time.Second

// refusesUs reports whether the server is up and ends the TLS handshake because of the certificate.
// A client learns of that from an alert after it has finished its own part of the handshake. gRPC
// may write before the alert arrives and then sees a broken pipe only.
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

// wants describes the missing credential.
func (s *server) wants() string {
	if len(s.tls.Certificates) == 0 {
		return "it requires a certificate"
	}
	return "it does not accept this certificate"
}

// Call connects to the coordinator, runs f with a deadline of CallTime, and explains its error.
func (o *Operator) Call(cmd *cobra.Command, f func(context.Context, *Coordinator) error) error {
	return call(cmd.Context(), CallTime, o.Dial, f)
}

// CallParty is like Call for the selected party.
func (o *Operator) CallParty(cmd *cobra.Command, f func(context.Context, *Party) error) error {
	return call(cmd.Context(), CallTime, o.DialParty, f)
}

// connection is a *Coordinator or a *Party.
type connection interface {
	Explain(err error) error
	close()
}

func (s *server) close() { _ = s.Conn.Close() }

// call connects with dial, runs f with a time limit, and explains its error.
func call[C connection](ctx context.Context, limit time.Duration, dial func() (C, error), f func(context.Context, C) error) error {
	c, err := dial()
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return c.Explain(f(ctx, c))
}

// RosterFile exists in every directory of a cluster.
const RosterFile = "roster.yaml"
