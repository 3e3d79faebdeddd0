package cli

import (
	"bufio"
	"math/big"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxValues is the largest number of values read. A ciphertext holds fewer.
const maxValues = 1 << 20

// ReadValues parses the values in args, or in file if that is not empty.
func ReadValues(cmd *cobra.Command, args []string, file string) ([]*big.Int, error) {
	if (len(args) > 0) == (file != "") {
		return nil, rpc.Errorf(rpc.Invalid, "write the values as arguments, or name a file with --in", "either no values, or both arguments and --in")
	}
	var values []*big.Int
	add := func(text string) error {
		base := 10
		digits, hex := strings.CutPrefix(text, "0x")
		if hex {
			base = 16
		}
		v, ok := new(big.Int).SetString(digits, base)
		if !ok || v.Sign() < 0 || digits[0] == '+' {
			return rpc.Errorf(rpc.Invalid, "write decimal digits, or hexadecimal digits after 0x", "value %d is not a non-negative number", len(values))
		}
		if values = append(values, v); len(values) > maxValues {
			return rpc.Errorf(rpc.TooLarge, "encrypt the values in several files", "more than %d values", maxValues)
		}
		return nil
	}
	for _, a := range args {
		if err := add(a); err != nil {
			return nil, err
		}
	}
	if file == "" {
		return values, nil
	}
	in := cmd.InOrStdin()
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	lines := bufio.NewScanner(in) // lines of up to 64 KiB
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := add(text); err != nil {
				return nil, err
			}
		}
	}
	if lines.Err() == nil && len(values) == 0 {
		return nil, rpc.Errorf(rpc.Invalid, "write one value a line", "%s contains no values", file)
	}
	return values, lines.Err()
}
