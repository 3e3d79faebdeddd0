package try

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	gonet "net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	coordinatorv1 "github.com/lodge-mpc/lodge/proto/lodge/coordinator/v1"
	jobv1 "github.com/lodge-mpc/lodge/proto/lodge/job/v1"
	keygenv1 "github.com/lodge-mpc/lodge/proto/lodge/keygen/v1"
	stockv1 "github.com/lodge-mpc/lodge/proto/lodge/stock/v1"
	tuplesv1 "github.com/lodge-mpc/lodge/proto/lodge/tuples/v1"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
	"github.com/lodge-mpc/lodge/services/session/job"
)

// devOptions are the flags of `lodge dev`.
type devOptions struct {
	dir, params, field string
	parties, port      int
	dim                uint32
	stock              uint64
	given              func(flag string) bool
}

// DevReport is printed when the cluster of `lodge dev` is ready.
type DevReport struct {
	Dir       string   `json:"dir"`
	Clients   []string `json:"clients"` // configurations
	Epoch     uint64   `json:"epoch"`
	Available uint64   `json:"available"` // tuples
	Seconds   float64  `json:"seconds"`

	parties int // for the text
}

func devCommand() *cobra.Command {
	o := &devOptions{}
	cmd := cli.Command("dev", func(cmd *cobra.Command, _ []string) error {
		o.given = cmd.Flags().Changed
		return o.run(cmd)
	})
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", cli.DevDir, "directory of the cluster")
	f.IntVar(&o.parties, "parties", 3, "number of parties, of a new cluster")
	f.StringVar(&o.params, "params", params.Default, "parameter set, of a new cluster")
	f.IntVar(&o.port, "port", 0, "port of the coordinator of a new cluster; party i has this port + 1 + i, and the consoles the ports after these; 0 selects free ports")
	f.Uint32Var(&o.dim, "dim", 0, "largest block dimension of matrices that new keys serve, a power of two; 0: none")
	f.StringVar(&o.field, "field", "p128", "field of the triples that are kept in stock")
	f.Uint64Var(&o.stock, "stock", 8000, "triples to keep in stock; 0 sets no policy")
	f.Bool("json", false, "say as JSON when the cluster can be used")
	return cmd
}

func (o *devOptions) run(cmd *cobra.Command) (err error) {
	start, ctx := time.Now(), cmd.Context()
	if err := o.check(); err != nil {
		return err
	}
	lock, err := lockDir(o.dir)
	if err != nil {
		return err
	}
	defer lock.release()
	net, err := o.open()
	if err != nil {
		return err
	}
	if err := lock.sign(); err != nil {
		return err
	}
	p := terminal.NewProgress(cmd.ErrOrStderr())
	p.Say("starting a coordinator and %d parties", len(net.Parties))
	c, err := cluster.Open(ctx, p, net)
	if err != nil {
		return o.interrupted(ctx, err)
	}
	defer c.Stop()
	tending, end := context.WithCancel(ctx)
	tended := make(chan struct{})
	var down error
	go func() {
		defer close(tended)
		down = c.Tend(tending, devRestarts)
	}()
	defer func() {
		end()
		<-tended // before the processes are stopped
	}()
	r := DevReport{Dir: o.dir, Clients: net.Clients, parties: len(net.Parties)}
	if err := o.fill(ctx, c, &r); err != nil {
		return o.interrupted(ctx, err)
	}
	r.Seconds = time.Since(start).Seconds()
	c.Progress.Say("ready")
	c.Progress.Done()
	if err := o.print(cmd, &r); err != nil {
		return err
	}
	<-tended
	return down
}

// fill makes keys and stock if there are none.
func (o *devOptions) fill(ctx context.Context, c *cluster.Cluster, r *DevReport) (err error) {
	set := c.Net.Params
	made := false
	if r.Epoch, made, err = keyEpoch(ctx, c, set, o.dim); err != nil {
		return err
	}
	if o.dim > 0 && !made {
		c.Progress.Note("--dim %d applies to new keys, but epoch %d exists: lodge jobs submit --kind keys --dim %[1]d --cluster %[3]s", o.dim, r.Epoch, o.dir)
	}
	r.Available, err = stockUp(ctx, c, &stockv1.Policy{
		Class: &tuplesv1.Class{Tenant: devnet.Tenant, Kind: jobv1.Kind_KIND_SCALAR, Params: set, Field: o.field},
		Low:   o.stock / 2, High: o.stock, Batch: min(o.stock, 1<<20),
	})
	return err
}

// interrupted returns no error after an interrupt, which is the normal end.
func (o *devOptions) interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// check rejects invalid flags.
func (o *devOptions) check() error {
	switch last := math.MaxUint16 - 2*o.parties - 1; {
	case o.parties < 2 || o.parties > config.MaxParties:
		return cli.Invalid(fmt.Sprintf("a cluster has 2 to %d", config.MaxParties), "--parties %d", o.parties)
	case o.port < 0 || o.port > last:
		return cli.Invalid(fmt.Sprintf("write 0, or 1 to %d: every party and every console has one more", last), "--port %d", o.port)
	case o.dim&(o.dim-1) != 0 || o.dim > demoMaxDim:
		return cli.Invalid(fmt.Sprintf("write a power of two up to %d", demoMaxDim), "--dim %d", o.dim)
	}
	set, err := params.Lookup(o.params)
	if err == nil && !cli.Exists(filepath.Join(o.dir, cli.RosterFile)) {
		_, err = o.plan(set, o.parties)
	}
	return err
}

