package linear

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	linearclient "github.com/lodge-mpc/lodge/clients/go/linear"
	"github.com/lodge-mpc/lodge/clients/go/lodge"
	"github.com/lodge-mpc/lodge/cmd/internal/terminal"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/linear"
)

// multiplier holds the connection flags of the commands of linear algebra, which call a party as
// one client.
type multiplier struct {
	cli.ClientFlags
	party, set string
}

// linearCommand returns `lodge linear`.
func linearCommand() *cobra.Command {
	o := &multiplier{}
	cmd := cli.Command("linear", nil)
	f := cmd.PersistentFlags()
	o.Flags(f)
	f.StringVar(&o.party, "party", "", "party that multiplies (default: the client's own, or else the first)")
	f.StringVar(&o.set, "set", "", "parameter set (default "+linear.DefaultProduct+" for encrypted matrices, and "+linear.DefaultVector+" for shares)")
	cli.Complete(cmd, "set", linear.Names)
	cmd.AddCommand(o.setsCommand(), o.multiplyCommand(), o.vectorCommand(), o.batchCommand(), o.splitCommand(), o.joinCommand())
	return cmd
}

// do connects to the party and calls f.
func (o *multiplier) do(f func(*linearclient.Client) error) error {
	dial := func(config lodge.Config) (*linearclient.Client, error) {
		party := o.party
		for i, s := range config.Parties {
			if party == fmt.Sprint(i) || party == "" && config.Party == "" && i == 0 {
				party = s.Name
				break
			}
		}
		return linearclient.Dial(config, party)
	}
	return cli.As(&o.ClientFlags, dial, func(c *linearclient.Client, _ lodge.Config) error { return f(c) })
}

// scheme returns the selected set.
func (o *multiplier) scheme(other string) (*linear.Scheme, error) {
	if o.set != "" {
		other = o.set
	}
	s, err := linear.Find(other)
	if err != nil {
		return nil, cli.Invalid("`lodge linear sets` lists them", "%v", err)
	}
	return s, nil
}

// linearSet is a set in the list.
type linearSet struct {
	Name   string  `json:"name"`
	Degree int     `json:"degree"`
	LogQ   float64 `json:"log_q"`
	T      uint64  `json:"plaintext_modulus"`
	Proved bool    `json:"proved"` // owners of keys prove their inputs
	Hash   string  `json:"hash"`
}

func (o *multiplier) setsCommand() *cobra.Command {
	return cli.Command("sets", func(cmd *cobra.Command, _ []string) error {
		var list []linearSet
		for _, s := range linear.Sets() {
			if !s.Insecure {
				list = append(list, linearSet{s.Name, s.N(), s.LogQ(), s.T, s.HasProof(), fmt.Sprintf("%x", s.Hash())})
			}
		}
		return cli.Write(cmd, list, func(w io.Writer) error {
			return cli.PrintTable(w, "", "NAME\tDEGREE\tLOG2 Q\tT\tINPUTS\tHASH", list, func(s linearSet) []any {
				inputs := "not proved"
				if s.Proved {
					inputs = "proved"
				}
				return []any{s.Name, s.Degree, fmt.Sprintf("%.0f", s.LogQ), s.T, inputs, fmt.Sprintf("%.16s", s.Hash)}
			})
		})
	})
}

// linearReport is the JSON outcome of a product.
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
	return cli.Print(cmd, r, "%s: %v, in %.1f s, %s sent and %s received, set %s, security %s, distance 2^%.0f\n",
		r.Out, r.Shape, r.Seconds, cli.Size(float64(r.UpBytes)), cli.Size(float64(r.DownBytes)), r.Set, r.Security, r.LogDistance)
}

// show shows the progress of a product.
func show(p *terminal.Progress) func(linearclient.Progress) {
	return func(x linearclient.Progress) {
		p.Note("%s of %s sent, %d of %d responses", cli.Size(float64(x.Sent)), cli.Size(float64(x.ToSend)), x.Answers, x.Expect)
	}
}

func (o *multiplier) multiplyCommand() *cobra.Command {
	var out string
	var maxLeft, maxRight uint64
	cmd := cli.Command("multiply", func(cmd *cobra.Command, args []string) error {
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
			return cli.Invalid("name matrices of r x k and k x c", "%s is of shape %v and %s of %v", args[0], leftShape, args[1], rightShape)
		}
		began, p := time.Now(), cli.ProgressOf(cmd)
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
		if err := WriteArray(out, shape, got.Entries); err != nil {
			return err
		}
		return o.print(cmd, &linearReport{
			Security: "passive", Set: scheme.Name, Shape: shape, Out: out, UpBytes: got.Up, DownBytes: got.Down,
			LogDistance: got.LogDistance, Attempts: got.Attempts, Seconds: time.Since(began).Seconds(),
		})
	})
	f := cmd.Flags()
	f.StringVar(&out, "out", "", "file of the product to create, .npy or .json")
	f.Uint64Var(&maxLeft, "max-left", 0, "bound of the absolute values of LEFT, which the party learns")
	f.Uint64Var(&maxRight, "max-right", 0, "the same for RIGHT")
	return cmd
}
