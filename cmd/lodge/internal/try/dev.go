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
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/internal/cluster"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/bgv"
	"github.com/lodge-mpc/lodge/engine/catalogue"
	"github.com/lodge-mpc/lodge/engine/kind"
	"github.com/lodge-mpc/lodge/engine/lwe"
	"github.com/lodge-mpc/lodge/engine/multikey"
	"github.com/lodge-mpc/lodge/engine/params"
	"github.com/lodge-mpc/lodge/engine/protocol/triple"
	"github.com/lodge-mpc/lodge/services/host/config"
	"github.com/lodge-mpc/lodge/services/host/plan"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// devOptions are the flags of `lodge dev`.
type devOptions struct {
	dir, field, multikey string
	params               []string
	parties, port        int
	dim                  uint32
	stock                uint64
	minimal              bool
	given                func(flag string) bool
}

// DevReport is printed when the cluster of `lodge dev` is ready.
type DevReport struct {
	Dir       string     `json:"dir"`
	Clients   []string   `json:"clients"` // configurations
	Epoch     uint64     `json:"epoch"`
	Available uint64     `json:"available"`           // tuples
	Keys      []DevEpoch `json:"threshold,omitempty"` // threshold keys and the group for multi-key ciphertexts
	Metrics   []string   `json:"metrics,omitempty"`   // addresses
	Seconds   float64    `json:"seconds"`

	parties int // for the text
}

// DevEpoch is an epoch of threshold keys.
type DevEpoch struct {
	Epoch  uint64 `json:"epoch"`
	Params string `json:"params"`
}

func devCommand() *cobra.Command {
	o := &devOptions{}
	cmd := cli.Command("dev", func(cmd *cobra.Command, _ []string) error {
		o.given = cmd.Flags().Changed
		return o.run(cmd)
	})
	o.flags(cmd)
	cmd.Flags().Bool("json", false, "say as JSON when the cluster can be used")
	return cmd
}

func (o *devOptions) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.dir, "dir", cli.DevDir, "directory of the cluster")
	f.IntVar(&o.parties, "parties", 3, "number of parties, of a new cluster")
	f.StringSliceVar(&o.params, "params", []string{params.Default, bgv.Default, lwe.Default}, "parameter sets of a new cluster: for triples, and for threshold keys")
	f.StringVar(&o.multikey, "multikey", multikey.Default, "parameter set of multi-key ciphertexts, of a new cluster")
	f.IntVar(&o.port, "port", 0, "port of the coordinator of a new cluster; party i has this port + 1 + i; 0 selects free ports")
	f.Uint32Var(&o.dim, "dim", devDim, "largest block dimension of matrices that new keys serve, a power of two; 0: none")
	f.StringVar(&o.field, "field", "p128", "field of the tuples that are kept in stock")
	f.Uint64Var(&o.stock, "stock", 8000, "triples to keep in stock; 0 sets no policies")
	f.BoolVar(&o.minimal, "minimal", false, "make only keys and stock of scalar triples, and serve no metrics")
}

// reduce removes from the flags what --minimal leaves out.
func (o *devOptions) reduce() {
	if !o.minimal {
		return
	}
	if !o.given("params") {
		o.params = o.params[:1]
	}
	if !o.given("multikey") {
		o.multikey = ""
	}
	if !o.given("dim") {
		o.dim = 0
	}
}

func (o *devOptions) run(cmd *cobra.Command) error {
	first := func(r *DevReport) error { return o.printFirst(cmd, r) }
	return o.with(cmd, first, func(r *DevReport) error { return o.print(cmd, r) }, false)
}

