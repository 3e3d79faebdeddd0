package console

import (
	"context"
	"net"

	consolev1 "github.com/lodge-mpc/lodge/proto/lodge/console/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// Gateway returns the methods that the server of a process must pass on for its console.
func Gateway(f config.Console) []string {
	if f.Listen == "" {
		return nil
	}
	return Methods
}

// Register prepares the console of a process and registers its service on the process's server.
// Open must be called once all other services are registered.
func Register(s *rpc.Server, o Options) (*Console, error) {
	o.Identify, o.Gateway = s.Identify, s.Gateway()
	c, err := New(o)
	if err != nil {
		return nil, err
	}
	consolev1.RegisterConsoleServiceServer(s, c)
	return c, nil
}

// Open starts to listen. The returned function serves until ctx is done; it does nothing if the
// process has no console.
func (c *Console) Open() (serve func(ctx context.Context), err error) {
	if !c.enabled() {
		return func(context.Context) {}, nil
	}
	l, err := net.Listen("tcp", c.opts.Config.Listen)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) {
		if err := c.Serve(ctx, l); err != nil {
			c.opts.Log.Error("console", "error", err)
		}
	}, nil
}
