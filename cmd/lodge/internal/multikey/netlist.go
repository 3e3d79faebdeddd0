package multikey

import (
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
	"github.com/lodge-mpc/lodge/engine/multikey/circuit"
)

// netlistRecord is the JSON outcome of `lodge mk netlist check`.
type netlistRecord struct {
	File       string `json:"file"`
	Digest     string `json:"digest"`
	Inputs     []int  `json:"inputs"`
	Outputs    []int  `json:"outputs"`
	Written    int    `json:"gates_written"`
	Gates      int    `json:"gates"`
	Levels     int    `json:"levels"`
	Bootstraps int    `json:"bootstraps"`
}

// mkNetlistCommand returns `lodge mk netlist`.
func mkNetlistCommand() *cobra.Command {
	cmd := cli.Command("netlist", nil)
	check := cli.Command("check", func(cmd *cobra.Command, args []string) error {
		n, err := readNetlist(args[0])
		if err != nil {
			return err
		}
		p, err := n.Compile()
		if err != nil {
			return err
		}
		digest := n.Digest()
		r := netlistRecord{args[0], fmt.Sprintf("%x", digest), n.Inputs, n.Outputs, len(n.Gates), p.Gates(), p.Depth(), p.Bootstraps()}
		return cli.Print(cmd, r, "%s: inputs of %v bits, outputs of %v; of %d gates %d are computed, in %d levels, with %d bootstraps\ndigest %s\n",
			r.File, r.Inputs, r.Outputs, r.Written, r.Gates, r.Levels, r.Bootstraps, r.Digest)
	})
	check.Flags().Bool("json", false, "write JSON")
	var usage []string
	for _, e := range circuit.Examples() {
		usage = append(usage, "  "+e.Name+" "+strings.ToUpper(strings.Join(e.Arguments, " ")))
	}
	var out string
	example := cli.Command("example", func(_ *cobra.Command, args []string) error {
		var numbers []int
		for _, a := range args[1:] {
			x, err := strconv.Atoi(a)
			if err != nil {
				return cli.Invalid("", "%q is not a number", a)
			}
			numbers = append(numbers, x)
		}
		n, err := circuit.MakeExample(args[0], numbers...)
		if err != nil {
			return cli.Invalid("`lodge mk netlist example --help` lists them", "%v", err)
		}
		return cli.WriteNewFile(out, 0o644, func(w io.Writer) error {
			_, err := w.Write(n.Append(nil))
			return err
		})
	}, func() (names []string) {
		for _, e := range circuit.Examples() {
			names = append(names, e.Name)
		}
		return names
	})
	example.Long = strings.Join(usage, "\n")
	example.Flags().StringVar(&out, "out", "", "file to create")
	_ = example.MarkFlagRequired("out")
	cmd.AddCommand(check, example)
	return cmd
}

// readNetlist reads a netlist from a file.
func readNetlist(path string) (*circuit.Netlist, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	n, err := circuit.Parse(text)
	if err != nil {
		return nil, cli.Invalid("docs/guides/multikey.md describes the format", "%s: %v", path, err)
	}
	return n, nil
}