// with runs the cluster. It calls first when scalar triples are in stock, and use when everything
// is ready. Then it stops the cluster, if stop is set, or else waits for an interrupt.
func (o *devOptions) with(cmd *cobra.Command, first, use func(*DevReport) error, stop bool) (err error) {
	start, ctx := time.Now(), cmd.Context()
	if o.reduce(); len(o.params) == 0 {
		return cli.Invalid("name a set for triples", "--params is empty")
	}
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
	r := DevReport{Dir: o.dir, Clients: net.Clients, Metrics: net.Metrics, parties: len(net.Parties)}
	if err := o.fill(ctx, c, &r, first); err != nil {
		return o.interrupted(ctx, err)
	}
	r.Seconds = time.Since(start).Seconds()
	c.Progress.Say("ready")
	c.Progress.Done()
	if err := use(&r); err != nil || stop {
		return err
	}
	<-tended
	return down
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
	set, err := params.Lookup(o.params[0])
	if err != nil {
		return err
	}
	sets := o.params
	if o.multikey != "" {
		sets = append(slices.Clone(sets), o.multikey)
		if _, err := catalogue.Multikey(o.multikey); err != nil {
			return err
		}
	}
	for _, name := range sets {
		if _, err := plan.Lookup(name); err != nil {
			return err
		}
	}
	if err := cli.RefuseLegacy(sets...); err != nil || cli.Exists(filepath.Join(o.dir, cli.RosterFile)) {
		return err
	}
	_, err = o.plan(set, o.parties)
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
	s, err := params.Lookup(o.params[0])
	if err != nil {
		return nil, err
	}
	return devnet.Write(o.dir, devnet.Options{
		Parties: o.parties, Port: o.port, Params: o.params, Multikey: o.multikey, Dev: true, Insecure: s.Insecure, MaxMemory: cluster.DefaultMemory,
		Console: true, Metrics: !o.minimal, Health: !o.minimal,
	})
}

// fits rejects flags that contradict the existing cluster.
func (o *devOptions) fits(net *devnet.Cluster) error {
	differs := func(flag string, wanted, is any) error {
		return rpc.Errorf(rpc.Conflict, fmt.Sprintf("remove %s, or leave out --%s", o.dir, flag), "--%s %v, and the cluster in %s has %v", flag, wanted, o.dir, is)
	}
	if o.given("parties") && o.parties != len(net.Parties) {
		return differs("parties", o.parties, len(net.Parties))
	}
	of := func(sets []string) string { return strings.Join(sets, ",") }
	pinned := slices.DeleteFunc(slices.Clone(net.Sets), func(s string) bool { return s == o.multikey && !slices.Contains(o.params, s) })
	if o.given("params") && of(o.params) != of(pinned) {
		return differs("params", of(o.params), of(pinned))
	}
	var context config.Multikey
	if net.Roster.Multikey != nil {
		context = *net.Roster.Multikey
	}
	if o.given("multikey") && context.Set != o.multikey {
		return differs("multikey", o.multikey, context.Set)
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

// at returns the flag with which other commands find the cluster, if they need one.
func (o *devOptions) at(flag string) string {
	if cli.ClusterDir("") == o.dir {
		return ""
	}
	return " --" + flag + " " + o.dir
}

// printFirst says that the cluster has triples.
func (o *devOptions) printFirst(cmd *cobra.Command, r *DevReport) error {
	if cli.JSON(cmd) {
		return nil // the record is written when everything is ready
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), `
A coordinator and %d parties run, with keys of epoch %d and %d triples over %s in stock. Ctrl-C stops them.

  what there is               lodge stock%[7]s
  whether all are well        lodge health%[7]s, lodge status%[7]s
  in a browser                lodge console open%[7]s
  shares in Python and Go     docs/start/quickstart.md, with %[5]s/clients/%[6]s.yaml for party 0
`, r.parties, r.Epoch, r.Available, o.field, o.dir, devnet.ClientName(0), o.at("cluster"))
	return err
}

// print says that everything is ready.
func (o *devOptions) print(cmd *cobra.Command, r *DevReport) error {
	var more strings.Builder
	for _, k := range r.Keys {
		fmt.Fprintf(&more, "  %-27s epoch %d\n", "keys of "+k.Params, k.Epoch)
	}
	if len(r.Metrics) > 0 {
		fmt.Fprintf(&more, "  %-27s http://%s/metrics\n", "metrics of party 0", r.Metrics[0])
	}
	return cli.Print(cmd, r, "\nAll keys are made, and tuples of every kind come into stock.\n\n%s  other kinds                 lodge jobs submit --help\n", more.String())
}
