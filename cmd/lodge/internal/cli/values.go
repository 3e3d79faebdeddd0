package cli

import (
	"bufio"
	"math/big"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// maxValues bounds what is read; a ciphertext holds less.
const maxValues = 1 << 20

// ReadValues reads arguments or a file.
func ReadValues(cmd *cobra.Command, args []string, file string) ([]*big.Int, error) {
	if (len(args) > 0) == (file != "") {
		return nil, rpc.Errorf(rpc.Invalid, "write values as arguments, or name a file with --in", "no values, or both arguments and --in")
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
			return rpc.Errorf(rpc.Invalid, "write decimal digits, or hexadecimal ones after 0x", "value %d is not a number from 0 on", len(values))
		}
		if values = append(values, v); len(values) > maxValues {
			return rpc.Errorf(rpc.TooLarge, "encrypt them in several files", "more than %d values", maxValues)
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
	lines := bufio.NewScanner(in) // of up to 64 KiB
	for lines.Scan() {
		if text := strings.TrimSpace(lines.Text()); text != "" {
			if err := add(text); err != nil {
				return nil, err
			}
		}
	}
	if lines.Err() == nil && len(values) == 0 {
		return nil, rpc.Errorf(rpc.Invalid, "write one value a line", "%s holds no values", file)
	}
	return values, lines.Err()
}
