package process

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// healthOptions are the flags of `lodge health`.
type healthOptions struct {
	address, config, cluster string
	live                     bool
	timeout                  time.Duration
}

// healthCommand returns `lodge health`.
func healthCommand() *cobra.Command {
	o := &healthOptions{}
	cmd := cli.Command("health", func(cmd *cobra.Command, _ []string) error { return o.run(cmd) })
	f := cmd.Flags()
	f.StringVar(&o.address, "address", config.HealthAddress, "address of the process")
	f.StringVar(&o.cluster, "cluster", "", cli.ClusterUsage+"; without --address and --config, each of its processes that has its configuration there is called")
	f.StringVar(&o.config, "config", "", "configuration of the process, whose health_listen is called instead of --address")
	f.BoolVar(&o.live, "live", false, "ask only whether the process is alive")
	f.DurationVar(&o.timeout, "timeout", 3*time.Second, "timeout")
	return cmd
}

func (o *healthOptions) run(cmd *cobra.Command) error {
	switch {
	case o.config != "" && cmd.Flags().Changed("address"):
		return cli.Invalid("remove one of the two flags", "both --config, which contains an address, and --address")
	case o.config != "":
		return o.checkConfigured(cmd, o.config, "")
	case !cmd.Flags().Changed("address"):
		if done, err := o.checkCluster(cmd); done {
			return err
		}
	}
	return o.check(cmd, o.address, "")
}

// checkCluster calls every process of a cluster whose configurations are all in one directory. It
// returns false if there is none.
func (o *healthOptions) checkCluster(cmd *cobra.Command) (bool, error) {
	dir := cli.ClusterDir(o.cluster)
	c, err := devnet.Open(dir)
	if errors.Is(err, fs.ErrNotExist) && o.cluster == "" {
		return false, nil
	} else if err != nil {
		return true, cli.Misconfigured(cli.MissingFile(err))
	}
	var failed []error
	for i, file := range append([]string{c.Coordinator}, c.Parties...) {
		name := config.CoordinatorName
		if i > 0 {
			name = c.Roster.Parties[i-1].Name
		}
		if err := o.checkConfigured(cmd, file, name); err != nil {
			failed = append(failed, err)
		}
	}
	if len(failed) > 1 { // one of them has the code
		e := *cli.Typed(failed[0])
		e.What = fmt.Sprintf("%d of %d processes are not well: %s", len(failed), 1+len(c.Parties), e.What)
		return true, &e
	}
	return true, errors.Join(failed...)
}

// checkConfigured calls the process with a configuration.
func (o *healthOptions) checkConfigured(cmd *cobra.Command, file, name string) error {
	address, err := config.HealthOf(file)
	if errors.Is(err, config.ErrNoHealth) {
		return cli.Invalid("write health_listen: "+config.HealthAddress, "%v", err)
	} else if err != nil {
		return cli.Misconfigured(err)
	}
	return o.check(cmd, address, name)
}

// check calls a process. The name may be empty.
func (o *healthOptions) check(cmd *cobra.Command, address, name string) error {
	conn, err := grpc.NewClient("passthrough:///"+address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return cli.Invalid("write host:port", "--address %s: %v", address, err)
	}
	defer conn.Close()
	ctx, cancel := context.WithTimeout(cmd.Context(), o.timeout)
	defer cancel()
	service, says := health.Ready, "ready"
	if o.live {
		service, says = health.Live, "live"
	}
	who := ""
	if name != "" {
		who = name + ": "
	}
	r, err := healthpb.NewHealthClient(conn).Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	switch st := status.Convert(err); {
	case err == nil && r.GetStatus() == healthpb.HealthCheckResponse_SERVING:
		_, err := fmt.Fprintln(cmd.OutOrStdout(), who+says)
		return err
	case err == nil:
		return rpc.Errorf(rpc.Unavailable, "see its log and `lodge status`: it starts or stops, or its store is in quarantine", "%snot %s", who, says)
	case st.Code() == codes.DeadlineExceeded:
		return rpc.Errorf(rpc.TimedOut, "check that the process is running", "%sno response from %s in %s", who, address, o.timeout)
	default:
		return rpc.Errorf(rpc.Unavailable, "check that the process is running, and that its configuration has health_listen: "+address, "%s%s", who, cli.OneLine(st.Message()))
	}
}
