package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/clients/go/tuplefile"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

func TestExitCode(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"success":          {nil, 0},
		"unknown error":    {errors.New("x"), 1},
		"unreachable":      {rpc.Errorf(rpc.Unavailable, "", "x"), 1},
		"timeout":          {context.DeadlineExceeded, 1},
		"missing file":     {fs.ErrNotExist, 1},
		"cancelled job":    {rpc.Errorf(rpc.Cancelled, "", "job x: cancelled"), 1},
		"invalid flag":     {Invalid("", "--count 0"), 2},
		"wrapped usage":    {fmt.Errorf("x: %w", Invalid("", "--count 0")), 2},
		"failed check":     {rpc.Errorf(rpc.CheckFailed, "", "x"), 3},
		"damaged shares":   {tuplefile.ErrDigest, 3},
		"interrupted":      {ErrInterrupted, 130},
		"interrupted demo": {&finding{Typed(ErrInterrupted), ErrInterrupted}, 130},
	} {
		if got := ExitCode(c.err); got != c.want {
			t.Errorf("%s: exit code %d, want %d", name, got, c.want)
		}
	}
}

// The page and the help topic list the same codes with the same words.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "reference", "exit-codes.md"))
	if err != nil {
		t.Fatal(err)
	}
	help := ExitCodesCommand().Long
	for _, x := range exitCodes {
		if row := fmt.Sprintf("| %d | %s |", x.code, x.meaning); !strings.Contains(string(page), row) {
			t.Errorf("the page has no row %q", row)
		}
		if !strings.Contains(help, fmt.Sprintf("%-4d %s\n", x.code, x.meaning)) {
			t.Errorf("the help has no line for %d", x.code)
		}
	}
}
