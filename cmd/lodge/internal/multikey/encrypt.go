package multikey

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	mkclient "github.com/lodge-mpc/lodge/clients/go/multikey"
	"github.com/lodge-mpc/lodge/cmd/lodge/internal/cli"
)

// mkEncryptCommand returns `lodge mk encrypt`.
func mkEncryptCommand(o *cli.Operator) *cobra.Command {
	var out string
	var version uint64
	cmd := cli.Command("encrypt", func(cmd *cobra.Command, args []string) error {
		bits, err := bitsOf(args[0])
		if err != nil {
			return err
		}
		if out == "" {
			return cli.Invalid("name a new file", "no --out")
		}
		if err := cli.CheckNewFile(out); err != nil {
			return err
		}
		pinned, err := mkContext(o)
		if err != nil {
			return err
		}
		return withOwner(o, cmd, func(ctx context.Context, c *mkclient.Client, party int) error {
			b, err := c.Encrypt(ctx, pinned.Scheme, party, version, bits)
			if err != nil {
				return err
			}
			return cli.WriteNewFile(out, 0o644, func(w io.Writer) error { return mkclient.Write(w, pinned.Scheme, []mkclient.Group{{Batch: b}}) })
		})
	})
	o.PartyFlag(cmd, "the party, by name or index")
	cmd.Flags().StringVar(&out, "out", "", "file to create")
	cmd.Flags().Uint64Var(&version, "version", 0, "version of the keys (default: the newest in use)")
	return cmd
}

// bitsOf parses digits 0 and 1.
func bitsOf(digits string) ([]bool, error) {
	if len(digits) == 0 || len(digits) > mkclient.MaxBits || strings.Trim(digits, "01") != "" {
		return nil, cli.Invalid(fmt.Sprintf("write 1 to %d digits 0 and 1, such as 0110", mkclient.MaxBits), "%.40q contains other characters than 0 and 1", digits)
	}
	bits := make([]bool, len(digits))
	for i := range bits {
		bits[i] = digits[i] == '1'
	}
	return bits, nil
}

// digitsOf formats bits as digits.
func digitsOf(bits []bool) string {
	b := make([]byte, len(bits))
	for i, bit := range bits {
		b[i] = '0'
		if bit {
			b[i] = '1'
		}
	}
	return string(b)
}
