package process

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/health"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// healthOptions are the flags of `lodge health`.
type healthOptions struct {
	address, config string
	live            bool
	timeout         time.Duration
}

// healthCommand returns `lodge health`.
func healthCommand() *cobra.Command {
	o := &healthOptions{}
	cmd := cli.Command("health", func(cmd *cobra.Command, _ []string) error { return o.run(cmd) })
	f := cmd.Flags()
	f.StringVar(&o.address, "address", config.HealthAddress, "address of the process")
	f.StringVar(&o.config, "config", "", "configuration of the process, whose health_listen is called instead of --address")
	f.BoolVar(&o.live, "live", false, "ask only whether the process is alive")
	f.DurationVar(&o.timeout, "timeout", 3*time.Second, "timeout")
	return cmd
}

func (o *healthOptions) run(cmd *cobra.Command) error {
	if o.config != "" {
		if cmd.Flags().Changed("address") {
			return cli.Invalid("remove one of the two flags", "both --config, which contains an address, and --address")
		}
		var err error
		if o.address, err = config.HealthOf(o.config); errors.Is(err, config.ErrNoHealth) {
			return cli.Invalid("write health_listen: "+config.HealthAddress, "%v", err)
		} else if err != nil {
			return cli.Misconfigured(err)
		}
	}
	conn, err := grpc.NewClient("passthrough:///"+o.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return cli.Invalid("write host:port", "--address %s: %v", o.address, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	service, says := health.Ready, "ready"
	if o.live {
		service, says = health.Live, "live"
	}
	r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	switch st := status.Convert(err); {
	case err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), says)
		return err
	case err == nil:
		return rpc.Errorf(rpc.Unavailable, "see its log and `lodge status`: it starts or stops, or its store is in quarantine", "not %s", says)
	case st.Code() == codes.DeadlineExceeded:
		return rpc.Errorf(rpc.TimedOut, "check that the process is running", "no response from %s in %s", o.address, o.timeout)
	default:
		return rpc.Errorf(rpc.Unavailable, "check that the process is running, and that its configuration has health_listen: "+o.address, "%s", cli.OneLine(st.Message()))
	}
}