// plan returns an error if the engine cannot make the triples of the stock with this number of
// parties.
func (o *devOptions) plan(set *params.Set, parties int) (*triple.Plan, error) {
	return triple.NewPlan(set, o.field, parties, kind.Scalar, kind.Shape{}, 1, 1, 1)
}

// open opens the cluster in the directory, or writes a new one.
func (o *devOptions) open() (*devnet.Cluster, error) {
	_, err := os.Stat(filepath.Join(o.dir, cli.RosterFile))
	if err == nil {
		net, err := devnet.Open(o.dir)
		if err != nil {
			return nil, err
		}
		return net, o.fits(net)
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s, err := params.Lookup(o.params)
	if err != nil {
		return nil, err
	}
	return devnet.Write(o.dir, devnet.Options{Parties: o.parties, Port: o.port, Params: []string{o.params}, Dev: true, Insecure: s.Insecure, MaxMemory: cluster.DefaultMemory, Console: true})
}

// fits rejects flags that contradict the existing cluster.
func (o *devOptions) fits(net *devnet.Cluster) error {
	differs := func(flag string, wanted, is any) error {
		return rpc.Errorf(rpc.Conflict, fmt.Sprintf("remove %s, or leave out --%s", o.dir, flag), "--%s %v, and the cluster in %s has %v", flag, wanted, o.dir, is)
	}
	if o.given("parties") && o.parties != len(net.Parties) {
		return differs("parties", o.parties, len(net.Parties))
	}
	if o.given("params") && o.params != net.Params {
		return differs("params", o.params, net.Params)
	}
	if _, port, err := gonet.SplitHostPort(net.Roster.Coordinator.Address); o.port != 0 && err == nil && port != strconv.Itoa(o.port) {
		return differs("port", o.port, port)
	}
	set, err := params.Lookup(net.Params)
	if err != nil {
		return err
	}
	_, err = o.plan(set, len(net.Parties))
	return err
}

// keyEpoch returns the newest epoch of keys for triples. If there is none, the parties generate
// keys.
func keyEpoch(ctx context.Context, c *cluster.Cluster, set string, dim uint32) (newest uint64, made bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Hour)
	defer cancel()
	r, err := keygenv1.NewKeygenServiceClient(c.Clients[0]).ListEpochs(ctx, &keygenv1.ListEpochsRequest{})
	if err != nil {
		return 0, false, rpc.FromError(err)
	}
	for _, e := range r.GetEpochs() {
		if e.GetState() == keygenv1.EpochState_EPOCH_STATE_ACTIVE && e.GetPurpose() == jobv1.Purpose_PURPOSE_TRIPLES && e.GetParams() == set {
			newest = max(newest, e.GetEpoch())
		}
	}
	if newest > 0 {
		return newest, false, nil
	}
	j, err := c.Job(ctx, &coordinatorv1.JobRequest{
		Kind: jobv1.Kind_KIND_KEYS, Params: set, Dim: dim, Purpose: jobv1.Purpose_PURPOSE_TRIPLES,
	})
	return j.GetEpoch(), true, err
}

// stockUp sets a stock policy, waits until the stock is not empty, and returns the number of
// available tuples.
func stockUp(ctx context.Context, c *cluster.Cluster, p *stockv1.Policy) (available uint64, err error) {
	if p.GetHigh() == 0 {
		return 0, nil
	}
	p.Low = max(1, p.GetLow())
	client := stockv1.NewStockServiceClient(c.Operator)
	if _, err := client.SetPolicy(ctx, &stockv1.SetPolicyRequest{Policy: p}); err != nil {
		return 0, rpc.FromError(err)
	}
	c.Progress.Say("the parties make %s triples over %s", job.KindName(p.GetClass().GetKind()), p.GetClass().GetField())
	stream, err := client.WatchStock(ctx, &stockv1.WatchStockRequest{})
	if err != nil {
		return 0, rpc.FromError(err)
	}
	for {
		r, err := stream.Recv()
		if err != nil {
			return 0, rpc.FromError(err)
		}
		for _, s := range r.GetStock() {
			if x := s.GetClass(); x.GetKind() != p.GetClass().GetKind() || x.GetField() != p.GetClass().GetField() {
				continue
			}
			if s.GetAvailable() > 0 {
				return s.GetAvailable(), nil
			}
			if s.GetHeldBack() != "" {
				c.Progress.Say("nothing is made: %s", s.GetHeldBack())
			}
		}
	}
}

func (o *devOptions) print(cmd *cobra.Command, r *DevReport) error {
	at := " --cluster " + o.dir
	if cli.ClusterDir("") == o.dir {
		at = ""
	}
	return cli.Print(cmd, r, `
A coordinator and %d parties run, with keys of epoch %d and %d triples over %s in stock. Ctrl-C stops them.

  what there is               lodge stock%[7]s
  in a browser                lodge console open%[7]s
  other kinds                 lodge jobs submit --help
  shares in Python and Go     docs/start/quickstart.md, with %[5]s/clients/%[6]s.yaml for party 0
`, r.parties, r.Epoch, r.Available, o.field, o.dir, devnet.ClientName(0), at)
}
