package keys_test

import (
	"strings"
	"testing"

	"github.com/lodge-mpc/lodge/cmd/lodge/internal/lodgetest"
	"github.com/lodge-mpc/lodge/services/host/rpc"
)

// The spellings of the previous release still work for one release, and no help lists them.
func TestFormerSpellings(t *testing.T) {
	want, err := lodgetest.Run(t, "params", "show", "S14-32", "--field", "p64", "--block", "64")
	if err != nil {
		t.Fatal(err)
	}
	if got, err := lodgetest.Run(t, "params", "show", "S14-32", "--field", "p64", "--dim", "64"); err != nil || got != want {
		t.Errorf("--dim: %v: %s", err, got)
	}
	for former, args := range map[string][]string{"--dim": {"jobs", "submit", "--help"}, "make ": {"mk", "keys", "--help"}, "\n  epochs ": {"--help"}} {
		if help, err := lodgetest.Run(t, args...); err != nil || strings.Contains(help, former) {
			t.Errorf("%v lists %q: %v", args, former, err)
		}
	}
	for _, args := range [][]string{
		{"mk", "keys", "make", "--help"}, {"epochs", "list", "--party", "p0", "--help"}, {"epochs", "public-key", "1", "--party", "p0", "--out", "x", "--help"},
		{"epochs", "retire", "1", "--party", "p0", "--dry-run", "--help"},
	} {
		if _, err := lodgetest.Run(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// The number of arguments must match the usage line on the help page.
func TestArgumentsFollowTheHelpPage(t *testing.T) {
	for _, args := range [][]string{
		{"params", "show"}, {"params", "list", "x"}, {"config", "keys", "nonsense"}, {"config", "keys"}, {"log-level", "debug", "info"}, {"verify"},
		{"mk", "seed", "commit", "one", "--label", "x", "--dir", ".", "--out", "x"}, {"linear", "split", "a", "b"},
	} {
		if e, _ := lodgetest.Fails(t, args...); e.Code != rpc.Invalid || !strings.Contains(e.Next, "lodge "+args[0]) {
			t.Errorf("%v: %v", args, e)
		}
	}
	for _, args := range [][]string{{"params", "show", "S14-32"}, {"config", "keys", "party"}} {
		if _, err := lodgetest.Run(t, args...); err != nil {
			t.Errorf("%v: %v", args, err)
		}
	}
}
