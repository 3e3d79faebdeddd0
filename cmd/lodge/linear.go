package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	linearclient "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/engine/linear"
	"github.com/lodge-mpc/lodge/services/host/rpc"
	"github.com/lodge-mpc/lodge/services/ops/devnet"
)

// linearText says what linear algebra is secure against; every text about it begins with it.
const linearText = "Two-party linear algebra is secure against a party that follows the protocol. Clients that share a product prove that\n" +
	"their inputs are well formed. Parties refuse all of this unless their operators have set allow_passive_linear, and inputs\n" +
	"without proofs unless they have set allow_unproved_linear too. docs/guides/linear.md says more.\n\n"

// filesText says what files there are.
const filesText = "Files are NumPy's (.npy), or JSON (.json) with an array of numbers, or of rows of them."

// multiplier is how the commands of linear algebra reach a party: as one client.
type multiplier struct {
	cluster, client, party, set string
	json                        bool
}

// linearCommand is `lodge linear`.
func linearCommand() *cobra.Command {
	o := &multiplier{}
	cmd := &cobra.Command{
		Use:   "linear",
		Short: "Have a party multiply matrices and vectors that are encrypted or shared (the party follows the protocol)",
		Long: linearText + "multiply sends two encrypted matrices. vector and batch are the two ends of products on shares, of which one has the\n" +
			"key and the other what is multiplied with; split and join make shares, and numbers of them.\n\n" + filesText,
	}
	f := cmd.PersistentFlags()
	f.StringVar(&o.cluster, "cluster", "", clusterUsage)
	f.StringVar(&o.client, "client", "", "configuration of the client (default CLUSTER/clients/"+devnet.App+".yaml)")
	f.StringVar(&o.party, "party", "", "party that multiplies (default: the client's own, or else the first)")
	f.StringVar(&o.set, "set", "", "parameter set (default "+linear.DefaultProduct+" for encrypted matrices, and "+linear.DefaultVector+" for shares)")
	f.BoolVar(&o.json, "json", false, "write JSON")
	complete(cmd, "set", linear.Names)
	cmd.AddCommand(o.setsCommand(), o.multiplyCommand(), o.vectorCommand(), o.batchCommand(), o.splitCommand(), o.joinCommand())
	return cmd
}

// do connects to the party and runs f.
func (o *multiplier) do(f func(*linearclient.Client) error) error {
	path := o.client
	if path == "" {
		path = filepath.Join(clusterDir(o.cluster), "clients", devnet.App+".yaml")
	}
	config, err := lodge.Load(path)
	if errors.Is(err, os.ErrNotExist) {
		return rpc.Errorf(rpc.NotFound, "name a directory that `lodge init` wrote with --cluster or $"+clusterVariable+", or a client's configuration with --client", "%v", err)
	}
	if err != nil {
		return plain(err)
	}
	party := o.party
	for i, s := range config.Parties {
		if party == fmt.Sprint(i) || party == "" && config.Party == "" && i == 0 {
			party = s.Name
			break
		}
	}
	c, err := linearclient.Dial(config, party)
	if err != nil {
		return plain(err)
	}
	defer c.Close()
	return plain(f(c))
}

// scheme is the set that is meant.
func (o *multiplier) scheme(other string) (*linear.Scheme, error) {
	if o.set != "" {
		other = o.set
	}
	s, err := linear.Find(other)
	if err != nil {
		return nil, invalid("`lodge linear sets` lists them", "%v", err)
	}
	return s, nil
}

// linearSet is one in the list.
type linearSet struct {
	Name   string  `json:"name"`
	Degree int     `json:"degree"`
	LogQ   float64 `json:"log_q"`
	T      uint64  `json:"plaintext_modulus"`
	Proved bool    `json:"proved"` // owners of keys prove their inputs
	Hash   string  `json:"hash"`
}

