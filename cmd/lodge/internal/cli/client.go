package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/pflag"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// ClientFlags are the flags of commands that call all parties as one client, with the configuration
// of a client library.
type ClientFlags struct{ Cluster, Client string }

// Flags adds the flags and --json.
func (o *ClientFlags) Flags(f *pflag.FlagSet) {
	f.StringVar(&o.Cluster, "cluster", "", ClusterUsage)
	f.StringVar(&o.Client, "client", "", "configuration of the client (default CLUSTER/clients/"+devnet.App+".yaml)")
	f.Bool("json", false, "write JSON")
}

func (o *ClientFlags) CompleteParties() []string {
	return (&Operator{Cluster: o.Cluster, Client: o.Client}).CompleteParties()
}

// As connects as the client that the flags select, and calls f.
func As[C io.Closer](o *ClientFlags, dial func(lodge.Config) (C, error), f func(C, lodge.Config) error) error {
	config, err := lodge.Load((&Operator{Cluster: o.Cluster}).Path(o.Client, "clients", devnet.App+".yaml"))
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster or $"+ClusterVariable+", or a client's configuration with --client", "%v", err)
	}
	if err != nil {
		return FromClient(err)
	}
	c, err := dial(config)
	if err != nil {
		return FromClient(err)
	}
	defer c.Close()
	return FromClient(f(c, config))
}

// Read reads a file with the parser of a client library.
func Read[T any](path string, parse func(io.Reader) (T, error)) (x T, err error) {
	f, err := os.Open(path)
	if err != nil {
		return x, err
	}
	defer f.Close()
	if x, err = parse(f); err != nil {
		return x, fmt.Errorf("%s: %w", path, FromClient(err))
	}
	return x, nil
}
