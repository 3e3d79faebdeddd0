package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"

	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// join takes parties and set from a cluster that runs already, and refuses flags that say otherwise.
func (o *demoOptions) join(given func(flag string) bool) error {
	if o.cluster == "" {
		return nil
	}
	for _, flag := range []string{"parties", "params", "keep"} {
		if given(flag) {
			return invalid("leave out one of them", "--%s, and --cluster, whose cluster is there", flag)
		}
	}
	c, err := lodge.Load(filepath.Join(o.cluster, "clients", devnet.Operator+".yaml"))
	if err != nil {
		return absent(plain(err))
	}
	o.parties, o.params = len(c.Parties), c.Params
	return nil
}

// begin starts a cluster, or connects to the one that is named.
func (o *demoOptions) begin(cmd *cobra.Command) (*cluster, error) {
	if o.cluster == "" {
		return startCluster(cmd, clusterOptions{parties: o.parties, set: o.params, keep: o.keep, noSacrifice: o.noSacrifice})
	}
	return attach(cmd, o.cluster)
}

// attach connects to the processes of a cluster as all of its parties' clients, which only they can be that have the
// secrets of all: those of a cluster for development.
func attach(cmd *cobra.Command, dir string) (_ *cluster, err error) {
	roster, err := config.LoadRoster(filepath.Join(dir, rosterFile))
	if err != nil {
		return nil, absent(err)
	}
	work, err := os.MkdirTemp("", "lodge-demo-")
	if err != nil {
		return nil, err
	}
	c := &cluster{dir: work, net: &devnet.Cluster{Dir: dir, Roster: roster}, progress: newProgress(cmd.ErrOrStderr())}
	defer func() {
		if err != nil {
			c.stop()
		}
	}()
	return c, c.connect(cmd.Context(), func(int) *process { return &process{name: "a process of " + dir} })
}

// connect makes connections as the operator and as the client of each party, and waits until all processes serve: the
// coordinator's, which is the first, and then the parties'.
func (c *cluster) connect(ctx context.Context, of func(i int) *process) (err error) {
	r := c.net.Roster
	if c.operator, err = dial(c.net, devnet.Operator, r.Coordinator.Address, r.Coordinator.Identity); err != nil {
		return absent(err)
	}
	for i, m := range r.Parties {
		conn, err := dial(c.net, devnet.ClientName(i), m.Address, m.Identity)
		if err != nil {
			return absent(err)
		}
		c.clients = append(c.clients, conn)
	}
	for i, conn := range append([]*grpc.ClientConn{c.operator}, c.clients...) {
		if err := c.ready(ctx, of(i), conn); err != nil {
			return err
		}
	}
	return nil
}