func (o *multiplier) setsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "sets",
		Short: "List the parameter sets of linear algebra",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list []linearSet
			for _, s := range linear.Sets() {
				if !s.Insecure {
					list = append(list, linearSet{s.Name, s.N(), s.LogQ(), s.T, s.HasProof(), fmt.Sprintf("%x", s.Hash())})
				}
			}
			if o.json {
				return writeIndented(cmd.OutOrStdout(), list)
			}
			w := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tDEGREE\tLOG2 Q\tT\tINPUTS\tHASH")
			for _, s := range list {
				inputs := "not proved"
				if s.Proved {
					inputs = "proved"
				}
				fmt.Fprintf(w, "%s\t%d\t%.0f\t%d\t%s\t%.16s\n", s.Name, s.Degree, s.LogQ, s.T, inputs, s.Hash)
			}
			return w.Flush()
		},
	}
}

// linearReport is what a product came to.
type linearReport struct {
	Security    string  `json:"security"`
	Set         string  `json:"set"`
	Run         string  `json:"run,omitempty"`
	Shape       []int   `json:"shape"`
	Out         string  `json:"out"`
	UpBytes     uint64  `json:"sent_bytes"`
	DownBytes   uint64  `json:"received_bytes"`
	LogDistance float64 `json:"log_distance"`
	Attempts    int     `json:"attempts,omitempty"`
	Seconds     float64 `json:"seconds"`
}

func (o *multiplier) print(cmd *cobra.Command, r *linearReport) error {
	if o.json {
		return writeIndented(cmd.OutOrStdout(), r)
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %v, in %.1f s, %s sent and %s received, set %s, security %s, distance 2^%.0f\n",
		r.Out, r.Shape, r.Seconds, amount(float64(r.UpBytes)), amount(float64(r.DownBytes)), r.Set, r.Security, r.LogDistance)
	return err
}

// show shows the progress of a product.
func show(p *terminal.Progress) func(linearclient.Progress) {
	return func(x linearclient.Progress) {
		p.Note("%s of %s sent, %d of %d answers", amount(float64(x.Sent)), amount(float64(x.ToSend)), x.Answers, x.Expect)
	}
}

func (o *multiplier) multiplyCommand() *cobra.Command {
	var out string
	var maxLeft, maxRight uint64
	cmd := &cobra.Command{
		Use:   "multiply LEFT RIGHT",
		Short: "Multiply two matrices of integers, which the party sees encrypted only",
		Long: linearText + "The party learns the shapes, and the magnitudes that entries are within: without --max-left and --max-right the least\n" +
			"2^k - 1 that none exceeds.\n\n" + filesText,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := newFile(out); err != nil {
				return err
			}
			scheme, err := o.scheme(linear.DefaultProduct)
			if err != nil {
				return err
			}
			left, leftShape, err := readIntegers(args[0])
			if err != nil {
				return err
			}
			right, rightShape, err := readIntegers(args[1])
			if err != nil {
				return err
			}
			if len(leftShape) != 2 || len(rightShape) != 2 || leftShape[1] != rightShape[0] {
				return invalid("name matrices of r x k and k x c", "%s is of shape %v and %s of %v", args[0], leftShape, args[1], rightShape)
			}
			began, p := time.Now(), progressOf(cmd, o.json)
			defer p.Done()
			product := &linearclient.Product{
				Set: scheme.Name, Rows: leftShape[0], Inner: leftShape[1], Cols: rightShape[1], Left: left, Right: right,
				MaxLeft: maxLeft, MaxRight: maxRight, Progress: show(p),
			}
			var got *linearclient.Result
			if err := o.do(func(c *linearclient.Client) (err error) {
				got, err = c.Multiply(cmd.Context(), product)
				return err
			}); err != nil {
				return err
			}
			p.Done()
			shape := []int{product.Rows, product.Cols}
			if err := writeArray(out, shape, got.Entries); err != nil {
				return err
			}
			return o.print(cmd, &linearReport{
				Security: "passive", Set: scheme.Name, Shape: shape, Out: out, UpBytes: got.Up, DownBytes: got.Down,
				LogDistance: got.LogDistance, Attempts: got.Attempts, Seconds: time.Since(began).Seconds(),
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "file of the product, .npy or .json, which is not there yet")
	f.Uint64Var(&maxLeft, "max-left", 0, "magnitude that no entry of LEFT exceeds, which the party learns")
	f.Uint64Var(&maxRight, "max-right", 0, "the same of RIGHT")
	return cmd
}
